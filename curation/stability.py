"""Is the head faster than the base, and by how much at least: the stability filters.

Base and head values are seconds, one a block; the last axis is the block. Larger base
values mean that the head is faster. The test is the one-sided Mann-Whitney U test with
scipy's defaults: exact where a side has at most 8 values and none are tied, else normal
with continuity and tie correction.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Literal

import numpy as np
import scipy  # its submodules are imported when first used: statistics take a second
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

ALPHA = 0.1
STEP = 0.001
_EXACT_UP_TO = 8
_CHUNK = 64


def keep_inliers(values: ArrayLike, k: float = 1.0) -> Floats:
    """Values within k interquartile ranges of the quartiles, in their order (SWE-Perf, phase 4).

    Kept are Q1 − k·IQR ≤ v ≤ Q3 + k·IQR, quartiles by linear interpolation. (The paper
    prints the upper fence with a minus sign.)
    """
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        return array
    low, high = np.quantile(array, (0.25, 0.75))
    reach = k * (high - low)
    kept: Floats = array[(array >= low - reach) & (array <= high + reach)]
    return kept


def p_value(base: ArrayLike, head: ArrayLike) -> float:
    """One-sided Mann-Whitney p-value of "base greater than head"; shapes (n,) and (m,), n, m ≥ 1."""
    return float(
        scipy.stats.mannwhitneyu(np.asarray(base, float), np.asarray(head, float), alternative="greater").pvalue
    )


def q_values(p_values: Sequence[float]) -> list[float]:
    """Benjamini-Hochberg q-values of a family of p-values, in the same order."""
    return [float(q) for q in scipy.stats.false_discovery_control(p_values)] if len(p_values) else []


@cache
def critical_count(n: int, m: int, alpha: float = ALPHA) -> int | None:
    """Fewest wins (pairs with base > head, of n·m, no ties) with p < alpha; None if n·m wins are too few.

    Found by asking scipy's own test, so that its choice between the exact and the normal
    distribution is the same here.
    """
    if n < 1 or m < 1 or _p_of_wins(n * m, n, m) >= alpha:
        return None
    low, high = -1, n * m  # p falls with the wins: not significant at low, significant at high
    while high - low > 1:
        middle = (low + high) // 2
        if _p_of_wins(middle, n, m) < alpha:
            high = middle
        else:
            low = middle
    return high


def _p_of_wins(wins: int, n: int, m: int) -> float:
    """p-value of untied samples in which the base wins that many of the n·m pairs."""
    share, extra = divmod(wins, n)
    each = np.full(n, share)  # of the m head values 0 … m−1, base value i beats each[i]
    each[:extra] += 1
    base = each - 0.5 + 0.25 * np.arange(n) / n
    return p_value(base, np.arange(m))


def delta(base: ArrayLike, head: ArrayLike, alpha: float = ALPHA) -> Floats:
    """δ in closed form: the largest gain the samples still show at level alpha; shapes (…, n), (…, m) → (…).

    The base times (1 − x) stays above the head in pair (i, j) while x < 1 − hⱼ/bᵢ, and the
    test stays significant while the pairs won are at least the critical count c. So the
    supremum of SWE-Perf's Algorithm 1 is 1 − r₍c₎ with r₍c₎ the c-th smallest ratio hⱼ/bᵢ;
    0 where that is negative or no count is significant. Ties within a side would lower p a
    little; they are left out, which is the cautious side.
    """
    bases, heads = np.asarray(base, dtype=np.float64), np.asarray(head, dtype=np.float64)
    count = critical_count(bases.shape[-1], heads.shape[-1], alpha)
    if count is None:
        return np.zeros(np.broadcast_shapes(bases.shape[:-1], heads.shape[:-1]))
    gain: Floats = 1.0 - np.partition(head_over_base(bases, heads), count - 1, axis=-1)[..., count - 1]
    return np.maximum(gain, 0.0)


def head_over_base(base: Floats, head: Floats) -> Floats:
    """All ratios hⱼ/bᵢ, shape (…, n·m); a base of 0 can never be beaten, so its ratios are infinite."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = head[..., None, :] / base[..., :, None]
    ratios = np.where(np.isnan(ratios), np.inf, ratios)
    return ratios.reshape(*ratios.shape[:-2], -1)


def delta_grid(base: ArrayLike, head: ArrayLike, alpha: float = ALPHA, step: float = STEP) -> float:
    """δ as the code of SWE-Perf's authors finds it, to three decimals; shapes (n,) and (m,).

    x grows from 0 to 1 by `step` while base · (1 − x) is still greater than the head with
    p < alpha; δ is the last such x, 0 if there is none. Against the paper: it is the base
    that shrinks (its Algorithm 1 names the samples the other way round), and the step is
    0.001, not 0.01. The filter of outliers (`keep_inliers`) comes before.
    """
    bases, heads = np.asarray(base, dtype=np.float64), np.asarray(head, dtype=np.float64)
    grid = np.concatenate([[0.0], np.cumsum(np.full(round(1.0 / step), step))])
    last = -1
    for start in range(0, len(grid), _CHUNK):
        rows = bases * (1.0 - grid[start : start + _CHUNK, None])
        significant = _row_p_values(rows, heads) < alpha
        if not significant.all():
            last = start + int(np.argmin(significant)) - 1
            break
        last = start + len(rows) - 1
    return round(float(grid[max(last, 0)]), 3)


def _row_p_values(rows: Floats, head: Floats) -> Floats:
    """p-value of each row against the head, shape (k, n) → (k,), each with the method scipy would choose for it."""
    heads = np.broadcast_to(head, (len(rows), len(head)))
    tied = np.ones(len(rows), dtype=bool)
    if min(rows.shape[1], len(head)) <= _EXACT_UP_TO:
        tied = (np.diff(np.sort(np.concatenate([rows, heads], axis=1), axis=1), axis=1) == 0).any(axis=1)
    p = np.ones(len(rows))
    methods: tuple[tuple[NDArray[np.bool_], Literal["asymptotic", "exact"]], ...]
    methods = ((tied, "asymptotic"), (~tied, "exact"))
    for chosen, method in methods:
        if chosen.any():
            p[chosen] = scipy.stats.mannwhitneyu(
                rows[chosen], heads[chosen], alternative="greater", axis=1, method=method
            ).pvalue
    return p
