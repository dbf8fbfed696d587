"""Statistics of one session of one workload, and what follows from them (docs/statistics.md).

The unit is the pair of processes: its log ratio of base to head is one value.
"""

from __future__ import annotations

import math

import numpy as np
import scipy  # its submodules are imported when first used

from perfquarry.curation.blocks import Session
from perfquarry.curation.intervals import hodges_lehmann, paired_delta, shift_interval, shift_p_value
from perfquarry.curation.settings import SelectSettings
from perfquarry.curation.stability import Floats
from perfquarry.data.records import SessionStatistics

FAMILY = 1000
"""Tests of a repository, at most, for which a first session that ends early has a small enough p-value."""
IN_VAIN = 0.05
"""Predicted probability of seeing a gain by the end of a first session below which it ends for a workload."""
MAY_EXCLUDE = 0.25
"""The same of excluding one: what may become a fact goes on."""
EARLIEST_IN_VAIN = 8
"""Pairs, at least, before that is predicted."""
NORMAL = 1.959963984540054
"""0.975 quantile of the normal law."""


def summarise(session: Session, settings: SelectSettings) -> SessionStatistics | None:
    """Statistics of a session; None with fewer than 6 whole pairs (no interval exists)."""
    logs = session.logs
    interval = shift_interval(logs)
    if interval is None:
        return None
    shift = hodges_lehmann(logs)
    scale = spread(logs, session.aa_logs)
    return SessionStatistics(
        session=session.number,
        n_base=len(logs),
        n_head=len(logs),
        base_median=float(np.median(session.base)),
        head_median=float(np.median(session.head)),
        speedup=math.exp(shift),
        low=math.exp(interval[0]),
        high=math.exp(interval[1]),
        delta=paired_delta(logs, settings.alpha),
        p_value=shift_p_value(logs),
        aa_delta=aa_delta(session.aa_logs, settings.aa_alpha),
        aa_spread=math.expm1(float(np.median(np.abs(session.aa_logs)))) if len(session.aa) else None,
        pair_spread=scale,
        hold=holding(shift, scale, len(logs), occasion(shift, settings)),
        margin=margin(shift, len(logs), session.aa_logs),
        alone=session.alone,
    )


def spread(logs: Floats, aa_logs: Floats) -> float:
    """Standard deviation of one pair's log ratio: of base to head, or of these and base to base together if larger.

    Few pairs may agree by chance; those of the base with itself have the same noise.
    """
    own = float(np.var(logs, ddof=1))
    if len(aa_logs) < 2:
        return math.sqrt(own)
    freedom, others = len(logs) - 1, len(aa_logs) - 1
    pooled = (freedom * own + others * float(np.var(aa_logs, ddof=1))) / (freedom + others)
    return math.sqrt(max(own, pooled))


def occasion(shift: float, settings: SelectSettings) -> float:
    """Standard deviation (log) of a look at an effect beyond the error that its pairs show."""
    return settings.occasion + settings.relative_occasion * abs(shift)


def lasting(statistics: SessionStatistics, settings: SelectSettings) -> tuple[float, float]:
    """95 % interval of the speedup on any occasion: the session's, widened by what occasions differ by.

    It is what is published, and what a second look is compared with.
    """
    shift = math.log(statistics.speedup)
    beyond = NORMAL * occasion(shift, settings)
    low = math.hypot(shift - math.log(statistics.low), beyond)
    high = math.hypot(math.log(statistics.high) - shift, beyond)
    return math.exp(shift - low), math.exp(shift + high)


def holding(shift: float, scale: float, pairs: int, occasion: float) -> float:
    """Predicted probability that a second look, with as many pairs, shows the gain: its interval lies above 1.

    The second look's estimate is Student's t about this one's: both have the error scale/√pairs, and each differs
    by `occasion` beyond that; its interval reaches t₀.₉₇₅ · scale/√pairs below it.
    """
    error = scale / math.sqrt(pairs)
    between = math.sqrt(2 * (error**2 + occasion**2))
    if between == 0:
        return float(shift > 0)
    reach = float(scipy.special.stdtrit(pairs - 1, 0.975)) * error
    return float(scipy.special.stdtr(pairs - 1, (shift - reach) / between))


def margin(shift: float, pairs: int, aa_logs: Floats) -> float | None:
    """The effect over what base against base shows: shift ÷ (standard deviation of A/A pairs / √pairs).

    None with fewer than 2 pairs of A/A, or where these agree to the last digit.
    """
    noise = float(np.std(aa_logs, ddof=1)) if len(aa_logs) > 1 else 0.0
    return abs(shift) / (noise / math.sqrt(pairs)) if noise else None


