"""Statistics of pairs of processes, with the standard library alone: Hodges-Lehmann and the signed-rank test.

The same figures as `curation.intervals`, which works on whole arrays at once.
"""

import math
from typing import List, Optional, Sequence, Tuple

LEVEL = 0.95
NORMAL_RANGE = 1.349
"""Interquartile range of the normal law, in standard deviations."""
Interval = Tuple[float, float, float]
"""Low, middle, high."""


def hodges_lehmann(logs: Sequence[float]) -> float:
    """Median of the means of all pairs of values, each with itself too."""
    return median(_averages(logs))


def paired(logs: Sequence[float], level: float = LEVEL) -> Optional[Interval]:
    """(low, middle, high) of the shift of paired log ratios; None with too few pairs (under 6 at 95 %)."""
    dropped = walsh_dropped(len(logs), level)
    if dropped is None:
        return None
    averages = _averages(logs)
    return averages[dropped], median(averages), averages[-1 - dropped]


def _averages(logs: Sequence[float]) -> List[float]:
    return sorted((a + b) / 2 for i, a in enumerate(logs) for b in logs[i:])


def walsh_dropped(n: int, level: float) -> Optional[int]:
    """Walsh averages left out at each end: the most with P(signed-rank sum < that many) <= (1 - level) / 2."""
    counts = [1]
    for rank in range(1, n + 1):
        longer = counts + [0] * rank
        for total, count in enumerate(counts):
            longer[total + rank] += count
        counts = longer
    allowed, seen, below = (1 - level) / 2 * 2**n, 0, 0
    for count in counts:
        seen += count
        if seen > allowed:
            break
        below += 1
    return below - 1 if below else None


def median(values: Sequence[float]) -> float:
    """The middle value, of an even number the mean of the two middle ones."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def standard_error(logs: Sequence[float]) -> float:
    """Standard error of the middle of at least 4 values, from their interquartile range as of a normal law."""
    ordered = sorted(logs)
    quarter = len(ordered) // 4
    return (ordered[-1 - quarter] - ordered[quarter]) / NORMAL_RANGE / math.sqrt(len(ordered))


def agree(seconds: Sequence[Sequence[float]], error: float) -> bool:
    """Whether the first partner's ratio to each other one is known to this standard error (log) from their turns.

    This is noise within a pair: whether a ratio is large or small does not count.

    Args:
        seconds: for each partner its calls, in the same order.
        error: largest standard error.
    """
    logs = [[math.log(max(one, 1e-9)) for one in calls] for calls in seconds]
    return all(standard_error([a - b for a, b in zip(logs[0], calls)]) <= error for calls in logs[1:])


def log_harmonic(slow: Sequence[float], fast: Sequence[float]) -> float:
    """Log of the harmonic mean of the speedups slow / fast, item by item."""
    return -math.log(sum(after / before for before, after in zip(slow, fast)) / len(slow))
