"""The pairs of processes of one workload: base over head, in the order they ran."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from perfquarry.curation.blocks import Block, Session
from perfquarry.curation.plots.canvas import (
    NARROW,
    WIDTH,
    Drawing,
    drawable,
    drawing,
    ratio_axis,
    ratio_range,
    short,
    times,
)
from perfquarry.curation.plots.palette import AA, HEAD, NOISE, SOFT, Colour
from perfquarry.data.records import SessionStatistics

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BUSY = 0.25
"""Share of the core that others used during a pair, from which its mark says so."""


@dataclass(frozen=True)
class PairRatio:
    """One pair of processes."""

    ratio: float
    """Base over head; of an A/A pair base over base."""
    at: float | None = None
    """Seconds after the workload's first pair; None where nobody knows."""
    low: float | None = None
    """Lower quartile of the ratios of the pair's turns."""
    high: float | None = None
    load: float = 0.0
    """CPU seconds per second that others used on the core."""


@dataclass(frozen=True)
class PairSession:
    """The pairs of one session."""

    number: int
    pairs: Sequence[PairRatio]
    aa: Sequence[PairRatio] = ()
    estimate: tuple[float, float, float] | None = None
    """Low end of the 95 % interval, speedup, high end."""

    @property
    def name(self) -> str:
        """Its number and its part: odd sessions choose, even ones confirm."""
        return f"session {self.number}: {'selects' if self.number % 2 else 'confirms'}"


def pair_sessions(sessions: Sequence[Session], statistics: Sequence[SessionStatistics] = ()) -> list[PairSession]:
    """What the plot needs of the sessions of one workload, with their estimates where there are any."""
    known = {one.session: (one.low, one.speedup, one.high) for one in statistics}
    times_of = [block.at.timestamp() for one in sessions for block in (*one.plain, *one.aa) if block.at]
    first = min(times_of) if len(set(times_of)) > 1 else None  # rows that were copied have one time

    def ratio(block: Block) -> PairRatio:
        low, high = map(math.exp, block.middle) if block.middle else (None, None)
        at = block.at.timestamp() - first if block.at and first is not None else None
        return PairRatio(math.exp(block.log), at, low, high, block.load)

    return [
        PairSession(one.number, [*map(ratio, one.plain)], [*map(ratio, one.aa)], known.get(one.number))
        for one in sessions
        if one.plain
    ]


def pairs_plot(title: str, sessions: Sequence[PairSession], *, narrow: bool = False, headline: bool = True) -> str:
    """SVG of all sessions on one logarithmic axis of ratios, side by side, or below each other where `narrow`.

    A mark is a pair; the line through it the middle half of its turns. Pairs far away lie at the rim, as triangles
    with their value.
    """
    shown = [one for one in sessions if one.pairs]
    number = max(1, len(shown))
    size = (NARROW, 150 + 170 * number) if narrow else (WIDTH, 290)
    with drawing(title, _description(shown), size, headline=headline) as plot:
        axes = plot.axes(*((number, 1) if narrow else (1, number)), sharey=not narrow)
        ends = _ends(shown)
        timed = all(pair.at is not None for one in shown for pair in (*one.pairs, *one.aa))
        for axis, one in zip(axes, shown, strict=False):
            ratio_axis(axis, "y", ends, "base over head, ×" if narrow or axis is axes[0] else "", 5 if narrow else 7)
            axis.set_title(one.name)
            axis.grid(axis="x", visible=False)
            _Panel(plot, axis, one, ends, timed=timed).draw()
        plot.legend(ncols=1 if narrow else 3)
        return plot.svg()


