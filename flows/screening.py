"""The stage `screen`: problem texts of the accepted tasks, and the checks of them that run no code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

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
from perfquarry.data.display import current, waiting_for_core
from perfquarry.data.records import Finding, Task
from perfquarry.flows.run import Run
from perfquarry.harness.measuring.machine import measurement_lock


def todo(run: Run) -> list[tuple[str, ...]]:
    """One batch, all tasks together, unless they were screened and classed."""
    tasks = accepted_tasks(run.store, run.name)
    waiting = {task.task_id for task in tasks} - screened_tasks(run, "static") or without_intent(run, tasks)
    return [(stamp_of(run).config_hash,)] if waiting else []


def screen(run: Run, _: tuple[str, ...]) -> None:
    """Writes the texts and the findings; what was found by running an unchanged task is carried along."""
    stamp, settings = stamp_of(run), run.options.settings.screen
    subjects = [subject_of(run, run.clone, task, stamp) for task in accepted_tasks(run.store, run.name)]
    write_intents(run, run.clone, [one.task for one in subjects])
    found = look(subjects, history_of(run.store, run.name), settings)
    run.store.append([problem for one in subjects for problem in one.problems])
    run.store.append([row for one in subjects for row in rows_of(one.task, found[one.task.task_id], stamp)])
    for task in (one.task for one in subjects):
        known = run.store.records(Finding, run.name, where=pc.field("task_id") == task.task_id)
        run.store.append(carried(known, looked_at(run, task), stamp))


def run_checks(run: Run, tasks: Sequence[Task]) -> None:
    """The checks of tasks that run code.

    Raises:
        RunFailed: some tasks could not be run here.
    """
    for task in tasks:
        builds, guards = run.builds_of(task), guards_of(run, task)
        base, _ = run.builder.reopen(builds)
        tools = run.tools(builds)["base"]
        current().note(task.title)
        lock = measurement_lock(on_wait=waiting_for_core)
        found = try_out(task, base, run.runtime.prober, run.options.settings.screen, tools, lock, guards)
        names = [(one.check, one.subject) for one in found]
        made = screened("run", CHECKS, of=looked_at(run, task), found=names)
        run.store.append(rows_of(task, [*found, made], stamp_of(run)))


def summary(run: Run) -> str:
    """'8 tasks, 2 with blocking findings'."""
    rows = newest_findings(run.store, run.name)
    counts = Counter(row.severity for row in rows if row.check != SCREENED)
    blocked = {row.task_id for row in rows if row.severity == "blocking"}
    severities = ", ".join(f"{counts[severity]} {severity}" for severity in ("blocking", "warning", "info"))
    meant = Counter(one.intent for one in intents_of(run.store, run.name, accepted_tasks(run.store, run.name)).values())
    text = f"{len({row.task_id for row in rows})} tasks, findings: {severities}; {len(blocked)} task(s) blocked"
    return f"{text}; {intents_in_words(meant)}" if meant else text
