"""Figures as people read and write them."""

from __future__ import annotations

import re

from pydantic import ByteSize

from perfquarry.data.errors import InputError

LONGEST_SECONDS = 10 * 366 * 86400.0
"""Longest time limit (seconds): what is longer is a slip."""
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


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


def seconds_of(text: str) -> float:
    """The seconds of a duration such as `90s`, `30m`, `1.5h` or `2d`.

    Raises:
        InputError: it is none.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd])", text.strip().lower())
    if not found or not 0 < float(found[1]) * _UNITS[found[2]] <= LONGEST_SECONDS:
        raise InputError(
            f"{text!r} is no duration: give a number and a unit, such as 90s, 30m, 2h or 1d, of ten years at most"
        )
    return float(found[1]) * _UNITS[found[2]]
