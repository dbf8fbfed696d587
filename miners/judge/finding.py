"""One observation of a change, before the model weighs it."""

from __future__ import annotations

from typing import NamedTuple


class JudgeFinding(NamedTuple):
    """Something seen in a change."""

    name: str
    value: float
    """How much of it, from 0 to 1."""
    evidence: str


def quote(text: str, at: int) -> str:
    """The line around a position, at most 80 characters."""
    start = max(text.rfind("\n", 0, at) + 1, at - 40)
    line = text[start : start + 80].partition("\n")[0]
    return line.strip()
