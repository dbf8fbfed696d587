"""The command line, to be run as a process."""

from __future__ import annotations

import sys
from pathlib import Path


def command(home: Path | None, *arguments: str) -> list[str]:
    place = ["--home", str(home)] if home else []
    return [sys.executable, "-m", "flows.cli", *arguments, *place]
