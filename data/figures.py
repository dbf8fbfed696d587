"""Figures as people read them."""

from __future__ import annotations

from pydantic import ByteSize


def times(value: float | None) -> str:
    """A speedup for people."""
    if value is None:
        return "–"
    return f"{value:.2f}×" if value < 100 else f"{value:.0f}×"


def with_interval(value: float | None, low: float | None, high: float | None) -> str:
    """A speedup for people with its 95 % interval."""
    return f"{times(value)} [{times(low)}, {times(high)}]"


def duration(seconds: float) -> str:
    """'3 h': of the largest unit that is there twice."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def seconds(value: float) -> str:
    """A duration with three digits and its unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if value * scale >= 1 or unit == "µs":
            return f"{value * scale:.3g} {unit}"
    raise AssertionError("unreachable")


def size(number: int) -> str:
    """Bytes for people."""
    return ByteSize(number).human_readable(separator=" ")
