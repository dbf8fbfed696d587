"""What the shell inside a container reports of it, and the private folder through which it does."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from perfquarry.harness.contracts import Exceeded

PIPE_BYTES = 1 << 16


@dataclass(frozen=True)
class Figures:
    """What the control groups of one container have counted; zero where they do not say."""

    cpu_seconds: float
    exceeded: Exceeded
    """Memory: a process was killed for it; processes: one more was refused."""


class ReportFolder:
    """A private folder of one run: the pipe through which the shell inside reports, and a file nobody may read."""

    def __init__(self) -> None:
        self._found: dict[str, int] = {}
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
        """What has been reported until now; lines that end in no number can only be the command's own."""
        with contextlib.suppress(BlockingIOError):
            for line in os.read(self._descriptor, PIPE_BYTES).decode(errors="replace").splitlines():
                name, _, number = line.rpartition(" ")
                if number.isdecimal() and len(number) < 20:
                    self._found[name] = int(number)
        found = self._found  # by file and name, of the first or second version of control groups
        killed = found.get("memory.oom_control oom_kill") or found.get("memory.events oom_kill")
        return Figures(
            cpu_seconds=found.get("cpuacct.usage", 0) / 1e9 or found.get("cpu.stat usage_usec", 0) / 1e6,
            exceeded="memory" if killed else "processes" if found.get("pids.events max") else "",
        )
