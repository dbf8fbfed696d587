"""Speedups in rows of a list: places of a dot and its interval on a logarithmic axis, in per cent of the width.

All other plots are `curation.plots`' (docs/decisions/0047); these are many and small, and rows of HTML.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfquarry.curation.plots.canvas import ratio_ticks, times
from perfquarry.data.records import Evidence

_LEFT, _RIGHT = 1.5, 98.5


@dataclass(frozen=True)
class Tick:
    """A line across the plot with its value."""

    at: float
    text: str


@dataclass(frozen=True)
class Interval:
    """One line of the plot of speedups: a point within its interval, on a logarithmic axis."""

    label: str
    anchor: str
    text: str
    kept: bool
    x: float
    low: float
    high: float
    cut: bool
    """Whether the interval goes on beyond the axis."""


@dataclass(frozen=True)
class Forest:
    """The speedups of several workloads on one axis."""

    ticks: list[Tick]
    rows: list[Interval]
    one: float
    """Place of 1×."""


def seconds(value: float) -> str:
    """A duration with three digits and its unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9)):
        if abs(value) * scale >= 1 or unit == "ns":
            return f"{value * scale:.3g} {unit}"
    raise AssertionError("unreachable")


def share(value: float | None) -> str:
    """A share or a relative spread for people: '1.3 %'."""
    return "–" if value is None else f"{100 * value:.3g} %"


def forest(rows: Iterable[tuple[str, str, Evidence]]) -> Forest | None:
    """Speedups of workloads: label, anchor and evidence of each; None where none has an interval."""
    known = [row for row in rows if row[2].speedup and row[2].low and row[2].high]
    if not known:
        return None
    axis = _axis([end for _, _, one in known for end in (one.low or 1, one.high or 1)])
    return Forest(
        ticks=[Tick(axis.x(value), f"{value:g}×") for value in ratio_ticks(axis.low, axis.high, 4)],
        rows=[
            Interval(
                label,
                anchor,
                f"{times(one.speedup)} [{times(one.low)}, {times(one.high)}]",
                one.status == "kept",
                axis.x(one.speedup or 1),
                axis.x(one.low or 1),
                axis.x(one.high or 1),
                (one.high or 1) > axis.high or (one.low or 1) < axis.low,
            )
            for label, anchor, one in known
        ],
        one=axis.x(1),
    )


def strips(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, tuple[float, float, float] | None]]:
    """Of each row of the list both speedups as low end, value and high end, places on one axis for the page; per cent.

    A speedup without an interval has none.
    """
    kinds = {"kept": ("low", "speedup", "high"), "overall": ("overall_low", "overall_speedup", "overall_high")}
    ends = [value for entry in entries for names in kinds.values() for name in names if (value := entry[name])]
    axis = _axis(ends)
    return [
        {
            kind: (axis.x(entry[low]), axis.x(entry[middle]), axis.x(entry[high])) if entry[low] else None
            for kind, (low, middle, high) in kinds.items()
        }
        | {"one": (axis.x(1.0),) * 3}
        for entry in entries
    ]


def _axis(ends: Iterable[float]) -> _LogAxis:
    low, high = min([0.9, *ends]), max([1.15, *ends])
    return _LogAxis(max(low, 0.2) / 1.03, min(high, 200.0) * 1.03)


class _LogAxis:
    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def x(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(_LEFT + min(1.0, max(0.0, share)) * (_RIGHT - _LEFT), 2)
