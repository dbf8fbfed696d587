"""Problem texts: what a solver may know, and what it must not know (docs/screening.md)."""

from perfquarry.curation.problems.leaks import Fix
from perfquarry.curation.problems.texts import is_current, shown, templates, texts_for_solvers

__all__ = ["Fix", "is_current", "shown", "templates", "texts_for_solvers"]
