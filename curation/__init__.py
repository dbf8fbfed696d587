"""Timings to evidence to tasks: stability filters and task assembly."""
