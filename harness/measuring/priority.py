"""Timings before other work of the machine, where we may say so."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path

from perfquarry.harness.sandbox.supervise import TIMED_NICE

_lock = threading.Lock()
_preferred = 0
"""Threads that are preferred."""
_before: int | None = None
"""Nice value of our session before the first of them was; None where sessions are not weighed."""


@contextlib.contextmanager
def preferred() -> Iterator[None]:
    """This thread runs before others: whoever lets sides take turns hands over some thousand times a pair.

    On a busy machine each of them would wait for what others run. Linux weighs sessions before threads where its
    scheduler groups them (`/proc/sys/kernel/sched_autogroup_enabled`), so our session is preferred, too, as long as
    some thread is. Builds and tests have sessions of their own. Without the right to say so (root has it) nothing
    changes.
    """
    if not hasattr(os, "sched_setaffinity"):  # priorities are of threads on Linux alone
        yield
        return
    thread = threading.get_native_id()
    nice = os.getpriority(os.PRIO_PROCESS, thread)
    _group(+1)
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, thread, min(nice, TIMED_NICE))
    try:
        yield
    finally:
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, thread, nice)
        _group(-1)


def _group(more: int) -> None:
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
                file.write_text(str(min(_before, TIMED_NICE)), encoding="utf-8")
        elif not _preferred and _before is not None:
            file.write_text(str(_before), encoding="utf-8")
