"""The stage `screen`: problem texts of the accepted tasks, and the checks of them that run no code."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.compute as pc

from perfquarry.curation.in_force import accepted_tasks, newest_findings
from perfquarry.curation.intent_rows import intents_in_words, without_intent, write_intents
from perfquarry.curation.intents import intents_of
from perfquarry.curation.screening.found import SCREENED, carried, rows_of, screened
from perfquarry.curation.screening.runs import CHECKS, try_out
from perfquarry.curation.screening.static import look
from perfquarry.curation.screening.subjects import (
    guards_of,
    history_of,
    looked_at,
    screened_tasks,
    stamp_of,
    subject_of,
)
from perfquarry.curation.settings import ScreenSettings
from perfquarry.data.display import current, waiting_for_core
from perfquarry.data.own_rows import OwnRows
from perfquarry.data.records import Finding, Task
from perfquarry.harness.contracts import BuiltSide
from perfquarry.harness.measuring.machine import measurement_lock
from perfquarry.harness.probing.prober import Prober


def todo(rows: OwnRows) -> list[tuple[str, ...]]:
    """One batch, all tasks together, unless they were screened and classed."""
    tasks = accepted_tasks(rows.store, rows.name)
    waiting = {task.task_id for task in tasks} - screened_tasks(rows, "static") or without_intent(rows, tasks)
    return [(stamp_of(rows).config_hash,)] if waiting else []


def screen(rows: OwnRows, clone: Path, settings: ScreenSettings) -> None:
    """Writes the texts and the findings; what was found by running an unchanged task is carried along."""
    stamp = stamp_of(rows)
    subjects = [subject_of(rows, clone, task, stamp) for task in accepted_tasks(rows.store, rows.name)]
    write_intents(rows, clone, [one.task for one in subjects])
    found = look(subjects, history_of(rows.store, rows.name), settings)
    rows.store.append([problem for one in subjects for problem in one.problems])
    rows.store.append([row for one in subjects for row in rows_of(one.task, found[one.task.task_id], stamp)])
    for task in (one.task for one in subjects):
        known = rows.store.records(Finding, rows.name, where=pc.field("task_id") == task.task_id)
        rows.store.append(carried(known, looked_at(rows, task), stamp))


def run_checks(
    rows: OwnRows, task: Task, base: BuiltSide, tools: Path, prober: Prober, settings: ScreenSettings
) -> None:
    """The checks of a task that run code; `tools` are those of the base's interpreter."""
    current().note(task.title)
    lock = measurement_lock(on_wait=waiting_for_core)
    found = try_out(task, base, prober, settings, tools, lock, guards_of(rows, task))
    names = [(one.check, one.subject) for one in found]
    made = screened("run", CHECKS, of=looked_at(rows, task), found=names)
    rows.store.append(rows_of(task, [*found, made], stamp_of(rows)))


def summary(rows: OwnRows) -> str:
    """'8 tasks, 2 with blocking findings'."""
    found = newest_findings(rows.store, rows.name)
    counts = Counter(row.severity for row in found if row.check != SCREENED)
    blocked = {row.task_id for row in found if row.severity == "blocking"}
    severities = ", ".join(f"{counts[severity]} {severity}" for severity in ("blocking", "warning", "info"))
    intents = intents_of(rows.store, rows.name, accepted_tasks(rows.store, rows.name))
    meant = Counter(one.intent for one in intents.values())
    text = f"{len({row.task_id for row in found})} tasks, findings: {severities}; {len(blocked)} task(s) blocked"
    return f"{text}; {intents_in_words(meant)}" if meant else text
