"""The time limit of a process and what it started: seconds without a processor do not count."""

import threading
import time

from processes import descendants
from waiting import LONGEST, Waiting

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
        begin, pid, left = time.monotonic(), self._process.pid, self._seconds / 2
        waiting = Waiting(begin)
        while not self._ended.wait(left):
            now = time.monotonic()
            waiting.look(now, [pid] + descendants(pid))
            over = begin + min(self._seconds + waiting.seconds, self._seconds * LONGEST)
            left = min(LOOK, over - now)
            if left <= 0:
                self.exceeded = True
                self._process.kill()
                return

    def end(self):
        """The process has ended; whether the limit had."""
        self._ended.set()
        self.join()
        return self.exceeded
