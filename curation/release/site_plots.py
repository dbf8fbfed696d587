"""Plots of a whole dataset, for its page: speedups, the funnels, the years."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from perfquarry.curation.plots.canvas import drawing, ratio_axis, ratio_range, short, times
from perfquarry.curation.plots.palette import GREY, HEAD, SERIES, Colour
from perfquarry.curation.plots.strips import MOST, are_ratios
from perfquarry.curation.release.manifest import Source
from perfquarry.data.records import ReleasedTask

_MARKERS = "osD^vX"
_NAME = 40
"""Characters of a repository's name that are written."""


def dataset_plots(tasks: Sequence[ReleasedTask], sources: Sequence[Source]) -> list[tuple[str, str]]:
    """Titles and SVG; a plot without anything in it is left out."""
    sources = [one for one in sources if all(0 <= stage.kept <= MOST for stage in one.funnel.stages)]
    shown = [task for task in tasks if are_ratios((task.low, task.speedup, task.high))]
    drawn: list[tuple[str, Callable[[], str], bool]] = [
        ("Speedups of the experts", lambda: _speedups(shown), bool(shown)),
        ("Changes that each stage kept", lambda: _funnels(sources), any(one.funnel.stages for one in sources)),
        ("Tasks by the year in which the fix became public", lambda: _years(tasks), bool(tasks)),
    ]
    return [(title, draw()) for title, draw, filled in drawn if filled]


def _speedups(tasks: Sequence[ReleasedTask]) -> str:
    ordered = sorted(tasks, key=lambda task: (-task.speedup, task.task_id))
    what = f"The expert's speedup of {len(ordered)} tasks with its 95 % interval, the largest first."
    with drawing("Speedups of the experts", what, (760, min(150 + 16 * len(ordered), 620)), headline=False) as plot:
        [axis] = plot.axes()
        ends = ratio_range([value for task in ordered for value in (task.low, task.speedup, task.high)])
        ratio_axis(axis, "x", ends, "speedup, ×")
        axis.set_ylim(len(ordered) + 0.5, 0.5)
        axis.set_ylabel("task, the fastest first")
        axis.grid(axis="y", visible=False)
        axis.hlines(
            range(1, len(ordered) + 1), [one.low for one in ordered], [one.high for one in ordered], color=HEAD.light,
            lw=1.5, alpha=0.5, label="95 % interval",
        )  # fmt: skip
        tips = [f"{one.task_id}: {times(one.speedup)} [{times(one.low)}, {times(one.high)}]" for one in ordered]
        speedups, places = [one.speedup for one in ordered], list(range(1, len(ordered) + 1))
        plot.marks(axis, speedups, places, HEAD, "speedup", tips, markersize=4, label="speedup")
        plot.legend()
        return plot.svg()


def _series(names: Sequence[str]) -> dict[str, tuple[str, Colour, str]]:
    """Label, colour and marker of each repository: those beyond the palette are one group."""
    own = dict(zip(names[: len(SERIES) - 1], zip(SERIES, _MARKERS, strict=True), strict=False))
    return {name: (short(name, _NAME), *own[name]) if name in own else ("others", GREY, "X") for name in names}


def _funnels(sources: Sequence[Source]) -> str:
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    series = _series([one.codebase for one in sources])
    parts = [
        f"{one.codebase}: {', '.join(f'{stage.stage} {stage.kept}' for stage in one.funnel.stages)}" for one in sources
    ]
    what = "; ".join(parts)
    with drawing("Changes that each stage kept", what, (760, 340), headline=False) as plot:
        [axis] = plot.axes()
        axis.set_yscale("symlog", linthresh=1)
        axis.set_ylabel("changes (log scale)")
        axis.grid(axis="x", visible=False)
        for one in sources:
            label, colour, marker = series[one.codebase]
            kept = [stage.kept for stage in one.funnel.stages]
            places = list(range(len(kept)))
            axis.plot(places, kept, color=colour.light, lw=1.5, alpha=0.6)
            tips = [f"{one.codebase}, {stage.stage}: {stage.kept:,}" for stage in one.funnel.stages]
            plot.marks(axis, places, kept, colour, "stage", tips, marker=marker, label=label)
        longest = max((one.funnel.stages for one in sources), key=len)
        axis.set_xticks(range(len(longest)), [stage.stage for stage in longest])
        most = max(stage.kept for one in sources for stage in one.funnel.stages)
        ticks = [0, *(10**power for power in range(len(str(most)) + 1) if 10**power <= 2 * most)]
        axis.yaxis.set_major_locator(FixedLocator(ticks))
        axis.yaxis.set_major_formatter(FixedFormatter([f"{tick:,}" for tick in ticks]))
        axis.yaxis.set_minor_locator(NullLocator())
        axis.set_ylim(0, 1.6 * most + 1)
        plot.legend()
        return plot.svg()


def _years(tasks: Sequence[ReleasedTask]) -> str:
    from matplotlib.ticker import MaxNLocator

    names = [name for name, _ in Counter(task.codebase for task in sorted(tasks, key=_codebase)).most_common()]
    series = _series(names)
    counts = Counter((series[task.codebase][0], task.created_at.year) for task in tasks)
    years = sorted({task.created_at.year for task in tasks})
    what = ", ".join(f"{year}: {sum(task.created_at.year == year for task in tasks)}" for year in years)
    with drawing("Tasks by year", f"{what}.", (760, 280), headline=False) as plot:
        [axis] = plot.axes()
        axis.grid(axis="x", visible=False)
        below = dict.fromkeys(years, 0)
        for label, colour in {label: colour for label, colour, _ in series.values()}.items():
            heights = [counts[label, year] for year in years]
            axis.bar(years, heights, 0.7, [below[year] for year in years], color=colour.light, label=label, lw=0)
            below = {year: below[year] + height for year, height in zip(years, heights, strict=True)}
        axis.set_xticks(years, [str(year) for year in years])
        axis.set_ylabel("tasks")
        axis.yaxis.set_major_locator(MaxNLocator(6, integer=True))
        plot.legend()
        return plot.svg()


def _codebase(task: ReleasedTask) -> str:
    return task.codebase
