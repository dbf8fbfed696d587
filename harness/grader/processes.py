"""What the kernel says of processes from outside: who they are, whether they run, what they have used."""

import os
import time

from waiting import names_in

MAY_RUN = frozenset("RS")
"""States of a process that was to stop and has not obeyed yet; one in the kernel ('D') obeys when it leaves it."""


def user_of(pid):
    """The real user id of a process, of a dead one that nobody has waited for, too; None when it is gone."""
    try:
        with open("/proc/%s/status" % pid) as file:
            for line in file:
                if line.startswith("Uid:"):
                    return int(line.split()[1])
    except (OSError, ValueError):
        pass
    return None


def of_user(uid):
    """All processes of a user, whatever their session and parent."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and user_of(name) == uid]


def newest_process():
    """The number that the kernel gave to a process or thread last; None where it does not say."""
    try:
        with open("/proc/loadavg") as file:
            return int(file.read().split()[4])
    except (OSError, ValueError, IndexError):
        return None


def fields_of(pid):
    """The fields of /proc/PID/stat after the name, the state first; None when it is gone."""
    try:
        with open("/proc/%s/stat" % pid) as file:
            return file.read().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None


def state_of(pid):
    """'R', 'S', 'T', ...; 'X' when it is gone."""
    fields = fields_of(pid)
    return fields[0] if fields else "X"


def parent_of(pid):
    """The parent of a process; None when it is gone."""
    fields = fields_of(pid)
    return int(fields[1]) if fields else None


def descendants(pid):
    """Living descendants of a process, parents first; none on a kernel without lists of children."""
    found, waiting = [], [pid]
    while waiting:
        place = "/proc/%d/task" % waiting.pop()
        for task in names_in(place):
            try:
                with open("%s/%s/children" % (place, task)) as file:
                    children = [int(word) for word in file.read().split()]
            except (OSError, ValueError):
                continue
            found += children
            waiting += children
    return found


def cores_of(pid):
    """The cores that some thread of a process may use."""
    found = set()
    for task in names_in("/proc/%d/task" % pid):
        try:
            found |= os.sched_getaffinity(int(task))
        except OSError:
            continue
    return found


def delayed(pids):
    """Seconds for which main threads were ready and had no processor; 0 where the kernel does not say."""
    seconds = 0.0
    for pid in pids:
        try:
            with open("/proc/%d/schedstat" % pid) as file:
                seconds += int(file.read().split()[1]) * 1e-9
        except (OSError, ValueError, IndexError):
            continue
    return seconds


class Meter(object):
    """Processor time of a changing set of processes, dead threads included, to the nanosecond.

    The clock of a process can be read by everybody. What a process used that began and ended between two
    readings is not in it.
    """

    def __init__(self):
        self._seen = {}

    def read(self, pids):
        """Seconds that these processes, and those that were read before, have used."""
        for pid in pids:
            try:
                self._seen[pid] = time.clock_gettime((~pid << 3) | 2)  # CPUCLOCK_SCHED of the whole process
            except OSError:
                continue
        return sum(self._seen.values())
