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
