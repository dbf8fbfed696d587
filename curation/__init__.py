"""Timings to evidence to tasks: stability filters and task assembly."""

from typing import Literal

Columns = Literal["native", "gso", "sweperf"]
"""Columns of an exported file."""

Format = Literal["native", "gso", "sweperf", "harbor"]
"""What tasks are exported as; harbor: one folder per task."""

Mode = Literal["sweperf", "full"]
"""How timings from anywhere are analysed: as SWE-Perf's authors do, or as we do."""

Network = Literal["no-network", "public"]
"""What the container of a task in Harbor's form may reach."""

Method = Literal["oracle", "locate"]
"""How a baseline learns the place of a fix."""
