"""Independent jobs of one command; who does them, and how many at once, is the caller's choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Job:
    """One piece of work; it writes its own result when it is done."""

    label: str
    work: Callable[[], None]


DoAll = Callable[[Sequence[Job]], None]
"""Does the jobs; the first that raises ends those that have not begun, and its error is raised."""
