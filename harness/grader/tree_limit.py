"""The time limit of a process and what it started: seconds without a processor do not count."""

import os
import threading
import time

LONGEST = 4.0
"""Times the limit that it may last by the wall clock, however long others had the processors."""
LOOK = 0.5
"""Seconds between two looks, once the limit is over by the wall clock; before, nothing is looked at."""


class TreeLimit(threading.Thread):
    """Kills a process when it is over; `exceeded` says whether it did."""

    def __init__(self, process, seconds):
        threading.Thread.__init__(self, daemon=True)
        self._process, self._seconds = process, seconds
        self._ended = threading.Event()
        self.exceeded = False

    def run(self):
        """Waits for the end of the process or of the limit."""
        begin, known, waited, left = time.monotonic(), {}, 0.0, self._seconds
        while not self._ended.wait(left):
            wall, found = time.monotonic() - begin, run_delays(self._process.pid)
            growth = max([delay - known.get(task, 0.0) for task, delay in found.items()] + [0.0])
            known = found
            waited += min(growth, wall - waited)
            left = min(LOOK, self._seconds + waited - wall, self._seconds * LONGEST - wall)
            if left <= 0:
                self.exceeded = True
                self._process.kill()
                return

    def end(self):
        """The process has ended; whether the limit had."""
        self._ended.set()
        self.join()
        return self.exceeded


def run_delays(pid):
    """By thread of a process and its descendants, seconds for which it was ready and had no processor."""
    found, waiting = {}, [str(pid)]
    while waiting:
        place = "/proc/%s/task" % waiting.pop()
        for task in names_in(place):
            try:
                found[task] = int(words_of("%s/%s/schedstat" % (place, task))[1]) * 1e-9
                waiting += words_of("%s/%s/children" % (place, task))
            except (OSError, ValueError, IndexError):  # it ended, or this kernel does not tell
                continue
    return found


def names_in(folder):
    """Names of what is in a folder; none where it is gone."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def words_of(path):
    """Words of a small file."""
    with open(path) as file:
        return file.read().split()
