"""How many builds run at once: as many as memory and cores bear, over all processes of a home."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from perfquarry.harness.measuring.machine import cores_of_process

POLL_SECONDS = 0.2


@contextlib.contextmanager
def build_slot(locks: Path, memory_bytes: int) -> Iterator[None]:
    """Waits until one more build fits, then counts as one. The kernel frees the slot of a holder that dies.

    A build fits when no other runs, or fewer run than there are cores and than the memory that
    is available now holds builds of this size. What running builds already took is counted
    twice so, which errs to the side of too few.

    Args:
        locks: folder of the lock files (`Home.locks`).
        memory_bytes: what the build may take; 0: only cores count.
    """
    while (slot := _free_slot(locks, memory_bytes)) is None:
        time.sleep(POLL_SECONDS)
    try:
        yield
    finally:
        slot.release()


def _free_slot(locks: Path, memory_bytes: int) -> FileLock | None:
    cores = cores_of_process()
    with FileLock(locks / "slots.lock"):
        free = [slot for slot in (FileLock(locks / f"slot-{number}.lock") for number in range(cores)) if _taken(slot)]
        fit = cores if not memory_bytes else min(cores, psutil.virtual_memory().available // memory_bytes)
        mine = free.pop() if free and cores - len(free) < max(1, fit) else None
        for slot in free:
            slot.release()
        return mine


def _taken(slot: FileLock) -> bool:
    try:
        slot.acquire(timeout=0)
    except Timeout:
        return False
    return True
