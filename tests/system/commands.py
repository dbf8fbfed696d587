"""The command line, to be run as a process."""

from __future__ import annotations

import signal
import sys
from pathlib import Path


def command(home: Path | None, *arguments: str) -> list[str]:
    place = ["--home", str(home)] if home else []
    return [sys.executable, "-m", "perfquarry", *arguments, *place]


def heed_interrupts() -> None:
    """For `preexec_fn`: Ctrl-C and the like end the program also where a shell with "&" or nohup made them ignored."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
