"""Timings before other work of the machine, where we may say so."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from perfquarry.data.errors import InputError
from perfquarry.harness.sandbox.control_groups import control_groups

NICE_VARIABLE = "PERFQUARRY_NICE"
TIMED_NICE = -10
"""It gives nine tenths of a core next to one other program."""

PER_NICE = 1.25
"""The kernel's factor between the weights of neighbouring nice values; that of 0 is 1024."""

_lock = threading.Lock()
_preferred = 0
"""Threads that are preferred."""
_before: int | None = None
"""Nice value of our session before the first of them was; None where sessions are not weighed."""


def timed_nice() -> int:
    """Nice value of what is timed: that of `PERFQUARRY_NICE`, else -10; 0 leaves all priorities as they are.

    Raises:
        InputError: the variable is no whole number from -20 to 0.
    """
    text = os.environ.get(NICE_VARIABLE) or str(TIMED_NICE)
    if not re.fullmatch(r"0|-(1?[0-9]|20)", text):
        raise InputError(f"{NICE_VARIABLE} {text!r} is no whole number from -20 (first of all) to 0 (as all others)")
    return int(text)


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """This thread and what it starts run before others; without the right to say so (root has it) nothing changes."""
    thread, wanted = threading.get_native_id(), timed_nice()
    if not wanted or not hasattr(os, "sched_setaffinity"):  # priorities are of threads on Linux alone
        yield
        return
    nice = os.getpriority(os.PRIO_PROCESS, thread)
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, thread, min(nice, wanted))
    try:
        yield
    finally:
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, thread, nice)


@contextlib.contextmanager
def preferred() -> Iterator[None]:
    """This thread runs before others: whoever lets sides take turns hands over some thousand times a pair.

    On a busy machine each of them would wait for what others run. Linux weighs sessions before threads where its
    scheduler groups them (`/proc/sys/kernel/sched_autogroup_enabled`), so our session is preferred, too, as long as
    some thread is: by half, because other programs of the same terminal are in it, and come after what is timed.
    Builds and tests have sessions of their own.
    """
    wanted = timed_nice()
    if not wanted:
        yield
        return
    _group(+1, wanted // 2)
    try:
        with raised():
            yield
    finally:
        _group(-1, wanted // 2)


def prefer_process(pid: int) -> None:
    """Prefers a timed process: its session, and its control group, where it has another one than we.

    Nice values of threads count only within a session, those of sessions only outside of control groups.
    """
    if not (wanted := timed_nice()):
        return
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(str(wanted), encoding="utf-8")
    for folder in _cpu_groups(pid) - _cpu_groups("self"):
        for file, weight in (("cpu.shares", round(1024 * PER_NICE**-wanted)), ("cpu.weight.nice", wanted)):
            with contextlib.suppress(OSError):  # each version of control groups has one of them
                (folder / file).write_text(str(weight), encoding="utf-8")


def _cpu_groups(process: int | Literal["self"]) -> set[Path]:
    return {folder for controllers, folder in control_groups(process) if not controllers or "cpu" in controllers}


def _group(more: int, wanted: int) -> None:
    """Counts the preferred threads, and prefers our session while there are any."""
    global _preferred, _before
    with _lock, contextlib.suppress(OSError):  # no such file: there are no groups; or we may not
        file = Path("/proc/self/autogroup")
        _preferred += more
        if more > 0 and _preferred == 1:
            _before = None
            # empty for a process without a session of its own, as the first one of a container
            found = re.search(r"nice (-?\d+)", file.read_text(encoding="utf-8"))
            if found:
                _before = int(found.group(1))
                file.write_text(str(min(_before, wanted)), encoding="utf-8")
        elif not _preferred and _before is not None:
            file.write_text(str(_before), encoding="utf-8")
