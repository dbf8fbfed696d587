"""Whether the gain of each accepted task was meant: the rows of the heuristic, and of whoever else says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import get_args

import pyarrow.compute as pc

from perfquarry.data.own_rows import VERSIONS, OwnRows
from perfquarry.data.records import Change, Effect, Intent, IntentClass, Reason, Task, Workload
from perfquarry.data.records.intent import HEURISTIC
from perfquarry.miners.blobs import sides
from perfquarry.miners.intent import IntentOpinion, effects_of, opinion_of
from perfquarry.testgen.expectations import edited_between

_OBSERVED = {
    Reason.DIFFERS: "generated calls return something else at the head",
    Reason.SCRIPT_FAILS_ON_HEAD: "generated calls fail at the head",
    Reason.FAILS_ON_HEAD: "unit tests of the base fail at the head",
    Reason.EXPECTATIONS_CHANGED: "tests expect other results",
}
"""What execution showed of a change, by the reason of a rejected workload."""


def intents_in_words(counts: Mapping[IntentClass, int]) -> str:
    """'6 intended, 1 behaviour changed'."""
    return ", ".join(f"{counts[name]} {name.replace('_', ' ')}" for name in get_args(IntentClass) if counts.get(name))


def without_intent(rows: OwnRows, tasks: Sequence[Task]) -> list[Task]:
    """Those that this version of the heuristic has not classed."""
    classed = rows.store.scan(Intent, rows.name, columns=["task_id"], stage_version=VERSIONS["intent"])
    known = set(classed["task_id"].to_pylist())
    return [task for task in tasks if task.task_id not in known]


def write_intents(rows: OwnRows, clone: Path, tasks: Sequence[Task]) -> None:
    """Has the heuristic class what it has not classed."""
    waiting = without_intent(rows, tasks)
    rows.store.append([intent_row(rows, task, _by_syntax(rows, clone, task), HEURISTIC) for task in waiting])


def _by_syntax(rows: OwnRows, clone: Path, task: Task) -> IntentOpinion:
    change = rows.change_of(task)
    effects = [*_observed(rows, change), *effects_of(clone, change), *_edited(clone, change)]
    return opinion_of(task.title, task.message, effects)


def _observed(rows: OwnRows, change: Change) -> list[Effect]:
    """What the runs of tests and of generated and replayed calls showed of a change."""
    workloads = list(rows.store.records(Workload, rows.name, where=pc.field("change_id") == change.change_id))
    counts = {reason: sum(row.reason == reason for row in workloads) for reason in _OBSERVED}
    return [
        Effect(kind="results", text=f"{count} × {_OBSERVED[reason]}", weight=1.0)
        for reason, count in counts.items()
        if count
    ]


def _edited(clone: Path, change: Change) -> list[Effect]:
    """Tests of which the change edits nothing but the values that they expect."""
    paths = [file.path for file in change.files if file.role == "test" and file.path.endswith(".py")]
    files = sides(clone, change, paths) if paths else []
    texts = [text for file in files for text in edited_between(file.path, file.base or b"", file.head or b"")]
    return [Effect(kind="tests", text=text, weight=1.0) for text in sorted(texts)]


def intent_row(rows: OwnRows, task: Task, opinion: IntentOpinion, author: str) -> Intent:
    """The row of what an author says of a task."""
    stamp = rows.stamp("screen").model_copy(update={"stage_version": VERSIONS["intent"]})
    return Intent(
        **stamp.fields(),
        task_id=task.task_id,
        change_id=task.change_id,
        intent=opinion.intent,
        author=author,
        evidence=opinion.evidence,
    )
