"""Plots of a release as SVG: the experts' speedups, the funnels, the years."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perfquarry.curation.release.manifest import Source
from perfquarry.curation.release.templates import render
from perfquarry.data.records import ReleasedTask

WIDTH = 900
_LEFT, _RIGHT, _ROW, _TOP = 330, 90, 18, 64
_STAGES = ("mined", "performance?", "built", "with workloads", "timed", "accepted")


@dataclass(frozen=True)
class _Axis:
    """A logarithmic axis between two values."""

    low: float
    high: float
    left: float = _LEFT
    right: float = WIDTH - _RIGHT

    def at(self, value: float) -> float:
        """Place of a value, pixels; values beyond the ends lie on them."""
        share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return self.left + min(share, 1.0) * (self.right - self.left)

    @property
    def ticks(self) -> list[float]:
        """1, 2, 3, 5 of every decade; near 1 also 1.2 and 1.5."""
        decades = [10.0**power * digit for power in range(-1, 8) for digit in (1, 2, 3, 5)]
        return sorted(tick for tick in {*decades, 1.2, 1.5} if self.low <= tick <= self.high)


def write_plots(folder: Path, tasks: Sequence[ReleasedTask], sources: Sequence[Source]) -> list[str]:
    """Writes the plots into `plots/`; returns their names without the ending. None without tasks."""
    plots = {"funnel": _funnel(sources)}
    if tasks:
        plots |= {"speedups": _speedups(tasks), "years": _years(tasks)}
    (folder / "plots").mkdir(parents=True, exist_ok=True)
    for name, text in plots.items():
        (folder / "plots" / f"{name}.svg").write_text(text, encoding="utf-8")
    return list(plots)


def _speedups(tasks: Sequence[ReleasedTask]) -> str:
    ordered = sorted(tasks, key=lambda task: -task.speedup)
    axis = _Axis(1.0, max(2.0, 1.05 * max(task.high for task in tasks)))
    rows = [
        {
            "name": task.task_id,
            "y": _TOP + _ROW * number,
            "x": axis.at(task.speedup),
            "low": axis.at(task.low),
            "high": axis.at(task.high),
            "text": f"{task.speedup:.2f}×" if task.speedup < 100 else f"{task.speedup:.0f}×",
        }
        for number, task in enumerate(ordered)
    ]
    ticks = [(axis.at(tick), f"{tick:g}×") for tick in _apart(axis)]
    height = _TOP + _ROW * len(rows) + 14
    return render("plot_speedups.svg.jinja", rows=rows, ticks=ticks, width=WIDTH, height=height, top=_TOP)


def _funnel(sources: Sequence[Source]) -> str:
    axis = _Axis(0.9, max([2.0, *(source.funnel.stages[0].kept for source in sources)]), left=200)
    groups = []
    y = 56.0
    for source in sources:
        bars = [
            {"name": name, "count": stage.kept, "y": y + 24 + 20 * number, "width": _bar(axis, stage.kept)}
            for number, (name, stage) in enumerate(zip(_STAGES, source.funnel.stages, strict=True))
        ]
        groups.append({"name": source.codebase, "y": y, "bars": bars})
        y += 24 + 20 * len(bars) + 20
    return render("plot_funnel.svg.jinja", groups=groups, left=axis.left, width=WIDTH, height=y)


def _bar(axis: _Axis, count: int) -> float:
    return axis.at(count) - axis.left if count else 0.0


def _years(tasks: Sequence[ReleasedTask]) -> str:
    counts = Counter(task.created_at.year for task in tasks)
    years = range(min(counts), max(counts) + 1)
    most, step = max(counts.values()), (WIDTH - 80) / len(years)
    bars = [
        {"year": year, "count": counts[year], "x": 40 + step * number, "height": 150 * counts[year] / most}
        for number, year in enumerate(years)
    ]
    return render("plot_years.svg.jinja", bars=bars, step=step, width=WIDTH, height=250, floor=216)


def _apart(axis: _Axis) -> list[float]:
    """Ticks that leave room for their labels."""
    kept: list[float] = []
    for tick in axis.ticks:
        if not kept or axis.at(tick) - axis.at(kept[-1]) >= 40:
            kept.append(tick)
    return kept
