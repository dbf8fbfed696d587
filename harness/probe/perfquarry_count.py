"""Counts the instructions of single warm calls: the probe's mode 'count', under callgrind.

Each test or script is called a few times uncounted, then a few times counted, each count in a file of its
own, from which its sum is read here. With `functions` only what happens inside these functions is counted,
and by function (`perfquarry_inside`). The files of the last counted call stay for the harness to read.

Python 3.6 to 3.14, standard library only.
"""

import os

from perfquarry_inside import InsideCounter
from perfquarry_items import LONG, Mode, Stopwatch, clock, collect_garbage, settle
from perfquarry_requests import Requests, Unavailable

# Taken before any code under test is loaded, so that patching the modules changes nothing here.
getpid = os.getpid
remove, seek_end = os.remove, os.SEEK_END
open_file = open

SMALL = range(1, 480, 16)  # bytes: one length for each class of sizes of Python's allocator
FILLED = 37  # objects of each class by which the allocator's state differs from one counted call to the next
TAIL = 200  # bytes in which a file's sum stands, at its end
EMPTY_CALLS = 5  # calls of nothing, the last of which shows what counting itself costs


class CountMode(Mode):
    """Instructions of each counted call."""

    def __init__(self, request, names):
        Mode.__init__(self, request)
        self._owner = getpid()
        self._parts = 0
        self._counting, self._sum, self._file = False, None, None
        self._overhead, self._failure = 0, None
        self._inside = None
        try:
            self._requests = Requests()
            if request["functions"]:
                self._inside = InsideCounter(self._requests, request, names)
        except (Unavailable, OSError) as error:  # a system may forbid memory that can be written and executed
            self._failure = str(error)

    def start(self):
        self._deadline = clock() + self.request["max_seconds"]
        if self._failure:
            return
        if self._inside:
            self._inside.find()
            self._overhead = self._inside.overhead(self._counted)
        else:
            timed = Stopwatch(self.before, self.after).wrap(nothing)
            self._overhead = [self._counted(timed) for _ in range(EMPTY_CALLS)][-1]
        settle()

    def before(self):
        collect_garbage(LONG)
        if self._counting:
            if self._inside:
                self._inside.begin()
            self._requests.zero()

    def after(self):
        """A process that a test forked counts nothing."""
        if self._counting and getpid() == self._owner:
            self._requests.dump()
            self._parts += 1
            self._forget()
            self._file = "c.%d.%d" % (self._owner, self._parts)
            self._sum = (self._sum or 0) + sum_of(os.path.join(self.request["counts"], self._file))

    def run(self, item, execute, left):
        if self._failure:
            return {"outcome": "error", "message": self._failure, "seconds": 0.0}
        now = clock()
        deadline = now + max(0.0, self._deadline - now) / left
        entry = {"seconds": 0.0, "instructions": []}
        for number in range(max(1, self.request["warmups"])):
            watched = self._inside and not number
            outcome, message, seconds = self._inside.watch(execute, item) if watched else execute(item)
            entry.update(outcome=outcome, message=message, seconds=entry["seconds"] or seconds)
            if outcome != "passed":
                return entry
            if clock() > deadline:
                break
        settle()
        if self._inside:
            self._inside.install()
        self._requests.start()
        self._file = None
        try:
            for number in range(self.request["max_calls"]):
                results = []
                filled = fill(number)
                count = self._counted(lambda: results.append(execute(item)), running=True)
                del filled
                outcome, message, _ = results[0]
                if outcome != "passed":
                    entry.update(outcome=outcome, message=message, instructions=[])
                    return entry
                entry["instructions"].append(max(0, count - (0 if self._inside else self._overhead)))
                if clock() > deadline:
                    break
        finally:
            self._requests.stop()
            if self._inside:
                entry["inside"] = self._inside.uninstall()
        entry["counted"], self._file = self._file or "", None
        if self._inside:
            entry["inside"]["overhead"] = self._overhead
        return entry

    def _counted(self, call, running=False):
        """Instructions between `before` and `after` in one call of what calls them."""
        if not running:
            self._requests.start()
        self._sum, self._counting = None, True
        if self._inside and not running:
            self.before()
        try:
            call()
        finally:
            if self._inside and not running:
                self.after()
            self._counting = False
            if not running:
                self._requests.stop()
        return self._sum or 0

    def _forget(self):
        if self._file:
            remove(os.path.join(self.request["counts"], self._file))


def nothing():
    """What is called to learn what counting itself costs."""


def fill(number):
    """Objects that bring the allocator into another state for each call.

    Where a loop's objects lie at the edge of a pool, each of them links or unlinks the pool: 4 % more instructions,
    in all calls of a process, on either side of a change by chance.
    """
    return [bytes(length) for length in SMALL for _ in range(number * FILLED)]


def sum_of(path):
    """The sum at the end of one of callgrind's files."""
    with open_file(path, "rb") as file:
        file.seek(0, seek_end)
        file.seek(max(0, file.tell() - TAIL))
        return int(file.read().rsplit(b"totals:", 1)[1])
