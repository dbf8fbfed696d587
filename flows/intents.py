"""Whether the gain of each accepted task was meant: the heuristic's rows, a model's, and what curators decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

import pyarrow.compute as pc

from perfquarry.data.own_rows import VERSIONS
from perfquarry.data.records import Change, Effect, Intent, IntentClass, Reason, Task, Workload
from perfquarry.data.records.intent import HEURISTIC
from perfquarry.flows.display import current
from perfquarry.flows.run import Run
from perfquarry.llm.spec import ModelSpec
from perfquarry.miners.blobs import sides
from perfquarry.miners.intent import IntentOpinion, effects_of, opinion_of
from perfquarry.miners.intent.model import intent_request, opinion_in
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


def without_intent(run: Run, tasks: Sequence[Task]) -> list[Task]:
    """Those that this version of the heuristic has not classed."""
    rows = run.store.scan(Intent, run.name, columns=["task_id"], stage_version=VERSIONS["intent"])
    known = set(rows["task_id"].to_pylist())
    return [task for task in tasks if task.task_id not in known]


def write_intents(run: Run, tasks: Sequence[Task]) -> None:
    """Has the heuristic class what it has not classed."""
    run.store.append([_row(run, task, _by_syntax(run, task), HEURISTIC) for task in without_intent(run, tasks)])


def ask_intents(run: Run, tasks: Sequence[Task], llm: str) -> None:
    """Asks a model for the class of the tasks that have none of it yet.

    Raises:
        InputError: the model cannot be asked at all.
        PerfquarryError: it cannot be asked now; what was answered is in the table.
    """
    author = str(ModelSpec.parse(llm))
    known = run.store.scan(Intent, run.name, columns=["task_id"], where=pc.field("author") == author)
    waiting = [task for task in tasks if task.task_id not in set(known["task_id"].to_pylist())]
    current().stage("intent", len(waiting))
    with run.client(llm, run.stamp("screen")) as client:
        requests = [intent_request(run.clone, run.change_of(task), task.test_patch) for task in waiting]
        for place, answer in client.ask_all(requests):
            task = waiting[place]
            opinion = opinion_in(answer.value, task.patch + task.test_patch) if answer.value is not None else None
            run.store.append([_row(run, task, opinion, author)] if opinion else [])
            current().advance()
    current().finish(f"{len(waiting)} tasks asked for")


def _by_syntax(run: Run, task: Task) -> IntentOpinion:
    change = run.change_of(task)
    return opinion_of(
        task.title, task.message, [*observed(run, change), *effects_of(run.clone, change), *edited(run, change)]
    )


def observed(run: Run, change: Change) -> list[Effect]:
    """What the runs of tests and of generated and replayed calls showed of a change."""
    rows = list(run.store.records(Workload, run.name, where=pc.field("change_id") == change.change_id))
    counts = {reason: sum(row.reason == reason for row in rows) for reason in _OBSERVED}
    return [
        Effect(kind="results", text=f"{count} × {_OBSERVED[reason]}", weight=1.0)
        for reason, count in counts.items()
        if count
    ]


def edited(run: Run, change: Change) -> list[Effect]:
    """Tests of which the change edits nothing but the values that they expect."""
    paths = [file.path for file in change.files if file.role == "test" and file.path.endswith(".py")]
    files = sides(run.clone, change, paths) if paths else []
    texts = [text for file in files for text in edited_between(file.path, file.base or b"", file.head or b"")]
    return [Effect(kind="tests", text=text, weight=1.0) for text in sorted(texts)]


def _row(run: Run, task: Task, opinion: IntentOpinion, author: str) -> Intent:
    stamp = run.stamp("screen").model_copy(update={"stage_version": VERSIONS["intent"]})
    return Intent(
        **stamp.fields(),
        task_id=task.task_id,
        change_id=task.change_id,
        intent=opinion.intent,
        author=author,
        evidence=opinion.evidence,
    )
