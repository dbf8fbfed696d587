"""Estimates within their intervals, one row each, on a logarithmic axis: speedups of tasks, workloads, attempts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from perfquarry.curation.plots.canvas import drawing, ratio_axis, ratio_range, short, times
from perfquarry.curation.plots.palette import HEAD, ORANGE, SOFT, Colour

MOST_NAMES = 48
"""Rows with a name and figures beside them; more rows are a distribution, without names."""
_SIZE, _ROW = 760, 22


@dataclass(frozen=True)
class Kind:
    """What estimates of one colour and shape are."""

    name: str
    colour: Colour
    marker: str = "o"
    hollow: bool = False


KEPT = Kind("kept workloads", HEAD)
OVERALL = Kind("all timed workloads", ORANGE, "D", hollow=True)


@dataclass(frozen=True)
class Estimate:
    """A value and its 95 % interval, where one is known."""

    kind: Kind
    value: float
    low: float | None
    high: float | None

    @property
    def text(self) -> str:
        """'1.42× [1.40×, 1.44×]'."""
        interval = f" [{times(self.low)}, {times(self.high)}]" if self.low and self.high else ""
        return f"{times(self.value)}{interval}"


@dataclass(frozen=True)
class ForestRow:
    """One thing with its estimates."""

    name: str
    estimates: Sequence[Estimate]


def speedups(
    name: str,
    kept: tuple[float | None, float | None, float | None],
    overall: tuple[float | None, float | None, float | None],
) -> ForestRow:
    """A task: value, low and high of the speedup over its kept, and over all its timed workloads."""
    known = [
        Estimate(kind, value, low, high) for kind, (value, low, high) in ((KEPT, kept), (OVERALL, overall)) if value
    ]
    return ForestRow(name, known)


def forest_plot(title: str, rows: Sequence[ForestRow], label: str, *, headline: bool = True) -> str:
    """SVG with the rows from top to bottom in the order given.

    Up to `MOST_NAMES` rows have their names to the left and their figures to the right.
    """
    named = len(rows) <= MOST_NAMES
    step = _ROW if named else max(2.0, MOST_NAMES * _ROW / len(rows))
    kinds = list(dict.fromkeys(one.kind for row in rows for one in row.estimates))
    ends = [end for row in rows for one in row.estimates for end in (one.low, one.value, one.high) if end]
    with drawing(title, _description(rows), (_SIZE, 110 + step * max(1, len(rows))), headline=headline) as plot:
        (axis,) = plot.axes()
        ratio_axis(axis, "x", ratio_range(ends), label)
        axis.grid(axis="y", visible=False)
        axis.set_ylim(len(rows) - 0.5, -0.5)
        axis.tick_params(axis="y", length=0)
        if named:
            axis.set_yticks(range(len(rows)), [short(row.name, 44) for row in rows])
            _figures(axis, rows)
        else:
            axis.set_yticks([])
            axis.set_ylabel(f"{len(rows):,} in the order of their speedup")
        for number, kind in enumerate(kinds):
            shift = 0.0 if len(kinds) == 1 else 0.36 * (number / (len(kinds) - 1) - 0.5)
            found = [(y + shift, row, one) for y, row in enumerate(rows) for one in row.estimates if one.kind == kind]
            for y, _, one in found:
                if one.low and one.high:
                    axis.plot(
                        [one.low, one.high], [y, y], color=kind.colour.light, lw=2 if named else 1, gid="pq-interval"
                    )
            how: dict[str, Any] = {"markerfacecolor": "none", "markeredgewidth": 1.5} if kind.hollow else {}
            tips = [f"{row.name}, {kind.name}: {one.text}" for _, row, one in found]
            places = [one.value for _, _, one in found], [y for y, _, _ in found]
            name = f"estimate-{number + 1}"
            how |= {"marker": kind.marker, "label": kind.name, "markersize": 6 if named else 3}
            plot.marks(axis, *places, kind.colour, name, tips, **how)
        if len(kinds) > 1:
            plot.legend()
        return plot.svg()


def _figures(axis: Any, rows: Sequence[ForestRow]) -> None:
    """The first estimate of each row in figures, right of the axis."""
    for y, row in enumerate(rows):
        if row.estimates:
            place = {"xy": (1, y), "xycoords": ("axes fraction", "data"), "xytext": (8, 0)}
            text = row.estimates[0].text
            axis.annotate(
                text, **place, textcoords="offset points", va="center", color=SOFT.light, annotation_clip=False
            )


def _description(rows: Sequence[ForestRow]) -> str:
    shown = [f"{row.name} {one.text}" for row in rows[:12] for one in row.estimates[:1]]
    more = f", and {len(rows) - 12} more" if len(rows) > 12 else ""
    return f"Estimates with 95 % intervals: {'; '.join(shown) or 'none'}{more}."
