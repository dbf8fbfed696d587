"""Problem texts: what a solver is told, and what it must not be told (docs/screening.md)."""

from curation.problems.leaks import Fix
from curation.problems.texts import shown, templates

__all__ = ["Fix", "shown", "templates"]