def aa_delta(aa_logs: Floats, alpha: float) -> float | None:
    """δ of base against base, the larger direction, by Student's t at level alpha; None with fewer than 3 pairs."""
    n = len(aa_logs)
    if n < 3:
        return None
    error = float(np.std(aa_logs, ddof=1)) / math.sqrt(n)
    shown = abs(float(np.mean(aa_logs))) - float(scipy.special.stdtrit(n - 1, 1 - alpha)) * error
    return max(0.0, -math.expm1(-shown))


def smallest_speedup(min_gain: float) -> float:
    """Speedup of a relative gain: 1 / (1 − gain)."""
    return 1 / (1 - min_gain)


def precise(statistics: SessionStatistics, settings: SelectSettings) -> bool:
    """Whether the interval is as narrow as wanted, absolutely or next to the effect, and not by luck.

    A few pairs may agree by chance: Student's interval of their pooled spread must be as narrow, too.
    """
    wanted = max(settings.precision, settings.relative_precision * abs(math.log(statistics.speedup)))
    if math.log(statistics.high / statistics.low) / 2 > wanted:
        return False
    reach = float(scipy.special.stdtrit(statistics.n_base - 1, 0.975)) / math.sqrt(statistics.n_base)
    return statistics.pair_spread is None or reach * statistics.pair_spread <= wanted


def excluded(statistics: SessionStatistics, settings: SelectSettings) -> bool:
    """Whether there is no gain worth a task: the interval excludes it, or is precise about a smaller one."""
    smallest = smallest_speedup(settings.min_gain)
    return statistics.high < smallest or (statistics.speedup < smallest and precise(statistics, settings))


def gains(statistics: SessionStatistics, settings: SelectSettings) -> bool:
    """Whether the session by itself shows a gain worth a task that a second look will show, too."""
    if statistics.speedup < smallest_speedup(settings.min_gain) or statistics.low <= 1:
        return False
    return statistics.hold is not None and statistics.hold >= settings.min_hold


def chosen(statistics: SessionStatistics, settings: SelectSettings) -> bool:
    """Whether a first session needs no more pairs to send the workload to the second: it gains, beyond any family.

    q-values are at most p · tests, and a repository has hundreds of these: the p-value leaves room for a thousand.
    """
    clear = statistics.p_value <= settings.max_q / FAMILY
    return clear and gains(statistics, settings) and unbiased(statistics, settings)


def in_vain(statistics: SessionStatistics, settings: SelectSettings, most: float) -> bool:
    """Whether a session of `most` pairs will hardly show any gain, and not that there is none either.

    Predicted of its interval after the last pair: the mean of all is normal about this one with variance
    scale² (1/pairs - 1/most), nothing being known beforehand, and the interval reaches t₀.₉₇₅ · scale/√most from it.
    It will lie above 1 with less than `IN_VAIN`, and below the smallest gain with less than `MAY_EXCLUDE`.
    """
    pairs, scale, shift = statistics.n_base, statistics.pair_spread, math.log(statistics.speedup)
    if pairs < EARLIEST_IN_VAIN or pairs >= most or not scale:
        return False
    between = scale * math.sqrt(1 / pairs - 1 / most)
    reach = float(scipy.special.stdtrit(most - 1, 0.975)) * scale / math.sqrt(most)
    gain = float(scipy.special.ndtr((shift - reach) / between))
    none = float(scipy.special.ndtr((math.log(smallest_speedup(settings.min_gain)) - reach - shift) / between))
    return gain < IN_VAIN and none < MAY_EXCLUDE


def promising(statistics: SessionStatistics, settings: SelectSettings) -> bool:
    """Whether a second session is worth its time: a gain is seen, and it is not excluded that it is worth a task."""
    return statistics.low > 1 and not excluded(statistics, settings)


def slower(statistics: SessionStatistics, settings: SelectSettings) -> bool:
    """Whether the head is slower, by as much as would be a gain."""
    return statistics.high < 1 and statistics.speedup <= 1 - settings.min_gain


def unbiased(statistics: SessionStatistics, settings: SelectSettings) -> bool:
    """Whether the A/A δ stays within its limit (or has too few A/A pairs to say)."""
    return statistics.aa_delta is None or statistics.aa_delta <= settings.max_aa_delta
