"""What every parser of scopes returns."""

from __future__ import annotations

from typing import NamedTuple

MODULE = "<module>"
"""Name of what is outside all functions and classes."""


class Scope(NamedTuple):
    """One function, class or module."""

    name: str
    """Qualified within the file: 'Class.method', 'A::b', '<module>'."""
    code: str
    """Fingerprint: equal for equal own code."""


class Span(NamedTuple):
    """Where a function or class stands in its file: lines, counted from 1, the last included."""

    name: str
    first: int
    last: int
