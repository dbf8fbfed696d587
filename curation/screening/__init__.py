"""Screening: what machines can say against a task before people look at it (docs/screening.md)."""
