"""Plots of a release as SVG: the experts' speedups, the funnels, the years."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from perfquarry.curation.plots.bars import bar_plot
from perfquarry.curation.plots.forest import forest_plot, speedups
from perfquarry.curation.plots.funnel import funnel_plot
from perfquarry.curation.release.manifest import Source
from perfquarry.data.records import ReleasedTask


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
    rows = [
        speedups(
            task.task_id,
            (task.speedup, task.low, task.high),
            (task.overall_speedup, task.overall_low, task.overall_high),
        )
        for task in sorted(tasks, key=lambda task: -task.speedup)
    ]
    return forest_plot("Speedup of the experts' versions", rows, "time of base over head, × (95 % interval)")


def _funnel(sources: Sequence[Source]) -> str:
    return funnel_plot("Changes that each stage kept", [source.funnel for source in sources])


def _years(tasks: Sequence[ReleasedTask]) -> str:
    counts = Counter(task.created_at.year for task in tasks)
    years = {str(year): counts[year] for year in range(min(counts), max(counts) + 1)}
    return bar_plot("Tasks by the year in which the fix became public", years, ("year", "tasks"))
