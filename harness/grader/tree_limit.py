"""The time limit of a process and what it started: seconds without a processor do not count."""

import threading
import time

from processes import descendants
from waiting import WaitingLimit

LOOK = 0.5
"""Seconds between two looks, once half of the limit is over by the wall clock; before, nothing is looked at."""


class TreeLimit(threading.Thread):
    """Kills a process when it is over; `exceeded` says whether it did."""

    def __init__(self, process, seconds):
        threading.Thread.__init__(self, daemon=True)
        self._process, self._seconds = process, seconds
        self._ended = threading.Event()
        self.exceeded = False

    def run(self):
        """Waits for the end of the process or of the limit."""
        pid, left = self._process.pid, self._seconds / 2
        limit = WaitingLimit(self._seconds, time.monotonic())
        while not self._ended.wait(left):
            now = time.monotonic()
            if limit.is_over(now, lambda: [pid] + descendants(pid)):
                self.exceeded = True
                self._process.kill()
                return
            left = limit.next_look(now, LOOK) - now

    def end(self):
        """The process has ended; whether the limit had."""
        self._ended.set()
        self.join()
        return self.exceeded
