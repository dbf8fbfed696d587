"""Time limits of which seconds do not count for which a thread was ready but had no processor.

The kernel counts those of each thread (/proc/self/task/*/schedstat, second number, nanoseconds). Where
it does not say, wall time alone counts. Python 3.6 to 3.14, standard library only.
"""

import functools
import os
import time

# Taken before any code under test is loaded, so that patching the modules changes nothing here. An object of our own:
# freezegun puts its clock in the place of the library's in every module, ours too.
clock = functools.partial(time.perf_counter)
open_file, read, close, list_folder = os.open, os.read, os.close, os.listdir
READ_ONLY = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)

TASKS = "/proc/self/task"
LONGEST = 10.0  # times a limit that it may last by the wall clock, however long others had the processors
OFTEN = 0.25  # times a limit between two looks, once it would be over by the wall clock
SHORTEST = 0.001  # seconds between two looks at least


def delay_of(path):
    """Seconds for which a thread was ready and waited, since it began; 0 where that is not known."""
    try:
        descriptor = open_file(path, READ_ONLY)
        try:
            return int(read(descriptor, 128).split()[1]) * 1e-9
        finally:
            close(descriptor)
    except Exception:  # another system, a thread that ended, code under test that has closed descriptors
        return 0.0


def waited_in_all():
    """Seconds for which the main thread was ready and waited, since the process began."""
    return delay_of("/proc/self/schedstat")


def delays():
    """The same of all threads, by id."""
    try:
        return {task: delay_of("%s/%s/schedstat" % (TASKS, task)) for task in list_folder(TASKS)}
    except Exception:
        return {}


class TimeLimit(object):
    """So many seconds from now on, without those for which the thread that waited longest had no processor.

    Between two looks, that is: what a thread waited that ended since the last one is not known. It is over at
    the latest when `LONGEST` times the seconds have passed by the wall clock.
    """

    def __init__(self, seconds):
        self.seconds = seconds
        self._delays = delays()
        self._waited = 0.0
        self._begin = clock()
        self.due = self._begin + seconds  # it is not over before; later, once it was looked at then

    def waited(self):
        """Seconds since the beginning that do not count."""
        known, found = self._delays, delays()
        growth = max([delay - known.get(task, 0.0) for task, delay in found.items()] + [0.0])
        self._delays = found
        self._waited += min(growth, max(0.0, clock() - self._begin - self._waited))
        return self._waited

    def left(self):
        """Seconds that are left; 0 when it is over."""
        wall = clock() - self._begin
        left = max(0.0, min(self.seconds - wall + self.waited(), self.seconds * LONGEST - wall))
        self.due = clock() + max(min(left, self.seconds * OFTEN), SHORTEST)
        return left

    def is_over(self):
        """The same as a question; cheap before it is due."""
        return clock() >= self.due and not self.left()
