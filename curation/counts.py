"""What instruction counts say beside the clock: a second witness, never a substitute (docs/counts.md)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

import pyarrow.compute as pc

from perfquarry.data.own_rows import OwnRows
from perfquarry.data.records import Count, Evidence, Reason, SeedCount, Stamp, Task, Workload
from perfquarry.data.store import TableStore

CountLabel = Literal["agree", "not_fewer", "hidden", "neither"]
LABELS: dict[CountLabel, str] = {
    "agree": "faster, with fewer instructions",
    "not_fewer": "faster by the clock, without fewer instructions: locality, SIMD, waiting, or noise",
    "hidden": "fewer instructions, not faster by the clock: too small, masked, or the clock is too noisy",
    "neither": "neither faster nor fewer instructions",
}
FENCE = 0.01
"""Smallest |log ratio| that is a difference: tests that a change does not touch read 1 ± 0.0006, and seeds move
ratios by up to 0.2 % (above 100,000 instructions) or 1.6 % (below 60,000)."""
TOUCHED = 0.005
"""From this |log ratio| on a workload is touched by the change."""


@dataclass(frozen=True)
class ChangeCount:
    """Counts over the workloads of one change."""

    ratio: float | None
    """Geometric mean of base over head over the touched workloads; None without any."""
    touched: int
    counted: int


def fence_of(low: float, high: float, least: float = FENCE) -> float:
    """|log ratio| up to which a ratio is no difference: the spread over the seeds, at least `least`."""
    return max(least, math.log(high / low))


def label_of(count: Count, *, faster: bool, least: float = FENCE) -> CountLabel | None:
    """The field of the table wall × count; None where nothing could be counted.

    `faster`: the clock shows a gain that was accepted.
    """
    if count.ratio is None or count.low is None or count.high is None:
        return None
    fewer = math.log(count.ratio) > fence_of(count.low, count.high, least)
    if faster:
        return "agree" if fewer else "not_fewer"
    return "hidden" if fewer else "neither"


def change_count(counts: Iterable[Count], touched: float = TOUCHED) -> ChangeCount:
    """The geometric mean over the workloads that a change touches: whether it gains as a whole.

    Rows that could not be counted are passed over.
    """
    logs = [math.log(one.ratio) for one in counts if one.ratio]
    own = [value for value in logs if abs(value) > touched]
    return ChangeCount(math.exp(sum(own) / len(own)) if own else None, len(own), len(logs))


def row_of(
    stamp: Stamp,
    workload_id: str,
    change_id: str,
    seeds: Sequence[SeedCount],
    problem: str = "",
    **columns: object,
) -> Count:
    """The row of a workload; rejected where it has a problem, or one side executes nothing.

    `problem` says why it could not be counted.
    """
    if not problem and not (seeds and all(one.ir_base > 0 and one.ir_head > 0 for one in seeds)):
        problem = "no instruction was counted"
    facts = {**stamp.fields(), "workload_id": workload_id, "change_id": change_id, "seeds": list(seeds), **columns}
    if problem:
        return Count.model_validate(
            {**facts, "status": "rejected", "reason": Reason.NOT_COUNTED.value, "detail": problem}
        )
    ratios = [one.ir_base / one.ir_head for one in seeds]
    facts |= {"ratio": median(ratios), "low": min(ratios), "high": max(ratios)}
    facts |= {"ir_base": round(median(one.ir_base for one in seeds))}
    facts |= {"ir_head": round(median(one.ir_head for one in seeds))}
    return Count.model_validate(facts)


def counts_of(store: TableStore, repo: str) -> dict[str, Count]:
    """The newest row of each counted workload of a repository, by `workload_id`; rejected ones among them."""
    rows = sorted(store.records(Count, repo), key=lambda row: row.created_at)
    return {row.workload_id: row for row in rows}


def ratios_of(store: TableStore, repo: str, tasks: Iterable[Task]) -> dict[str, float]:
    """Of each counted task, by task_id, the geometric mean of base over head over the workloads that it touches."""
    counts = counts_of(store, repo)
    by_change: dict[str, list[Count]] = {}
    for row in counts.values():
        by_change.setdefault(row.change_id, []).append(row)
    found = {task.task_id: change_count(by_change.get(task.change_id, ())) for task in tasks}
    return {name: count.ratio for name, count in found.items() if count.ratio is not None}


def counted(rows: OwnRows) -> set[str]:
    """Ids of the workloads that have a row under these settings, counted or rejected."""
    table = rows.store.scan(Count, rows.name, columns=["workload_id"], **rows.where("count"))
    return set(table["workload_id"].to_pylist())


def workloads_of(rows: OwnRows, task: Task) -> dict[str, tuple[str, str]]:
    """Source and code by `workload_id`: the task's, and those that were timed to a decision beside them.

    A change that makes some workloads execute more shows only in those that were not accepted.
    """
    found = {one.workload_id: (one.source, one.code) for one in task.workloads}
    about = pc.field("change_id") == task.change_id
    decided = {
        row.workload_id for row in rows.store.records(Evidence, rows.name, config_hash=task.config_hash, where=about)
    }
    for row in rows.store.records(Workload, rows.name, where=about):
        if row.workload_id in decided and row.status == "kept":
            found.setdefault(row.workload_id, (row.source, row.code))
    return found
