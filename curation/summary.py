"""Statistics of one session of one workload, and what follows from them."""

from __future__ import annotations

import numpy as np

from curation.blocks import Session
from curation.intervals import paired_interval, paired_speedup, ratio_of_medians, unpaired_interval
from curation.stability import Floats, critical_count, delta, keep_inliers, p_value
from data.records import SessionStatistics
from data.settings import SelectSettings


def summarise(session: Session, settings: SelectSettings) -> SessionStatistics | None:
    """Statistics of a session; None with fewer than 4 whole blocks (no interval exists)."""
    base, head = session.base, session.head
    interval = speedup_interval(base, head)
    kept_base, kept_head = keep_inliers(base, settings.iqr_k), keep_inliers(head, settings.iqr_k)
    speedup = ratio_of_medians(kept_base, kept_head)
    if interval is None or speedup is None:
        return None
    if not interval[0] <= speedup <= interval[1]:
        # The clock had two modes and the two medians come from different ones; pairs do not mix modes.
        speedup = paired_speedup(base, head)
    return SessionStatistics(
        session=session.number,
        n_base=len(kept_base),
        n_head=len(kept_head),
        base_median=float(np.median(kept_base)),
        head_median=float(np.median(kept_head)),
        speedup=speedup,
        low=min(interval[0], speedup),
        high=max(interval[1], speedup),
        delta=float(delta(kept_base, kept_head, settings.alpha)),
        p_value=p_value(kept_base, kept_head),
        aa_delta=aa_delta(session, settings),
        aa_spread=aa_spread(session),
    )


def speedup_interval(base: Floats, head: Floats) -> tuple[float, float] | None:
    """95 % interval of the speedup: from the pairs, from unpaired values where 4 or 5 blocks are too few for pairs."""
    return paired_interval(base, head) or unpaired_interval(base, head)


def aa_delta(session: Session, settings: SelectSettings) -> float | None:
    """δ of base against base at level `aa_alpha`: the largest over roles and over positions, in both directions.

    By role: does the second role differ from the first? By position: does the process that
    runs second in a block differ from the one before it (something left behind)? None where
    the A/A blocks are too few for any difference to be significant.
    """
    count = len(session.aa)
    if critical_count(count, count, settings.aa_alpha) is None:
        return None
    roles = np.array([(block.base, block.head) for block in session.aa])
    swapped = np.array([not block.base_first for block in session.aa])
    positions = np.where(swapped[:, None], roles[:, ::-1], roles)
    splits = np.stack([roles.T, roles.T[::-1], positions.T, positions.T[::-1]])
    return float(delta(splits[:, 0], splits[:, 1], settings.aa_alpha).max())


def aa_spread(session: Session) -> float | None:
    """Typical relative difference of two runs of the base: exp(median |log ratio|) − 1; None without pairs.

    Pairs are the A/A blocks and the bases of neighbouring plain blocks (each used once).
    """
    base = session.base
    even = len(base) // 2 * 2
    pairs = np.concatenate(
        [np.array([(b.base, b.head) for b in session.aa]).reshape(-1, 2), base[:even].reshape(-1, 2)]
    )
    if len(pairs) == 0 or pairs.min() <= 0:
        return None
    return float(np.expm1(np.median(np.abs(np.log(pairs[:, 0] / pairs[:, 1])))))


def smallest_speedup(min_gain: float) -> float:
    """Speedup of a relative gain: 1 / (1 − gain)."""
    return 1 / (1 - min_gain)


def hopeless(session: Session, min_gain: float) -> bool:
    """Whether the interval excludes a gain of `min_gain`: measuring on would be futile."""
    interval = speedup_interval(session.base, session.head)
    return interval is not None and interval[1] < smallest_speedup(min_gain)


def slower(session: Session, settings: SelectSettings) -> bool:
    """Whether the head is slower: the interval lies below 1 and the base gains more than `min_delta` on it."""
    interval = speedup_interval(session.base, session.head)
    if interval is None or interval[1] >= 1:
        return False
    kept_base, kept_head = keep_inliers(session.base, settings.iqr_k), keep_inliers(session.head, settings.iqr_k)
    return float(delta(kept_head, kept_base, settings.alpha)) > settings.min_delta


def gains(statistics: SessionStatistics, settings: SelectSettings) -> bool:
    """Whether the session by itself shows the gain: δ over its threshold and p within the level of q."""
    return statistics.delta > settings.min_delta and statistics.p_value <= settings.max_q


def unbiased(statistics: SessionStatistics, settings: SelectSettings) -> bool:
    """Whether the A/A δ stays within its limit (or has too few A/A blocks to say)."""
    return statistics.aa_delta is None or statistics.aa_delta <= settings.max_aa_delta


def noisy(statistics: SessionStatistics, min_gain: float) -> bool:
    """Whether two runs of the base typically differ by as much as the smallest gain."""
    return statistics.aa_spread is not None and 1 + statistics.aa_spread >= smallest_speedup(min_gain)


def quiet(statistics: SessionStatistics) -> bool:
    """Whether two runs of the base typically differ less than base and head do.

    Asked of the selecting session only: each rule the confirming session has to pass on top
    of δ would select its speedup, the published one, a little more.
    """
    return statistics.aa_spread is None or 1 + statistics.aa_spread < max(statistics.speedup, 1 / statistics.speedup)
