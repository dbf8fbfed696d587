"""For how long a tree of processes was ready and had no processor, as the kernel shows it from outside.

On a busy machine a command takes several times as long as alone, which says nothing of the command. Waits that
others end, as sleep, disk and network, are the command's own, and so are those of processes that ended between two
looks, and those of a control group that has used up its share of the processors.
"""

import os
from typing import Callable, Dict, Iterable, List, NamedTuple

LONGEST = 4.0
"""Times a limit that a command may last by the wall clock, however long others had the processors."""
LEAST = 0.02
"""Seconds between two looks; the kernel shows every few milliseconds that a thread has run."""

QUIET = 0.25
"""Share of a limit within which nothing is looked up: what is done by then, as most timings, is left alone."""
SHORTEST = 0.001
"""Seconds between two looks at a limit at least."""

Thread = NamedTuple("Thread", [("place", str), ("ran", float), ("waited", float)])


class Waiting(object):
    """Seconds for which a tree waited for a processor, as far as the looks at it show.

    Of each look the largest growth of all threads counts: while one waits, others may run, but what others wait for
    at the same time must not count twice. The kernel shows a wait when it is over. Until then, a thread that is
    ready and has not run since the last look is taken to have waited; that is taken off when the kernel shows it.
    """

    def __init__(self, begin: float) -> None:
        self.seconds = 0.0
        self._begin = self._looked = begin
        self._known = {}  # type: Dict[int, Thread]
        self._ahead = {}  # type: Dict[int, float]

    def look(self, now: float, pids: Iterable[int]) -> None:
        """Looks at the threads of these processes; `now` is on the clock of `begin`."""
        if now - self._looked < LEAST:
            return
        found = threads_of(pids)
        growth = max([self._grown(number, thread, now) for number, thread in found.items()] + [0.0])
        self._known, self._looked = found, now
        self.seconds += min(growth, now - self._begin - self.seconds)

    def _grown(self, number: int, thread: Thread, now: float) -> float:
        before = self._known.get(number)
        if before is None:
            return thread.waited
        if (thread.ran, thread.waited) == (before.ran, before.waited):
            if not is_ready(thread):
                return 0.0
            grown = now - self._looked
            self._ahead[number] = self._ahead.get(number, 0.0) + grown
            return grown
        return thread.waited - before.waited - self._ahead.pop(number, 0.0)


class WaitingLimit(object):
    """So many seconds, less those for which the tree waited for a processor; wall time where that is not known.

    Args:
        seconds: the limit.
        begin: when the time began, on the clock whose readings are passed later (`time.monotonic`).
    """

    def __init__(self, seconds: float, begin: float) -> None:
        self._seconds, self._begin = seconds, begin
        self._waiting = Waiting(begin)

    @property
    def end(self) -> float:
        """The reading of the clock at which it is over, as far as is known now."""
        return self._begin + min(self._seconds + self._waiting.seconds, self._seconds * LONGEST)

    def is_over(self, now: float, processes: Callable[[], Iterable[int]]) -> bool:
        """Looks at the processes (ids), if the limit is not far away."""
        if now - self._begin < self._seconds * QUIET:
            return False
        self._waiting.look(now, processes())
        return now >= self.end

    def next_look(self, now: float, tick: float) -> float:
        """When to look again: after a tick, or when it may be over."""
        return now + max(min(tick, self.end - now), SHORTEST)


def threads_of(pids: Iterable[int]) -> Dict[int, Thread]:
    """The threads of these processes by their ids, with the seconds for which they ran and waited since they began.

    Of processes without such figures (another kernel, another user's with hidden processes), and of what ended
    meanwhile, nothing.
    """
    found = {}
    for pid in pids:
        for name in names_in("/proc/%d/task" % pid):
            place = "/proc/%d/task/%s" % (pid, name)
            try:
                with open(place + "/schedstat", "rb", 0) as file:  # this is polled
                    ran, waited = file.read(128).split()[:2]
                found[int(name)] = Thread(place, int(ran) * 1e-9, int(waited) * 1e-9)
            except (OSError, ValueError):
                continue
    return found


def is_ready(thread: Thread) -> bool:
    """Whether it runs, or would if it had a processor."""
    try:
        with open(thread.place + "/stat", "rb", 0) as file:
            return file.read(1024).rpartition(b")")[2].split()[:1] == [b"R"]
    except OSError:
        return False


def names_in(folder: str) -> List[str]:
    """Names of what is in a folder; none where it is gone."""
    try:
        return os.listdir(folder)
    except OSError:
        return []
