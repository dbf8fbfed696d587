"""Plots of a release, for its card and its page: the experts' speedups, the funnels, the years."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from perfquarry.curation.plots.canvas import EXTREME, drawing, short
from perfquarry.curation.plots.forest import ForestRow, forest_plot, speedups
from perfquarry.curation.plots.funnel import funnel_plot
from perfquarry.curation.plots.palette import GREY, SERIES
from perfquarry.curation.plots.strips import are_ratios
from perfquarry.curation.release.manifest import Source
from perfquarry.data.records import ReleasedTask

_NAME = 40
"""Characters of a repository's name that are written."""


class ReleasePlot(NamedTuple):
    """A plot with the name of its file."""

    name: str
    title: str
    svg: str


def release_plots(
    tasks: Sequence[ReleasedTask], sources: Sequence[Source], *, headline: bool = True
) -> list[ReleasePlot]:
    """Those with anything in them; figures that no measurement gives, as a stranger's table may hold, are left out."""
    shown = [task for task in tasks if are_ratios((task.low, task.speedup, task.high))]
    funnels = [one.funnel for one in sources if all(0 <= stage.kept <= EXTREME for stage in one.funnel.stages)]
    found = []
    if shown:
        title = "Speedups of the experts"
        rows = [_estimates(task) for task in sorted(shown, key=lambda task: (-task.speedup, task.task_id))]
        svg = forest_plot(title, rows, "time of base over head, × (95 % interval)", headline=headline)
        found.append(ReleasePlot("speedups", title, svg))
    if any(one.stages for one in funnels):
        title = "Changes that each stage kept"
        found.append(ReleasePlot("funnel", title, funnel_plot(title, funnels, headline=headline)))
    if tasks:
        title = "Tasks by the year in which the fix became public"
        found.append(ReleasePlot("years", title, _years(title, tasks, headline=headline)))
    return found


def _estimates(task: ReleasedTask) -> ForestRow:
    overall = task.overall_speedup, task.overall_low, task.overall_high
    kept = task.speedup, task.low, task.high
    return speedups(task.task_id, kept, overall if are_ratios(overall) else (None, None, None))


def _years(title: str, tasks: Sequence[ReleasedTask], *, headline: bool) -> str:
    """Bars with a part for each repository; those beyond the palette are one group."""
    ordered = [name for name, _ in Counter(sorted(task.codebase for task in tasks)).most_common()]
    series = {short(name, _NAME): [name] for name in ordered[: len(SERIES) - 1]}
    if others := ordered[len(SERIES) - 1 :]:
        series["others"] = others
    counts = Counter((task.codebase, task.created_at.year) for task in tasks)
    every = Counter(task.created_at.year for task in tasks)
    years = list(range(min(every), max(every) + 1)) if max(every) - min(every) < 100 else sorted(every)
    what = ", ".join(f"{year} {every[year]}" for year in years)
    with drawing(title, f"tasks by year: {what}.", (760, 280), headline=headline) as plot:
        [axis] = plot.axes()
        below = [0] * len(years)
        for (label, names), colour in zip(series.items(), (*SERIES[:-1], GREY), strict=False):
            heights = [sum(counts[name, year] for name in names) for year in years]
            bars = axis.bar(years, heights, 0.7, below, color=colour.light, label=label, lw=0)
            below = [low + height for low, height in zip(below, heights, strict=True)]
        axis.bar_label(bars, [f"{count:,}" if count else "" for count in below], padding=3)
        axis.set_xlim(years[0] - 0.6, max(years[-1], years[0] + 7) + 0.6)
        axis.set_xticks(years[:: -(-len(years) // 16)])
        axis.set_xlabel("year")
        axis.set_ylabel("tasks")
        axis.set_ylim(0, 1.12 * max(below))
        axis.locator_params(axis="y", integer=True)
        axis.grid(axis="x", visible=False)
        plot.legend()
        return plot.svg()
