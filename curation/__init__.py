"""Timings to evidence to tasks: stability filters and task assembly."""

from typing import Literal

Format = Literal["native", "gso", "sweperf"]
"""Columns of an exported file."""

Mode = Literal["sweperf", "full"]
"""How timings from anywhere are analysed: as SWE-Perf's authors do, or as we do."""
