"""Statistics of pairs of processes, with the standard library alone: Hodges-Lehmann and the signed-rank test.

The same figures as `curation.intervals`, which works on whole arrays at once.
"""

import math
from typing import List, Optional, Sequence, Tuple

LEVEL = 0.95
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


def log_harmonic(slow: Sequence[float], fast: Sequence[float]) -> float:
    """Log of the harmonic mean of the speedups slow / fast, item by item."""
    return -math.log(sum(after / before for before, after in zip(slow, fast)) / len(slow))
