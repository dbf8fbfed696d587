"""A limit on processes and threads that the kernel itself keeps, where this machine lets us set one.

A program that forks without end outruns whoever counts its processes now and then: with a thousand
of them, the one that counts gets a thousandth of the processor.
"""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import time
import uuid
from collections.abc import Iterable
from pathlib import Path

SPARE = 2
"""The kernel's limit is so many times ours: what goes beyond ours is to be seen and killed, not to hang refused."""
NAME = "perfquarry"
REMOVE_SECONDS = 2.0
"""How long the kernel gets to forget the tasks of a control group."""


class TaskGroup:
    """A control group for one sandbox; without effect where none can be made."""

    def __init__(self, most: int) -> None:
        parent = _parent()
        self._folder: Path | None = None
        if parent is None:
            return
        folder = parent / f"{NAME}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        with contextlib.suppress(OSError):
            folder.mkdir()
            self._folder = folder
            (folder / "pids.max").write_text(str(most * SPARE))

    def add(self, pids: Iterable[int]) -> None:
        """Puts processes under the limit, with all they start from now on."""
        for pid in pids if self._folder else ():
            with contextlib.suppress(OSError):
                (self._folder / "cgroup.procs").write_text(str(pid))

    def remove(self) -> None:
        """Removes it; its processes must be dead."""
        until = time.monotonic() + REMOVE_SECONDS
        while self._folder and time.monotonic() < until:
            with contextlib.suppress(OSError):
                self._folder.rmdir()
                return
            time.sleep(0.001)


def resource_limit(most: int) -> str:
    """The same as an argument of `ulimit`, for users other than root, whom it does not bind.

    Kernels before 5.14 count all of the user's processes, not those of the sandbox alone.
    """
    release = tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2] if part.isdigit())
    return str(most * SPARE) if os.geteuid() and release >= (5, 14) else "unlimited"


@functools.cache
def _parent() -> Path | None:
    """The control group below which we may make some that limit tasks, cleared of what dead processes left there."""
    try:
        lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    except OSError:
        return None
    old = [Path("/sys/fs/cgroup/pids" + path) for _, controllers, path in lines if controllers == "pids"]
    new = [Path("/sys/fs/cgroup" + path) for number, _, path in lines if number == "0"]
    for folder in [*old, *(one for one in new if "pids" in _text(one / "cgroup.subtree_control").split())]:
        if os.access(folder, os.W_OK):
            for left in folder.glob(f"{NAME}-*-*"):
                if not Path("/proc", left.name.split("-")[1]).exists():
                    with contextlib.suppress(OSError):
                        left.rmdir()
            return folder
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
