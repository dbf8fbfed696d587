"""Screening: what machines can say against a task before people look at it (docs/screening.md)."""

from perfquarry.curation.screening.found import FoundProblem, carried, rows_of, screened
from perfquarry.curation.screening.static import Subject, look

__all__ = ["FoundProblem", "Subject", "carried", "look", "rows_of", "screened"]
