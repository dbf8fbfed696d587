"""Plots as geometry: positions that the templates write into inline SVG.

x is in per cent of the width and y in pixels, so that a plot fits any width while text, dots and
lines keep their size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from curation.blocks import Session
from data.records import Evidence, SessionStatistics

HEIGHT = 132
"""Pixels of a plot of blocks."""
_TOP, _BOTTOM = 18, 124
_LEFT, _RIGHT = 1.5, 98.5
_LABELS = 10.0
"""Where the marks of a plot begin: right of its labels."""
_SERIES: tuple[tuple[float, ...], ...] = (
    tuple(round(0.9 + number * 0.05, 2) for number in range(14)),
    tuple(round(0.5 + number * 0.1, 1) for number in range(16)),
    (0.5, 0.75, 1, 1.25, 1.5, 2, 2.5, 3, 4),
    (0.5, 1, 1.5, 2, 3, 4, 6, 8),
    (0.5, 1, 2, 5, 10, 20, 50),
    (0.2, 1, 5, 20, 100),
    (1, 10, 100),
)


@dataclass(frozen=True)
class Tick:
    """A line across the plot with its value."""

    at: float
    text: str


@dataclass(frozen=True)
class Mark:
    """A block's value of one side, and the quartiles of its samples."""

    x: float
    y: float
    low: float
    high: float
    kind: str
    title: str


@dataclass(frozen=True)
class BlockPlot:
    """One session of one workload: a pair of marks a block, the medians of both sides."""

    caption: str
    statistics: SessionStatistics | None
    ticks: list[Tick]
    marks: list[Mark]
    base: float | None
    head: float | None


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


def times(value: float | None) -> str:
    """A speedup for people: '1.42×'."""
    if value is None:
        return "–"
    return f"{value:.2f}×" if value < 10 else f"{value:.1f}×" if value < 100 else f"{value:.0f}×"


def seconds(value: float) -> str:
    """A duration with three digits and its unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9)):
        if abs(value) * scale >= 1 or unit == "ns":
            return f"{value * scale:.3g} {unit}"
    raise AssertionError("unreachable")


def block_plots(sessions: Sequence[Session], evidence: Evidence) -> list[BlockPlot]:
    """A plot a session, all with one scale."""
    statistics = {one.session: one for one in evidence.sessions}
    values = [
        value
        for session in sessions
        for block in (*session.plain, *session.aa)
        for value in (block.base, block.head)
        if math.isfinite(value)
    ]
    if not values:
        return []
    scale = _Scale(*_range(values))
    return [_block_plot(session, statistics.get(session.number), scale) for session in sessions if session.plain]


def forest(rows: Iterable[tuple[str, str, Evidence]]) -> Forest | None:
    """Speedups of workloads: label, anchor and evidence of each; None where none has an interval."""
    known = [row for row in rows if row[2].speedup and row[2].low and row[2].high]
    if not known:
        return None
    low = min([0.9, *(one.low or 1 for _, _, one in known)])
    high = max([1.15, *(one.high or 1 for _, _, one in known)])
    low, high = max(low, 0.2), min(high, 200.0)
    axis = _LogAxis(low / 1.03, high * 1.03)
    return Forest(
        ticks=[Tick(axis.x(value), f"{value:g}×") for value in axis.ticks()],
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


def _block_plot(session: Session, statistics: SessionStatistics | None, scale: _Scale) -> BlockPlot:
    step = (_RIGHT - _LABELS) / max(1, len(session.plain))
    marks = []
    for number, block in enumerate(session.plain):
        left = _LABELS + step * (number + 0.32)
        marks += [
            scale.mark(left, block.base, "base", f"block {number + 1}, base", block.base_quartiles),
            scale.mark(left + step * 0.36, block.head, "head", f"block {number + 1}, head", block.head_quartiles),
        ]
    every = (_RIGHT - _LABELS) / max(1, len(session.aa))
    marks += [
        scale.mark(_LABELS + every * (number + 0.5), block.head, "aa", "A/A: the base once more")
        for number, block in enumerate(session.aa)
    ]
    name = f"Session {session.number}: {'selects' if session.number % 2 else 'confirms'}"
    return BlockPlot(
        name,
        statistics,
        scale.ticks(),
        marks,
        scale.y(statistics.base_median) if statistics else None,
        scale.y(statistics.head_median) if statistics else None,
    )


def _range(values: Sequence[float]) -> tuple[float, float]:
    """The values without outliers far away (they are drawn at the rim)."""
    first, third = np.percentile(values, [25, 75])
    reach = 2 * max(third - first, 0.02 * third)
    inside = [value for value in values if first - reach <= value <= third + reach]
    low, high = min(inside), max(inside)
    room = max((high - low) * 0.08, high * 0.005)
    return max(0.0, low - room), high + room


class _Scale:
    """Seconds to pixels; larger is higher."""

    def __init__(self, low: float, high: float) -> None:
        self._low, self._high = low, high if high > low else low + 1e-9

    def y(self, value: float) -> float:
        share = (value - self._low) / (self._high - self._low)
        return round(_BOTTOM - min(1.0, max(0.0, share)) * (_BOTTOM - _TOP), 1)

    def mark(self, x: float, value: float, kind: str, title: str, quartiles: tuple[float, float] | None = None) -> Mark:
        low, high = quartiles or (value, value)
        return Mark(round(x, 2), self.y(value), self.y(low), self.y(high), kind, f"{title}: {seconds(value)}")

    def ticks(self) -> list[Tick]:
        span = self._high - self._low
        step = 10.0 ** math.floor(math.log10(span / 2))
        step = next(step * factor for factor in (1, 2, 5, 10) if span / (step * factor) <= 3.5)
        first = math.ceil(self._low / step)
        values = [number * step for number in range(first, math.floor(self._high / step) + 1)]
        return [Tick(self.y(value), seconds(value)) for value in values]


class _LogAxis:
    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def x(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(_LEFT + min(1.0, max(0.0, share)) * (_RIGHT - _LEFT), 2)

    def ticks(self) -> list[float]:
        """The finest of the usual series of which at most seven values are inside, and that goes far enough."""
        inside: list[float] = []
        for series in _SERIES:
            inside = [value for value in series if self.low <= value <= self.high]
            if len(inside) <= 7 and 2 * series[-1] >= self.high:
                break
        return inside
