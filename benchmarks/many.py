"""The product's statistics and rules for thousands of workloads at once: twins of curation's functions.

`curation.summary` and `curation.intervals` look at one session; these look at rows of a matrix. That they say the
same is tested on random sessions (tests/benchmarks/test_many.py), so that the simulation judges the product's rules.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import scipy
from numpy.typing import NDArray

from perfquarry.curation.intervals import LEVEL, _walsh_dropped
from perfquarry.curation.settings import SelectSettings
from perfquarry.curation.stability import delta, head_over_base
from perfquarry.curation.summary import EARLIEST_IN_VAIN, FAMILY, IN_VAIN, MAY_EXCLUDE, NORMAL, smallest_speedup

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_CHUNK_BYTES = 64 * 1024**2


@dataclass(frozen=True)
class Summaries:
    """`SessionStatistics` of many sessions, one value a row; shift, low and high are logs of speedups."""

    pairs: NDArray[np.int64]
    shift: Floats
    low: Floats
    high: Floats
    p_value: Floats
    spread: Floats
    hold: Floats
    aa_delta: Floats
    """NaN where there is none."""

    def put(self, rows: NDArray[np.int64], found: Summaries) -> None:
        """Writes values of other rows into these."""
        for name in _NAMES:
            getattr(self, name)[rows] = getattr(found, name)

    @classmethod
    def empty(cls, count: int) -> Summaries:
        """Rows that are not filled yet."""
        values = {name: np.full(count, np.nan) for name in _NAMES if name != "pairs"}
        return cls(pairs=np.zeros(count, dtype=np.int64), **values)


_NAMES = tuple(field.name for field in fields(Summaries))


def walsh(logs: Floats) -> Floats:
    """Sorted means of all pairs of values, each with itself too; shapes (w, n) → (w, n·(n+1)/2)."""
    i, j = np.triu_indices(logs.shape[1])
    return np.sort((logs[:, i] + logs[:, j]) / 2, axis=1)


def hodges_lehmann(logs: Floats) -> Floats:
    """Of each row; shapes (w, n) → (w,). In pieces that fit into memory: a row of 96 turns has 4,656 means."""
    n = logs.shape[1]
    i, j = np.triu_indices(n)
    rows = max(1, _CHUNK_BYTES // (8 * len(i)))
    pieces = (logs[start : start + rows] for start in range(0, len(logs), rows))
    found = [np.median((piece[:, i] + piece[:, j]) / 2, axis=1, overwrite_input=True) for piece in pieces]
    return np.concatenate(found) if found else np.empty(0)


def summarise(logs: Floats, aa_logs: Floats, settings: SelectSettings, interval: str = "signed rank") -> Summaries:
    """Statistics of sessions with the same numbers of pairs; shapes (w, n), (w, k) with n ≥ 6.

    Args:
        logs: log ratios of base to head.
        aa_logs: of base to base.
        settings: the thresholds.
        interval: 'signed rank' as the product, or 'student' (to compare).
    """
    n = logs.shape[1]
    shift, low, high = _ranked(logs) if interval == "signed rank" else _student(logs)
    scale = spread(logs, aa_logs)
    return Summaries(
        pairs=np.full(len(logs), n, dtype=np.int64),
        shift=shift,
        low=low,
        high=high,
        p_value=p_values(logs),
        spread=scale,
        hold=holding(shift, scale, n, occasion(shift, settings)),
        aa_delta=aa_delta(aa_logs, settings.aa_alpha),
    )


def _ranked(logs: Floats) -> tuple[Floats, Floats, Floats]:
    dropped = _walsh_dropped(logs.shape[1], LEVEL)
    assert dropped is not None, "no interval with fewer than 6 pairs"
    averages = walsh(logs)
    middle = averages.shape[1]
    shift = (averages[:, (middle - 1) // 2] + averages[:, middle // 2]) / 2
    return shift, averages[:, dropped], averages[:, -1 - dropped]


def _student(logs: Floats) -> tuple[Floats, Floats, Floats]:
    n = logs.shape[1]
    reach = scipy.special.stdtrit(n - 1, (1 + LEVEL) / 2) * np.std(logs, axis=1, ddof=1) / np.sqrt(n)
    mean = np.mean(logs, axis=1)
    return mean, mean - reach, mean + reach


def p_values(logs: Floats) -> Floats:
    """`shift_p_value` of each row; n ≥ 2."""
    n = logs.shape[1]
    scale = np.std(logs, axis=1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = scipy.special.stdtr(n - 1, -np.mean(logs, axis=1) / (scale / np.sqrt(n)))
    return np.where(scale == 0, np.where(logs[:, 0] > 0, 0.0, 1.0), found)


def spread(logs: Floats, aa_logs: Floats) -> Floats:
    """`curation.summary.spread` of each row."""
    own = np.var(logs, axis=1, ddof=1)
    if aa_logs.shape[1] < 2:
        return np.sqrt(own)
    freedom, others = logs.shape[1] - 1, aa_logs.shape[1] - 1
    pooled = (freedom * own + others * np.var(aa_logs, axis=1, ddof=1)) / (freedom + others)
    return np.sqrt(np.maximum(own, pooled))


def occasion(shift: Floats, settings: SelectSettings) -> Floats:
    """`curation.summary.occasion` of each row."""
    found: Floats = settings.occasion + settings.relative_occasion * np.abs(shift)
    return found


def in_vain(found: Summaries, settings: SelectSettings, most: int) -> Flags:
    """`curation.summary.in_vain` of each row."""
    between = found.spread * np.sqrt(np.maximum(0.0, 1 / found.pairs - 1 / most))
    reach = scipy.special.stdtrit(most - 1, 0.975) * found.spread / np.sqrt(most)
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = scipy.special.ndtr((found.shift - reach) / between)
        none = scipy.special.ndtr((np.log(smallest_speedup(settings.min_gain)) - reach - found.shift) / between)
    return (found.pairs >= EARLIEST_IN_VAIN) & (between > 0) & (gain < IN_VAIN) & (none < MAY_EXCLUDE)


def lasting(found: Summaries, settings: SelectSettings) -> tuple[Floats, Floats]:
    """`curation.summary.lasting` of each row; logs."""
    beyond = NORMAL * occasion(found.shift, settings)
    low = found.shift - np.hypot(found.shift - found.low, beyond)
    return low, found.shift + np.hypot(found.high - found.shift, beyond)


def holding(shift: Floats, scale: Floats, pairs: int, occasion: Floats) -> Floats:
    """`curation.summary.holding` of each row."""
    error = scale / np.sqrt(pairs)
    between = np.sqrt(2 * (error**2 + occasion**2))
    reach = scipy.special.stdtrit(pairs - 1, 0.975) * error
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = scipy.special.stdtr(pairs - 1, (shift - reach) / between)
    return np.where(between == 0, (shift > 0).astype(float), found)


def aa_delta(aa_logs: Floats, alpha: float) -> Floats:
    """`curation.summary.aa_delta` of each row; NaN with fewer than 3 pairs."""
    n = aa_logs.shape[1]
    if n < 3:
        return np.full(len(aa_logs), np.nan)
    error = np.std(aa_logs, axis=1, ddof=1) / np.sqrt(n)
    shown = np.abs(np.mean(aa_logs, axis=1)) - scipy.special.stdtrit(n - 1, 1 - alpha) * error
    return np.maximum(0.0, -np.expm1(-shown))


def precise(found: Summaries, settings: SelectSettings) -> Flags:
    """`curation.summary.precise` of each row."""
    wanted = np.maximum(settings.precision, settings.relative_precision * np.abs(found.shift))
    reach = scipy.special.stdtrit(found.pairs - 1, 0.975) / np.sqrt(found.pairs) * found.spread
    flags: Flags = ((found.high - found.low) / 2 <= wanted) & (reach <= wanted)
    return flags


def excluded(found: Summaries, settings: SelectSettings) -> Flags:
    """`curation.summary.excluded` of each row."""
    smallest = np.log(smallest_speedup(settings.min_gain))
    return (found.high < smallest) | ((found.shift < smallest) & precise(found, settings))


def gains(found: Summaries, settings: SelectSettings) -> Flags:
    """`curation.summary.gains` of each row."""
    smallest = np.log(smallest_speedup(settings.min_gain))
    return (found.shift >= smallest) & (found.low > 0) & (found.hold >= settings.min_hold)


def chosen(found: Summaries, settings: SelectSettings) -> Flags:
    """`curation.summary.chosen` of each row."""
    return (found.p_value <= settings.max_q / FAMILY) & gains(found, settings) & unbiased(found, settings)


def promising(found: Summaries, settings: SelectSettings) -> Flags:
    """`curation.summary.promising` of each row."""
    return (found.low > 0) & ~excluded(found, settings)


def unbiased(found: Summaries, settings: SelectSettings) -> Flags:
    """`curation.summary.unbiased` of each row."""
    return ~(found.aa_delta > settings.max_aa_delta)


def accepted(select: Summaries, confirm: Summaries, settings: SelectSettings, family: int) -> Flags:
    """What `curation.evidence` keeps; q-values within families of so many rows. `confirm` matters only where it was."""
    q = q_values(select.p_value.reshape(-1, family)).reshape(-1)
    passed = promising(select, settings) & unbiased(select, settings) & ~excluded(select, settings)
    return passed & (q <= settings.max_q) & gains(confirm, settings) & unbiased(confirm, settings)


def q_values(p: Floats) -> Floats:
    """Benjamini-Hochberg within each row; shapes (families, tests)."""
    count = p.shape[1]
    order = np.argsort(p, axis=1)
    raised = np.take_along_axis(p, order, axis=1) * count / np.arange(1, count + 1)
    lowered = np.minimum.accumulate(raised[:, ::-1], axis=1)[:, ::-1]
    found = np.empty_like(p)
    np.put_along_axis(found, order, np.minimum(lowered, 1.0), axis=1)
    return found


def inliers(values: Floats, k: float = 1.0) -> Flags:
    """Which values `keep_inliers` keeps, by row."""
    low, high = np.quantile(values, (0.25, 0.75), axis=1, keepdims=True)
    reach = k * (high - low)
    flags: Flags = (values >= low - reach) & (values <= high + reach)
    return flags


def filtered(base: Floats, head: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Of each row, after the outlier filter: δ, and scipy's one-sided p-value of "base greater" without ties.

    With 20 values a side the filter leaves more than 8, so that the test is the normal one.
    """
    kept_base, kept_head = inliers(base), inliers(head)
    sizes = np.stack([kept_base.sum(axis=1), kept_head.sum(axis=1)], axis=1)
    gain, p = np.zeros(len(base)), np.ones(len(base))
    for n, m in np.unique(sizes, axis=0):
        rows = np.flatnonzero((sizes == (n, m)).all(axis=1))
        b = base[rows][kept_base[rows]].reshape(-1, n)
        h = head[rows][kept_head[rows]].reshape(-1, m)
        gain[rows] = delta(b, h, alpha)
        wins = np.sum(head_over_base(b, h) < 1, axis=1)
        p[rows] = scipy.special.ndtr(-((wins - 0.5) - n * m / 2) / np.sqrt(n * m * (n + m + 1) / 12))
    return gain, p
