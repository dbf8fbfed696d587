"""Screening: what machines can say against a task before people look at it (docs/screening.md)."""

from curation.screening.found import Found, carried, rows_of, screened
from curation.screening.static import Subject, look

__all__ = ["Found", "Subject", "carried", "look", "rows_of", "screened"]
