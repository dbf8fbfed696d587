"""The time limit of a process tree: seconds for which it was ready but had no processor do not count.

On a busy machine a command takes several times as long as alone, which says nothing of the command. The kernel
tells of each thread how long it waited for a processor. Of a look the largest growth of all threads counts: while
one waits, others may run, but what others wait for at the same time must not count twice. Waits that others end,
as sleep, disk and network, count as the command's own time, and so do those of processes that ended between two
looks, and those of a control group that has used up its share of the processors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.sandbox.tree import run_delays

LONGEST = 4.0
"""Times a limit that a command may last by the wall clock, however long others had the processors."""
QUIET = 0.25
"""Share of a limit within which nothing is looked up: what is done by then, as most timings, is left alone."""
SHORTEST = 0.001
"""Seconds between two looks at least."""


class TimeLimit:
    """So many seconds, less those for which the tree waited for a processor; wall time where that is not known.

    Args:
        seconds: the limit.
        begin: when the time began, on the clock whose readings are passed later (`time.monotonic`).
    """

    def __init__(self, seconds: float, begin: float) -> None:
        self._seconds, self._begin = seconds, begin
        self._known: dict[int, float] = {}
        self._waited = 0.0

    @property
    def end(self) -> float:
        """The reading of the clock at which it is over, as far as is known now."""
        return self._begin + min(self._seconds + self._waited, self._seconds * LONGEST)

    def is_over(self, now: float, processes: Callable[[], Sequence[int]]) -> bool:
        """Looks at the processes (ids), if the limit is not far away."""
        wall = now - self._begin
        if wall < self._seconds * QUIET:
            return False
        found = run_delays(processes())
        growth = max((delay - self._known.get(task, 0.0) for task, delay in found.items()), default=0.0)
        self._known = found
        # a thread that still waits is credited once it has run: at most all that has passed
        self._waited += min(max(growth, 0.0), wall - self._waited)
        return now >= self.end

    def next_look(self, now: float, tick: float) -> float:
        """When to look again: after a tick, or when it may be over."""
        return now + max(min(tick, self.end - now), SHORTEST)
