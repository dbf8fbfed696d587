"""The noise of a machine over a run: the same code against itself, and what others used of the core."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from perfquarry.curation.blocks import Block, MeasuredWorkload
from perfquarry.curation.plots.canvas import drawing, ratio_axis, ratio_range
from perfquarry.curation.plots.pairs import BUSY
from perfquarry.curation.plots.palette import AA, HEAD, NOISE

MOST_MARKS = 1500
"""Of longer runs evenly chosen pairs are drawn; the range is that of all."""
_PART = 40
"""Pairs over which a range is computed, at least; a run has at most this many ranges."""


def noise_plot(title: str, runs: Iterable[MeasuredWorkload]) -> str | None:
    """SVG of two panels on one axis of time: ratios of A/A pairs with their middle 90 %, and the load of others.

    None where no A/A pair has a time.
    """
    sessions = [session for run in runs for session in run.sessions]
    aa = _ordered([block for one in sessions for block in one.aa])
    plain = _ordered([block for one in sessions for block in one.plain])
    if not aa:
        return None
    first = min(block.at.timestamp() for block in (*aa, *plain) if block.at)
    last = max(block.at.timestamp() for block in (*aa, *plain) if block.at)
    unit, scale = next(
        (unit, scale) for unit, scale, most in (("s", 1.0, 300), ("min", 60.0, 3 * 3600), ("h", 3600.0, np.inf))
        if last - first <= most
    )  # fmt: skip

    def at(block: Block) -> float:
        return (block.at.timestamp() - first) / scale if block.at else 0.0

    ratios = np.exp([block.log for block in aa])
    spread = float(np.std(np.log(ratios))) if len(aa) > 1 else 0.0
    words = f"{len(aa)} A/A pairs; their standard deviation is {100 * spread:.2g} %"
    with drawing(title, f"Ratios of base to base over the run: {words}.", (760, 380)) as plot:
        above, below = plot.axes(2, 1, sharex=True, height_ratios=(3, 2))
        above.set_title(words)
        ratio_axis(above, "y", ratio_range(ratios.tolist()), "base over base, ×", 6)
        shown = _some(aa)
        calm = [block for block in shown if block.load < BUSY]
        busy = [block for block in shown if block.load >= BUSY]
        for blocks, colour, name, marker, label in (
            (calm, AA, "aa", "o", "A/A pair"),
            (busy, NOISE, "busy", "D", f"A/A pair while others used ≥ {100 * BUSY:.0f} % of the core"),
        ):
            values = [float(np.exp(block.log)) for block in blocks]
            tips = [f"base over base {value:.4f}×; others used {100 * block.load:.0f} % of the core"
                    for block, value in zip(blocks, values, strict=True)]  # fmt: skip
            how: dict[str, Any] = {"marker": marker, "label": label, "markersize": 4}
            plot.marks(above, [*map(at, blocks)], values, colour, name, tips, **how)
        parts = np.array_split(np.arange(len(aa)), max(1, min(_PART, len(aa) // _PART)))
        for number, part in enumerate(parts):
            low, high = np.exp(np.quantile([aa[place].log for place in part], [0.05, 0.95]))
            ends = at(aa[part[0]]), at(aa[part[-1]])
            above.fill_between(ends, low, high, color=AA.light, alpha=0.22, lw=0, gid="pq-range",
                               label=None if number else "middle 90 % of the A/A pairs")  # fmt: skip
        loads = _some(plain or aa)
        below.set_ylabel("core used by others, %")
        below.set_ylim(0, max(100.0, *(100 * block.load for block in loads)))
        tips = [f"others used {100 * block.load:.0f} % of the core" for block in loads]
        how = {"markersize": 3, "label": "a pair of base and head"}
        plot.marks(below, [*map(at, loads)], [100 * block.load for block in loads], HEAD, "load", tips, **how)
        below.axhline(100 * BUSY, color=NOISE.light, lw=1, ls=(0, (4, 3)))
        below.set_xlabel(f"time since the first pair of the run, {unit}")
        plot.legend(ncols=2)
        return plot.svg()


def _ordered(blocks: Iterable[Block]) -> list[Block]:
    return sorted((block for block in blocks if block.at), key=lambda block: block.at.timestamp() if block.at else 0.0)


def _some(blocks: Sequence[Block]) -> Sequence[Block]:
    return blocks[:: -(-len(blocks) // MOST_MARKS)] if blocks else blocks
