"""Lines over a linear axis: curves of an evaluation, of a benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perfquarry.curation.plots.canvas import drawing
from perfquarry.curation.plots.palette import SERIES, SOFT

Points = Sequence[tuple[float, float]]
_MARKERS = "osD^vP"


def line_plot(
    title: str,
    series: Mapping[str, Points],
    axes: tuple[str, str],
    ticks: tuple[Sequence[float], Sequence[float]],
    *,
    percent: bool = False,
    headline: bool = True,
    diagonal: str = "",
) -> str:
    """SVG with a line for each series, which differ in colour and in marks.

    `series` has points by name. Of `ticks`, the values to write at both axes, the outer ones are the ends; with
    `percent`, y is a share. `diagonal` names a line of equal values.
    """
    description = f"{axes[1]} by {axes[0]}: {', '.join(series)}."
    with drawing(title, description, (640, 360), headline=headline) as plot:
        (axis,) = plot.axes()
        across, up = ticks
        room = [0.02 * (values[-1] - values[0]) for values in ticks]
        axis.set_xlim(across[0] - room[0], across[-1] + room[0])
        axis.set_ylim(up[0] - room[1], up[-1] + room[1])
        axis.set_xticks(across, [f"{tick:g}" for tick in across])
        axis.set_yticks(up, [f"{100 * tick:g} %" if percent else f"{tick:g}" for tick in up])
        axis.set_xlabel(axes[0])
        axis.set_ylabel(axes[1])
        if diagonal:
            axis.plot([across[0], across[-1]], [up[0], up[-1]], color=SOFT.light, lw=1, ls=(0, (4, 3)), label=diagonal)
        for number, (name, points) in enumerate(series.items()):
            colour, marker = SERIES[number % len(SERIES)], _MARKERS[number % len(_MARKERS)]
            tips = [f"{name}: {x:g}, {f'{100 * y:.1f} %' if percent else f'{y:.3g}'}" for x, y in points]
            places = [x for x, _ in points], [y for _, y in points]
            how: dict[str, Any] = {"linestyle": "-", "lw": 2, "marker": marker, "markersize": 4, "label": name}
            plot.marks(axis, *places, colour, f"line-{number + 1}", tips, **how)
        plot.legend()
        return plot.svg()
