"""What changed between two releases, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perfquarry.data.records import Record, ReleasedTask

REMEASURED = frozenset({
    "workloads", "speedup", "low", "high", "delta", "q_value", "overall_speedup", "overall_low", "overall_high",
    "timed_workloads", "margin", "machine_id", "tests",
})  # fmt: skip
CORRECTED = frozenset({"workloads", "q_value"})
"""What changes, and nothing else of REMEASURED, when further tests of the repository correct the same timings."""


COUNTED = frozenset({"instructions_ratio", "count_label", "count"})
"""What changes when instructions are counted; the last two are of the workloads."""


class Changes(Record):
    """One entry of the changelog; lists are of task_ids with reasons or columns."""

    added: list[str]
    removed: dict[str, str]
    """Why, by task_id."""
    changed: dict[str, list[str]]
    """Columns, by task_id."""


def compare(before: Sequence[ReleasedTask], after: Sequence[ReleasedTask], why_gone: Mapping[str, str]) -> Changes:
    """Added, removed and changed tasks; columns that the previous release has not are not compared.

    `why_gone` says of tasks that exist why they are not in this release.
    """
    old = {task.task_id: task for task in before}
    new = {task.task_id: task for task in after}
    unknown = "not among the accepted tasks of the repositories of this release"
    return Changes(
        added=[task_id for task_id in new if task_id not in old],
        removed={task_id: why_gone.get(task_id, unknown) for task_id in old if task_id not in new},
        changed={
            task_id: columns for task_id in new if task_id in old and (columns := _columns(old[task_id], new[task_id]))
        },
    )


def _columns(one: ReleasedTask, other: ReleasedTask) -> list[str]:
    """Columns that differ; workloads that differ in nothing but their labels count as 'count_label'."""
    columns = _differ(one, other)
    if "workloads" not in columns or len(one.workloads) != len(other.workloads):
        return columns
    pairs = zip(one.workloads, other.workloads, strict=True)
    only_labels = {name for pair in pairs for name in _differ(*pair)} <= COUNTED
    return ["count_label" if name == "workloads" and only_labels else name for name in columns]


def _differ(one: Record, other: Record) -> list[str]:
    """Fields that the first was made with and the other has otherwise."""
    return [
        name
        for name in type(one).model_fields
        if name in one.model_fields_set and not _same(getattr(one, name), getattr(other, name))
    ]


def _same(one: object, other: object) -> bool:
    if isinstance(one, Record) and isinstance(other, Record):
        return not _differ(one, other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return one == other


def why_changed(columns: Sequence[str]) -> str:
    """In words: 'measured again (speedup, low)', 'other texts or facts (title)'."""
    again = [name for name in columns if name in REMEASURED]
    counted = [name for name in columns if name in COUNTED]
    others = [name for name in columns if name not in REMEASURED | COUNTED]
    what = "corrected for other tests" if set(again) == CORRECTED else "measured again"
    parts = [f"{what} ({', '.join(again)})"] if again else []
    parts += [f"instructions counted ({', '.join(counted)})"] if counted else []
    return "; ".join(parts + ([f"other texts or facts ({', '.join(others)})"] if others else []))
