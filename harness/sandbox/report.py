"""What the shell inside a container reports of it at the end, and the private folder through which it does."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figures:
    """What the control groups of one container counted."""

    cpu_seconds: float
    oom_kills: int
    refused_processes: int

    @classmethod
    def of(cls, report: bytes) -> Figures:
        """Of lines that end in a number; zero where the engine's control groups do not tell, or all were killed."""
        found: dict[str, int] = {}
        for line in report.decode(errors="replace").splitlines():
            name, _, number = line.rpartition(" ")
            if number.isdecimal() and len(number) < 20:
                found[name] = int(number)
        return cls(
            cpu_seconds=found.get("cpuacct.usage", 0) / 1e9 or found.get("cpu.stat usage_usec", 0) / 1e6,
            oom_kills=found.get("memory.oom_control oom_kill", 0) or found.get("memory.events oom_kill", 0),
            refused_processes=found.get("pids.events max", 0),
        )


class ReportFolder:
    """A private folder of one run: the pipe through which the shell inside reports, and a file nobody may read."""

    def __init__(self) -> None:
        self._path = Path(tempfile.mkdtemp(prefix="pq-")).resolve()
        self.report, self.closed = self._path / "report", self._path / "closed"
        os.mkfifo(self.report)
        self.report.chmod(0o666)
        self.closed.touch(mode=0)
        # for reading and writing, so that neither end ever waits for the other to open it
        self._descriptor = os.open(self.report, os.O_RDWR | os.O_NONBLOCK)

    def __enter__(self) -> ReportFolder:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)
        shutil.rmtree(self._path, ignore_errors=True)

    def figures(self) -> Figures:
        """What was reported; call it once all is dead."""
        with contextlib.suppress(BlockingIOError):
            return Figures.of(os.read(self._descriptor, 1 << 16))
        return Figures.of(b"")
