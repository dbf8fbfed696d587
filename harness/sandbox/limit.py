"""The time limit of a process tree: seconds for which it was ready but had no processor do not count."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from perfquarry.harness.alternation.waiting import LONGEST, Waiting

QUIET = 0.25
"""Share of a limit within which nothing is looked up: what is done by then, as most timings, is left alone."""
SHORTEST = 0.001
"""Seconds between two looks at least."""


class SandboxTimeLimit:
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

    def is_over(self, now: float, processes: Callable[[], Sequence[int]]) -> bool:
        """Looks at the processes (ids), if the limit is not far away."""
        if now - self._begin < self._seconds * QUIET:
            return False
        self._waiting.look(now, processes())
        return now >= self.end

    def next_look(self, now: float, tick: float) -> float:
        """When to look again: after a tick, or when it may be over."""
        return now + max(min(tick, self.end - now), SHORTEST)
