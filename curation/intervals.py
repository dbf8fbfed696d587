"""The speedup and its 95 % interval.

Both intervals are Hodges-Lehmann's: all shifts of log seconds that a rank test does not
reject. Of pairs of processes (`shift_interval`) it is the signed-rank test on their log
ratios: whatever the noise of a process looks like, the difference of two of the same
pair is symmetric about the true shift, so the coverage does not depend on drift, bursts
or clock modes that a pair's sides share (figures: docs/statistics.md). Without pairs
(`unpaired_interval`: anybody's timings) it is the rank-sum test, as in SWE-Perf's δ.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import scipy  # its submodules are imported when first used
from numpy.typing import ArrayLike

from perfquarry.curation.stability import Floats, critical_count, head_over_base

LEVEL = 0.95


def ratio_of_medians(base: ArrayLike, head: ArrayLike) -> float | None:
    """Speedup: median base over median head, both in seconds; None without values and where it is not finite."""
    bases, heads = np.asarray(base, dtype=np.float64), np.asarray(head, dtype=np.float64)
    if bases.size == 0 or heads.size == 0:
        return None
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = float(np.median(bases) / np.median(heads))
    return ratio if np.isfinite(ratio) else None


def hodges_lehmann(logs: Floats) -> float:
    """Median of the means of all pairs of values, each with itself too; shape (n,), n ≥ 1."""
    return float(np.median(_walsh_averages(logs)))


def shift_interval(logs: Floats, level: float = LEVEL) -> tuple[float, float] | None:
    """Interval of the shift of log ratios, shape (n,), by the signed-rank test; None for n < 6 at 95 %."""
    dropped = _walsh_dropped(len(logs), level)
    if dropped is None:
        return None
    averages = np.sort(_walsh_averages(logs))
    return float(averages[dropped]), float(averages[-1 - dropped])


def shift_p_value(logs: Floats) -> float:
    """One-sided p-value of "the shift is greater than 0", shape (n,): Student's t; 1 for n < 2.

    The rank test's own p-value cannot fall below 2⁻ⁿ, which no family of tests survives at n = 6.
    """
    if len(logs) < 2:
        return 1.0
    spread = float(np.std(logs, ddof=1))
    if spread == 0:
        return 0.0 if logs[0] > 0 else 1.0
    return float(scipy.special.stdtr(len(logs) - 1, -float(np.mean(logs)) / (spread / np.sqrt(len(logs)))))


def paired_delta(logs: Floats, alpha: float) -> float:
    """δ of pairs, shape (n,): the largest gain that the one-sided signed-rank test still shows at level alpha.

    SWE-Perf's Algorithm 1 with the test of paired samples: the base times (1 − x) stays significantly above the
    head while x < 1 − exp(−lower bound of the shift). 0 where that is negative or the pairs are too few.
    """
    interval = shift_interval(logs, 1 - 2 * alpha)
    return max(0.0, float(-np.expm1(-interval[0]))) if interval else 0.0


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
