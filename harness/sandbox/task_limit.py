"""A limit on processes and threads that the kernel itself keeps, where this machine lets us set one.

A program that forks without end outruns whoever counts its processes now and then: with a thousand
of them, the one that counts gets a thousandth of the processor, unless they share one part.
"""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

from perfquarry.harness.sandbox.control_groups import control_groups

SPARE = 2
"""The kernel's limit is so many times ours: what goes beyond ours is to be seen and killed, not to hang refused."""
NAME = "perfquarry"
CALLER = "0"
"""The thread that writes it."""
REMOVE_SECONDS = 30.0
"""How long the kernel gets to forget the tasks of a control group."""


class TaskGroup:
    """Control groups for one sandbox: so many tasks, with the processor share of one; none where none can be made."""

    def __init__(self, most: int) -> None:
        name = f"{NAME}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._folders: list[Path] = []
        self._joined: list[Path] = []
        for folder in (parent / name for parent in _parents()):
            with contextlib.suppress(OSError):
                folder.mkdir()
                self._folders.append(folder)
                if (folder / "pids.max").exists():
                    (folder / "pids.max").write_text(str(most * SPARE))

    @contextlib.contextmanager
    def joined(self) -> Iterator[None]:
        """What the calling thread starts inside is under the limit from its first instant, where a thread can join.

        It can with version 1 of control groups; to move another process costs 10 ms (the kernel stops all forks).
        """
        try:
            for folder in self._folders:
                with contextlib.suppress(OSError):  # version 2: it has no such file
                    (folder / "tasks").write_text(CALLER)
                    self._joined.append(folder)
            yield
        finally:
            for folder in self._joined:
                (folder.parent / "tasks").write_text(CALLER)

    def add(self, pids: Iterable[int]) -> None:
        """Puts processes that were not started inside `joined` under the limit, with all they start from now on."""
        missing = [folder for folder in self._folders if folder not in self._joined]
        for pid in pids if missing else ():
            for folder in missing:
                with contextlib.suppress(OSError):
                    (folder / "cgroup.procs").write_text(str(pid))

    def refused(self) -> bool:
        """Whether the kernel refused a task that went beyond the limit: too quickly for who counts to see it."""
        events = [_text(folder / "pids.events").split() for folder in self._folders]
        return any(words[:1] == ["max"] and words[1] != "0" for words in events)

    def remove(self) -> None:
        """Removes them; their processes must be dead."""
        until = time.monotonic() + REMOVE_SECONDS
        while self._folders and time.monotonic() < until:
            try:
                self._folders[-1].rmdir()
                self._folders.pop()
            except OSError:
                time.sleep(0.001)


def resource_limit(most: int) -> str:
    """The same as an argument of `ulimit`, for users other than root, whom it does not bind.

    Kernels before 5.14 count all of the user's processes, not those of the sandbox alone.
    """
    release = tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2] if part.isdigit())
    return str(most * SPARE) if os.geteuid() and release >= (5, 14) else "unlimited"


@functools.cache
def _parents() -> tuple[Path, ...]:
    """The control groups below which we may make some, cleared of what dead processes left there."""
    found = [folder for folder in _own_groups() if os.access(folder, os.W_OK)]
    for left in (left for folder in found for left in folder.glob(f"{NAME}-*-*")):
        if not Path("/proc", left.name.split("-")[1]).exists():
            with contextlib.suppress(OSError):
                left.rmdir()
    return tuple(found)


def _own_groups() -> Iterator[Path]:
    """Ours, of the kernel's controllers of tasks and processor time."""
    for controllers, folder in control_groups("self"):
        delegated = _text(folder / "cgroup.subtree_control").split() if not controllers else ()
        if controllers & {"pids", "cpu"} or "pids" in delegated:
            yield folder


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
