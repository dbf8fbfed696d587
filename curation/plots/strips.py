"""Speedups with their intervals as lines of a list: places on one logarithmic axis, per cent of its width.

A list of hundreds would be as many figures; a strip is a line and a dot (docs/decisions/0047).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from perfquarry.curation.plots.canvas import EXTREME, ratio_range, ratio_ticks

_ROOM = 24.0
"""Per cent of the width that the text of a tick needs."""


@dataclass(frozen=True)
class Strip:
    """One interval: its ends and the speedup in it."""

    low: float
    at: float
    high: float


@dataclass(frozen=True)
class Strips:
    """The axis of a list, and a strip for each of its lines; None for what is no ratio."""

    one: float
    """Place of 1×."""
    ticks: list[tuple[float, str]]
    strips: list[Strip | None]


def strips(speedups: Sequence[tuple[float | None, float | None, float | None]]) -> Strips:
    """Places speedups on one axis; each is the low end of its interval, the speedup, the high end."""
    low, high = ratio_range([value for one in speedups if are_ratios(one) for value in one if value])

    def at(value: float) -> float:
        return round(100 * math.log(value / low) / math.log(high / low), 2)

    ticks: list[tuple[float, str]] = []
    for value in ratio_ticks(low, high):
        if not ticks or at(value) - ticks[-1][0] >= _ROOM:
            ticks.append((at(value), f"{value:g}×"))
    return Strips(
        at(1), ticks, [Strip(*(at(value or 1) for value in one)) if are_ratios(one) else None for one in speedups]
    )


def are_ratios(values: Sequence[float | None]) -> bool:
    """Whether all are what somebody may have measured: a stranger's table may hold anything."""
    return all(value is not None and 1 / EXTREME <= value <= EXTREME for value in values)