class _Panel:
    """One session."""

    def __init__(
        self, plot: Drawing, axis: Axes, session: PairSession, ends: tuple[float, float], *, timed: bool
    ) -> None:
        self._plot, self._axis, self._session, self._ends, self._timed = plot, axis, session, ends, timed
        every = [pair.at or 0.0 for pair in (*session.pairs, *session.aa)]
        self._first = min(every)
        self._unit, self._seconds = ("min", 60.0) if max(every) - min(every) > 180 else ("s", 1.0)

    def draw(self) -> None:
        """Bands below, marks above."""
        axis, one = self._axis, self._session
        axis.set_xlabel(f"time since its first pair, {self._unit}" if self._timed else "pair, in the order they ran")
        if one.aa:
            ratios = [pair.ratio for pair in one.aa]
            axis.axhspan(min(ratios), max(ratios), color=AA.light, alpha=0.22, lw=0, label="A/A: its range")
        if one.estimate:
            low, middle, high = one.estimate
            axis.axhspan(low, high, color=HEAD.light, alpha=0.2, lw=0, label="95 % interval")
            axis.axhline(middle, color=HEAD.light, lw=1.5, ls=(0, (5, 3)), label="speedup")
        pairs = list(zip(self._places(one.pairs), one.pairs, strict=True))
        for place, pair in pairs:
            if pair.low and pair.high:
                colour = NOISE if pair.load >= BUSY else HEAD
                axis.plot([place, place], [pair.low, pair.high], color=colour.light, lw=1.5, alpha=0.5, gid="pq-turns")
        calm = [mark for mark in pairs if mark[1].load < BUSY]
        busy = [mark for mark in pairs if mark[1].load >= BUSY]
        self._marks(calm, HEAD, "pair", "a pair (line: half of its turns)")
        self._marks(busy, NOISE, "busy", f"others used ≥ {100 * BUSY:.0f} % of the core", marker="D")
        aa = list(zip(self._places(one.aa), one.aa, strict=True))
        self._marks(aa, AA, "aa", "A/A: base over base", markerfacecolor="none", markeredgewidth=1.3)

    def _places(self, pairs: Sequence[PairRatio]) -> list[float]:
        if self._timed:
            return [((pair.at or 0.0) - self._first) / self._seconds for pair in pairs]
        step = len(self._session.pairs) / max(1, len(pairs))
        return [1 + step * place for place in range(len(pairs))]

    def _marks(
        self, marks: Sequence[tuple[float, PairRatio]], colour: Colour, name: str, label: str, **how: Any
    ) -> None:
        low, high = self._ends
        beyond = [mark for mark in marks if not low <= mark[1].ratio <= high]
        inside = [mark for mark in marks if low <= mark[1].ratio <= high]
        tips = [self._tip(name, pair) for _, pair in inside]
        how = {"markersize": 5, "label": label, "clip_on": False} | how
        self._plot.marks(
            self._axis, [x for x, _ in inside], [pair.ratio for _, pair in inside], colour, name, tips, **how
        )
        for x, pair in beyond:
            up = pair.ratio > high
            how |= {"marker": "^" if up else "v", "label": None}
            tip = f"{self._tip(name, pair)}; beyond the axis"
            self._plot.marks(self._axis, [x], [high if up else low], colour, "beyond", [tip], **how)
            place, shift = ("top", -6) if up else ("bottom", 6)
            text: dict[str, Any] = {
                "textcoords": "offset points",
                "ha": "center",
                "va": place,
                "fontsize": 10,
                "color": SOFT.light,
            }
            self._axis.annotate(times(pair.ratio), (x, high if up else low), (0, shift), **text)

    def _tip(self, name: str, pair: PairRatio) -> str:
        turns = f"; half of its turns {pair.low:.3f}× to {pair.high:.3f}×" if pair.low and pair.high else ""
        load = f"; others used {100 * pair.load:.0f} % of the core" if pair.load >= 0.005 else ""
        over = "base" if name == "aa" else "head"
        return f"{self._session.name}, base over {over}: {pair.ratio:.4g}×{turns}{load}"


def graded_plot(title: str, workloads: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """SVG with a panel for each workload: by what is compared (two series), the base over it, pair by pair."""
    found = "; ".join(f"{node}: {', '.join(series)}" for node, series in workloads.items())
    with drawing(
        title, f"The base over each, pair by pair. {found}.", (WIDTH, 80 + 160 * len(workloads)), headline=False
    ) as plot:
        for axis, (node, series) in zip(plot.axes(len(workloads)), workloads.items(), strict=True):
            ratio_axis(
                axis, "y", ratio_range([ratio for ratios in series.values() for ratio in ratios]), "base over, ×", 5
            )
            axis.set_title(short(node, 80))
            axis.locator_params(axis="x", integer=True)
            for (name, ratios), colour, fill in zip(series.items(), (HEAD, AA), (HEAD.light, "none"), strict=True):
                tips = [f"{name}: {times(ratio)}" for ratio in ratios]
                places = range(1, len(ratios) + 1)
                plot.marks(
                    axis,
                    places,
                    [drawable(one) for one in ratios],
                    colour,
                    name.split()[-1],
                    tips,
                    label=name,
                    markerfacecolor=fill,
                )
        axis.set_xlabel("pair of processes")
        plot.legend()
        return plot.svg()


def _ends(sessions: Sequence[PairSession]) -> tuple[float, float]:
    """1×, the intervals and the pairs, without those far away from the others of their kind."""
    inside = [0.0, *(math.log(end) for one in sessions for end in (one.estimate or ()) if end > 0)]
    for pairs in ([p for one in sessions for p in one.pairs], [p for one in sessions for p in one.aa]):
        logs = [math.log(pair.ratio) for pair in pairs if pair.ratio > 0]
        if logs:
            first, third = np.percentile(logs, [25, 75])
            reach = 3 * max(third - first, 0.02)
            inside += [log for log in logs if first - reach <= log <= third + reach]
    room = max(0.06 * (max(inside) - min(inside)), 0.01)
    return math.exp(min(inside) - room), math.exp(max(inside) + room)


def _description(sessions: Sequence[PairSession]) -> str:
    parts = []
    for one in sessions:
        text = f"{one.name}, {len(one.pairs)} pairs and {len(one.aa)} A/A pairs"
        if one.estimate:
            low, middle, high = one.estimate
            text += f", speedup {times(middle)} with a 95 % interval from {times(low)} to {times(high)}"
        parts.append(text)
    return f"Time of base over head of each pair of processes. {'; '.join(parts) or 'No whole pair.'}."
