"""What sandboxes that keep everything from hostile code have in common."""

from __future__ import annotations

import signal
from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Self

from perfquarry.data.errors import SandboxUnavailable
from perfquarry.harness.contracts import Command, Completed, Isolation, Limits


class Isolating(ABC):
    """A sandbox that promises all of `Isolation`."""

    name: ClassVar[str]
    isolation = Isolation(network=True, files=True, processes=True, crash=True)

    @abstractmethod
    def run(self, command: Command) -> Completed:
        """As `contracts.Sandbox.run`."""

    def verify(self) -> Self:
        """Itself, after it has run one command with everything a run uses.

        Raises:
            SandboxUnavailable: with what was said, and what to do.
        """
        ended = self.run(Command(("/bin/sh", "-c", "exit 7"), cwd=Path("/"), limits=Limits(wall_seconds=30.0)))
        if ended.exit_code != 7:
            raise SandboxUnavailable(f"{self.name} starts but does not run commands: {ended!r}")
        return self


def limit_words(limits: Limits) -> tuple[str, str]:
    """In the units of `ulimit`: blocks of 512 bytes for files, KiB for memory."""
    return str(max(1, limits.file_bytes // 512)), str(max(1, limits.memory_bytes // 1024))


def of_shell(shell: Completed, cpu_seconds: float) -> Completed:
    """What a supervised shell's end says of the command in it."""
    ended = replace(shell, cpu_seconds=cpu_seconds)
    number = (shell.exit_code or 0) - 128
    return replace(ended, exit_code=None, signal=number) if number in signal.valid_signals() else ended
