"""What a process and its descendants use, read cheaply enough to be looked at many times a second."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import psutil

PROC = Path("/proc")
PAGE = os.sysconf("SC_PAGE_SIZE")
PID_BYTES = 8
"""What one process id takes in a list of them."""
# Reading the kernel's own list of children costs 0.1 ms; psutil must read every process of the machine.
HAS_CHILDREN_FILES = (PROC / f"self/task/{os.getpid()}/children").exists()


@dataclass(frozen=True)
class TreeUsage:
    """Of a process tree."""

    tasks: int
    """Processes and threads."""
    memory_bytes: int
    """Sum of the resident memory; pages shared between processes count once for each."""


def descendants(pid: int, most: int | None = None) -> list[int]:
    """The process ids of all living descendants of a process, parents first; without itself.

    With `most`, the search ends when it has found more than that: a program that forks without
    end makes children faster than they can be listed (a kernel's list of n children takes n² to read).
    """
    if not HAS_CHILDREN_FILES:
        try:
            return [child.pid for child in psutil.Process(pid).children(recursive=True)]
        except psutil.Error:
            return []
    found: list[int] = []
    waiting = [pid]
    while waiting and (most is None or len(found) <= most):
        new = children(waiting.pop(), most)
        found += new
        waiting += new
    return found


def children(pid: int, most: int | None = None) -> list[int]:
    """The process ids of its living children, without theirs; `most` as in `descendants`."""
    if not HAS_CHILDREN_FILES:
        try:
            return [child.pid for child in psutil.Process(pid).children()]
        except psutil.Error:
            return []
    found: list[int] = []
    for task in _tasks(pid):
        try:
            with open(f"/proc/{pid}/task/{task}/children", "rb", 0) as file:  # noqa: PTH123  # this is polled
                text = file.readall() if most is None else file.read(PID_BYTES * (most + 2))
        except OSError:  # it ended meanwhile
            continue
        numbers = text.split()
        found += map(int, numbers if text.endswith(b" ") else numbers[:-1])  # the last one may be cut
        if most is not None and len(found) > most:
            break
    return found


def _tasks(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")  # noqa: PTH208  # names are enough, and this is polled
    except OSError:
        return []


def usage(pids: list[int]) -> TreeUsage:
    """Tasks and resident memory of these processes; those that ended count nothing."""
    if not HAS_CHILDREN_FILES:
        return _usage_anywhere(pids)
    tasks = memory = 0
    for pid in pids:
        tasks += len(_tasks(pid))
        try:
            memory += int((PROC / f"{pid}/statm").read_bytes().split()[1]) * PAGE
        except (OSError, IndexError):
            continue
    return TreeUsage(tasks, memory)


def _usage_anywhere(pids: list[int]) -> TreeUsage:
    tasks = memory = 0
    for pid in pids:
        try:
            process = psutil.Process(pid)
            tasks += process.num_threads()
            memory += process.memory_info().rss
        except psutil.Error:
            continue
    return TreeUsage(tasks, memory)


def proportional_memory(pids: list[int]) -> int:
    """Memory of these processes in bytes, shared pages divided among those that share them.

    Slower than `usage` (the kernel walks the page tables); resident memory where there is no such figure.
    """
    total = 0
    for pid in pids:
        try:
            lines = (PROC / f"{pid}/smaps_rollup").read_text().splitlines()
            total += next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
        except (OSError, StopIteration):
            total += usage([pid]).memory_bytes
    return total


def marked(marker: str, known: set[int]) -> list[int]:
    """Processes not in `known` whose environment holds `marker` ('NAME=value'): daemons that left their tree."""
    name, value = marker.split("=", 1)
    found = []
    for pid in set(psutil.pids()) - known - {os.getpid()}:
        try:
            if psutil.Process(pid).environ().get(name) == value:
                found.append(pid)
        except (psutil.Error, OSError):
            continue
    return found
