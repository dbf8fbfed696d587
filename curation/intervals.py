"""The speedup and its 95 % interval.

Both intervals are Hodges-Lehmann's: all shifts of log seconds that a rank test does not
reject. Within blocks (`paired_interval`) it is the signed-rank test on the log ratios of
the pairs: whatever the noise of a process looks like, the difference of two of the same
block is symmetric about the true shift, so the coverage does not depend on drift, bursts
or clock modes that a block's sides share (figures: docs/statistics.md). Without blocks
(`unpaired_interval`: anybody's timings) it is the rank-sum test, as in δ.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from curation.stability import Floats, critical_count, head_over_base

LEVEL = 0.95


def ratio_of_medians(base: ArrayLike, head: ArrayLike) -> float | None:
    """Speedup: median base over median head, both in seconds; None without values and where it is not finite."""
    bases, heads = np.asarray(base, dtype=np.float64), np.asarray(head, dtype=np.float64)
    if bases.size == 0 or heads.size == 0:
        return None
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = float(np.median(bases) / np.median(heads))
    return ratio if np.isfinite(ratio) else None


def paired_interval(base: ArrayLike, head: ArrayLike, level: float = LEVEL) -> tuple[float, float] | None:
    """Interval of the speedup from blocks, shapes (n,) and (n,), positive seconds; None for n < 6 at 95 %."""
    bases, heads = np.asarray(base, dtype=np.float64), np.asarray(head, dtype=np.float64)
    dropped = _walsh_dropped(len(bases), level)
    if dropped is None or min(bases.min(), heads.min()) <= 0:
        return None
    averages = np.sort(_walsh_averages(np.log(bases / heads)))
    return float(np.exp(averages[dropped])), float(np.exp(averages[-1 - dropped]))


def paired_speedup(base: ArrayLike, head: ArrayLike) -> float:
    """Hodges-Lehmann estimate of the speedup from blocks, shapes (n,) and (n,), n ≥ 1, positive seconds."""
    logs = np.log(np.asarray(base, dtype=np.float64) / np.asarray(head, dtype=np.float64))
    return float(np.exp(np.median(_walsh_averages(logs))))


def unpaired_interval(base: ArrayLike, head: ArrayLike, level: float = LEVEL) -> tuple[float, float] | None:
    """Interval of the speedup without blocks, shapes (n,) and (m,).

    None where there are too few values (fewer than 4 and 4 at 95 %) or an end is not a
    finite positive number (times of 0).
    """
    bases, heads = np.asarray(base, dtype=np.float64), np.asarray(head, dtype=np.float64)
    count = critical_count(len(bases), len(heads), (1 - level) / 2)
    if count is None:
        return None
    pairs = len(bases) * len(heads)
    ratios = np.partition(head_over_base(bases, heads), (pairs - count, count - 1))
    fastest, slowest = float(ratios[pairs - count]), float(ratios[count - 1])
    if not 0 < fastest <= slowest < np.inf:
        return None
    return 1 / slowest, 1 / fastest


def _walsh_averages(values: Floats) -> Floats:
    """Means of all pairs of values, each with itself too; shape (n·(n+1)/2,)."""
    i, j = np.triu_indices(len(values))
    averages: Floats = (values[i] + values[j]) / 2
    return averages


@cache
def _walsh_dropped(n: int, level: float) -> int | None:
    """Walsh averages left out at each end: the most with P(signed-rank sum < that many) ≤ (1 − level)/2."""
    probabilities = np.ones(1)
    for rank in range(1, n + 1):  # each rank joins the sum with probability 1/2
        step = np.zeros(rank + 1)
        step[0] = step[rank] = 0.5
        probabilities = np.convolve(probabilities, step)
    below = int(np.searchsorted(np.cumsum(probabilities), (1 - level) / 2, side="right"))
    return below - 1 if below else None
