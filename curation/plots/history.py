"""The history of a repository: when its candidates were merged, how far each came, and which became tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from perfquarry.curation.plots.canvas import drawing, ratio_axis, ratio_range, times
from perfquarry.curation.plots.palette import BLUE, GREEN, GREY, INK
from perfquarry.data.records import Task

LANES = {"build": "not built", "generate": "no workload", "measure": "not timed", "select": "timed, not accepted"}
"""Stages that reject a candidate, and how far it came."""


@dataclass(frozen=True)
class PastCandidate:
    """A change that the judge keeps and that is no task."""

    merged_at: datetime
    stage: str
    """The stage that rejected it, or that has not come to it: a key of `LANES`."""
    text: str


def history_plot(repository: str, candidates: Sequence[PastCandidate], tasks: Sequence[Task]) -> str:
    """SVG of two panels on one axis of time: tasks by their speedup, and below them the other candidates."""
    title = f"{repository}: candidates and tasks by the day on which they were merged"
    kept = [task for task in tasks if task.status == "kept" and task.speedup]
    with drawing(title, _description(candidates, kept), (760, 400)) as plot:
        above, below = plot.axes(2, 1, sharex=True, height_ratios=(3, 2))
        ends = ratio_range([end for task in kept for end in (task.low, task.speedup, task.high) if end])
        ratio_axis(above, "y", ends, "speedup of the task, ×", 6)
        for task in kept:
            if task.low and task.high:
                day: Any = task.created_at_commit
                above.plot([day, day], [task.low, task.high], color=BLUE.light, lw=1.5, alpha=0.6, gid="pq-interval")
        plot.marks(
            above, [task.created_at_commit for task in kept], [task.speedup or 1.0 for task in kept], BLUE, "task",
            [f"{task.created_at_commit:%Y-%m-%d} {task.title}: {times(task.speedup)}" for task in kept],
        )  # fmt: skip
        names = list(LANES)
        below.set_ylim(len(names) - 0.5, -0.5)
        counts = {name: sum(one.stage == name for one in candidates) for name in names}
        below.set_yticks(range(len(names)), [f"{LANES[name]} ({counts[name]:,})" for name in names])
        below.tick_params(axis="y", length=0)
        for y, name in enumerate(names):
            mine = [one for one in candidates if one.stage == name]
            tips = [f"{one.merged_at:%Y-%m-%d} {one.text}" for one in mine]
            colour = GREEN if name == "select" else GREY
            days = [one.merged_at for one in mine]
            plot.marks(below, days, [y] * len(mine), colour, name, tips, marker="|", markersize=11, markeredgewidth=1.5)
        below.set_xlabel("day on which the change was merged, UTC")
        if not kept:
            above.text(0.5, 0.5, "no task yet", transform=above.transAxes, ha="center", color=INK.light)
        if not kept and not candidates:
            below.set_xticks([])
        return plot.svg()


def _description(candidates: Sequence[PastCandidate], tasks: Sequence[Task]) -> str:
    days = sorted([one.merged_at for one in candidates] + [task.created_at_commit for task in tasks])
    span = f" from {days[0]:%Y-%m-%d} to {days[-1]:%Y-%m-%d}" if days else ""
    return f"{len(tasks)} tasks and {len(candidates)} other candidates{span}."
