"""Which tasks need more workloads, and what their generator is asked for (GSO, appendix C.2: oversampling)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perfquarry.data.records import Finding, Task

FEWEST = 3
"""Workloads that a task should have."""


@dataclass(frozen=True)
class Demand:
    """What is missing in the workloads of a task."""

    task_id: str
    change_id: str
    head_sha: str
    wishes: tuple[str, ...]
    """Sentences for who writes workloads; names of functions in them are the repository's."""


def demands(tasks: Sequence[Task], findings: Iterable[Finding]) -> list[Demand]:
    """Of the tasks whose workloads are few, alike or weak, what they need, in the tasks' order."""
    by_task: dict[str, list[Finding]] = {}
    for row in findings:
        by_task.setdefault(row.task_id, []).append(row)
    found = [(task, _wishes(task, by_task.get(task.task_id, []))) for task in tasks]
    return [Demand(task.task_id, task.change_id, task.head_sha, wishes) for task, wishes in found if wishes]


def _wishes(task: Task, findings: Sequence[Finding]) -> tuple[str, ...]:
    serious = {row.check: row for row in findings if row.severity != "info"}
    wishes = []
    if "memo-survives" in serious:
        wishes.append("No input repeats within a call of experiment: a cache of earlier results must save nothing.")
    broken = sorted(row.subject.rpartition("::")[2] for row in findings if row.check == "mutation-survives")
    if "mutation-survives" in serious:
        wishes.append(f"The result depends on all that {', '.join(broken)} computes, and all of it is compared.")
    if "too-short" in serious:
        wishes.append("One call of experiment takes at least 5 ms at the base: larger or more inputs.")
    if "test-leak" in serious:
        wishes.append("No name, number or comment tells how the code could be made faster.")
    if "non-determinism" in serious:
        wishes.append("The result and the work are the same in every run, whatever the hash seed.")
    entries = {call for one in task.workloads for call in one.calls}
    if len(task.workloads) < FEWEST or "single-workload" in serious:
        wishes.append("Inputs of other sizes, shapes and distributions than the workloads kept so far, edge cases too.")
    elif len(entries) == 1:
        wishes.append(f"The change is reached through other functions than {entries.pop().rpartition('::')[2]}.")
    return tuple(wishes)
