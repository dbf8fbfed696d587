"""A plot of timings: base and head of the tasks of a repository, block by block."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from jinja2 import Environment, FileSystemLoader

from perfquarry.data.records import Task
from perfquarry.flows.reports import times

ROWS = 24
"""Tasks shown at most, the fastest first."""
LEFT, WIDTH = 330, 400
"""Place of the time axis (pixels)."""
_TEMPLATES = Path(__file__).with_name("templates")
_TICKS = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 2.0, 5.0, 10.0, 0.8, 1.25, 0.9, 1.1, 0.95, 1.05)
"""Marks of the axis: those that would lie on an earlier one are left out."""
_APART = 32


def timing_plot(repository: str, tasks: Sequence[Task]) -> str | None:
    """SVG of both sides' block values, relative to the base's median of the session; None without accepted tasks.

    Of each task the workload with the largest gain is shown.
    """
    ranked = sorted((task for task in tasks if task.status == "kept"), key=lambda task: -(task.speedup or 0))
    rows = [(task, *sides) for task in ranked[:ROWS] if (sides := _sides(task))]
    if not rows:
        return None
    values = [value for _, base, head in rows for value in (*base, *head)]
    low, high = math.log(min(values) / 1.05), math.log(max(values) * 1.05)

    def place(value: float) -> float:
        return LEFT + WIDTH * (math.log(value) - low) / (high - low)

    ticks: dict[float, float] = {}
    for tick in _TICKS:
        if low <= math.log(tick) <= high and all(abs(place(tick) - other) >= _APART for other in ticks.values()):
            ticks[tick] = place(tick)
    environment = Environment(loader=FileSystemLoader(_TEMPLATES), autoescape=True, trim_blocks=True)
    return environment.get_template("timings.svg.jinja").render(
        title=f"{repository}: time of a block, relative to the base's median",
        ticks=[(f"{tick:g}", x) for tick, x in ticks.items()],
        rows=[
            {
                "title": task.title if len(task.title) <= 44 else task.title[:43] + "…",
                "task": task.task_id,
                "speedup": times(task.speedup),
                "shown": times(1 / median(head)),
                "sides": [
                    ("#b45309", -6, [*map(place, base)], place(median(base))),
                    ("#15803d", 6, [*map(place, head)], place(median(head))),
                ],
            }
            for task, base, head in rows
        ],
    )


def _sides(task: Task) -> tuple[list[float], list[float]] | None:
    """Block values of base and head of the workload with the largest gain, over the base's median of each session."""
    by_node: dict[str, tuple[list[float], list[float]]] = {}
    for session in json.loads(task.durations):
        for node, sides in session.items():
            if sides.get("base") and sides.get("head") and (unit := median(sides["base"])) > 0:
                base, head = by_node.setdefault(node, ([], []))
                base += [value / unit for value in sides["base"]]
                head += [value / unit for value in sides["head"]]
    return min(by_node.values(), key=lambda sides: median(sides[1])) if by_node else None
