"""Scripts tried on both sides of a change: which are usable workloads, and why the others are not."""

from __future__ import annotations

from dataclasses import dataclass, field

from data.records import Hit, Reason
from testgen.scripts import Script


@dataclass(frozen=True)
class Trial:
    """What became of a script."""

    script: Script
    reason: Reason | None
    """None: it is usable."""
    detail: str = ""
    hits: list[Hit] = field(default_factory=list)
    seconds: float | None = None
    """One warm call of `experiment` on the base."""
    calls: list[str] = field(default_factory=list)
    """Realistic targets, as for unit tests."""
