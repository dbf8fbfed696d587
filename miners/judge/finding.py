"""One observation of a change, before the model weighs it."""

from __future__ import annotations

from typing import NamedTuple


class JudgeFinding(NamedTuple):
    """Something seen in a change."""

    name: str
    value: float
    """How much of it, from 0 to 1."""
    evidence: str


def quote(text: str, at: int, width: int = 80) -> str:
    """The line around a position, at most `width` characters."""
    start = max(text.rfind("\n", 0, at) + 1, at - width // 2)
    line = text[start : start + width].partition("\n")[0]
    return line.strip()
