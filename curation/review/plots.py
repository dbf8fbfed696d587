"""Plots as geometry: positions that the templates write into inline SVG.

x is in per cent of the width and y in pixels, so that a plot fits any width while text, dots and
lines keep their size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from perfquarry.curation.blocks import Session
from perfquarry.data.records import Evidence, SessionStatistics

HEIGHT = 176
"""Pixels of a plot of pairs."""
TOP, BOTTOM = 10, 156
"""Pixels between which the ratios lie; the numbers of the pairs stand below."""
_LEFT, _RIGHT = 1.5, 98.5
LABELS = 13.0
"""Where the marks of a plot begin, per cent: right of its labels."""
_MOST_NUMBERS = 8
"""Numbers of pairs below a plot."""
_SERIES: tuple[tuple[float, ...], ...] = (
    tuple(round(0.9 + number * 0.01, 2) for number in range(26)),
    tuple(round(0.8 + number * 0.02, 2) for number in range(31)),
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
class PlotMark:
    """The ratio of one pair."""

    x: float
    y: float
    kind: str
    """'pair' or 'aa'."""
    title: str
    cut: bool = False
    """Whether it lies beyond the axis and is drawn at the rim."""


@dataclass(frozen=True)
class Band:
    """A range of ratios, and a line in it."""

    top: float
    height: float
    line: float


@dataclass(frozen=True)
class PairPlot:
    """One session of one workload: base over head of each pair, in the order they ran."""

    caption: str
    number: int
    statistics: SessionStatistics | None
    ticks: list[Tick]
    pairs: list[Tick]
    """Numbers of pairs; `at` is per cent of the width."""
    marks: list[PlotMark]
    estimate: Band | None
    """The session's estimate within its interval."""
    aa: Band | None
    """From the smallest to the largest ratio of base to base."""
    one: float
    """Place of 1×."""


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


def share(value: float | None) -> str:
    """A share or a relative spread for people: '1.3 %'."""
    return "–" if value is None else f"{100 * value:.3g} %"


def pair_plots(sessions: Sequence[Session], evidence: Evidence) -> list[PairPlot]:
    """A plot for each session, all on one axis."""
    shown = [session for session in sessions if session.plain]
    if not shown:
        return []
    statistics = {one.session: one for one in evidence.sessions}
    ends = [end for session in shown for end in _ends(statistics.get(session.number))]
    axis = _pair_axis([log for session in shown for log in (*session.logs, *session.aa_logs)], ends)
    return [_pair_plot(session, statistics.get(session.number), axis) for session in shown]


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


def _pair_plot(session: Session, statistics: SessionStatistics | None, axis: _LogAxis) -> PairPlot:
    pairs, aa = np.exp(session.logs).tolist(), np.exp(session.aa_logs).tolist()
    places = _places(len(pairs))
    marks = [
        _mark(axis, place, value, "aa", f"A/A {number}, base over base")
        for number, (place, value) in enumerate(zip(_places(len(aa)), aa, strict=True), 1)
    ]
    marks += [
        _mark(axis, place, value, "pair", f"pair {number}, base over head")
        for number, (place, value) in enumerate(zip(places, pairs, strict=True), 1)
    ]
    every = -(-len(pairs) // _MOST_NUMBERS)
    return PairPlot(
        caption=f"Session {session.number}: {'selects' if session.number % 2 else 'confirms'}",
        number=session.number,
        statistics=statistics,
        ticks=[Tick(axis.y(value), f"{value:g}×") for value in axis.ticks()],
        pairs=[Tick(place, str(number)) for number, place in enumerate(places, 1) if (number - 1) % every == 0],
        marks=marks,
        estimate=_band(axis, statistics.low, statistics.high, statistics.speedup) if statistics else None,
        aa=_band(axis, min(aa), max(aa), 1.0) if aa else None,
        one=axis.y(1.0),
    )


def _places(number: int) -> list[float]:
    """Middles of so many columns right of the labels, per cent."""
    step = (_RIGHT - LABELS) / max(1, number)
    return [round(LABELS + step * (place + 0.5), 2) for place in range(number)]


def _mark(axis: _LogAxis, x: float, value: float, kind: str, title: str) -> PlotMark:
    cut = not axis.low <= value <= axis.high
    return PlotMark(x, axis.y(value), kind, f"{title}: {value:.4g}×{', beyond the axis' if cut else ''}", cut)


def _band(axis: _LogAxis, low: float, high: float, line: float) -> Band:
    top, bottom = axis.y(high), axis.y(low)
    return Band(top, round(max(1.0, bottom - top), 1), axis.y(line))


def _ends(statistics: SessionStatistics | None) -> list[float]:
    return [math.log(end) for end in (statistics.low, statistics.high) if end > 0] if statistics else []


def _pair_axis(logs: Sequence[float], ends: Sequence[float]) -> _LogAxis:
    """1×, the intervals and the pairs, without those far away (they are drawn at the rim)."""
    first, third = np.percentile(logs, [25, 75])
    reach = 3 * max(third - first, 0.02)
    inside = [0.0, *ends, *(log for log in logs if first - reach <= log <= third + reach)]
    low, high = min(inside), max(inside)
    room = max(0.06 * (high - low), 0.01)
    return _LogAxis(math.exp(low - room), math.exp(high + room))


class _LogAxis:
    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def x(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(_LEFT + min(1.0, max(0.0, share)) * (_RIGHT - _LEFT), 2)

    def y(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(BOTTOM - min(1.0, max(0.0, share)) * (BOTTOM - TOP), 1)

    def ticks(self) -> list[float]:
        """The finest of the usual series of which at most seven values are inside, and that goes far enough."""
        inside: list[float] = []
        for series in _SERIES:
            inside = [value for value in series if self.low <= value <= self.high]
            if len(inside) <= 7 and 2 * series[-1] >= self.high:
                break
        return inside
