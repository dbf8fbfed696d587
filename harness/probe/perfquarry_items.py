"""What the probe runs, one item after the other, under one mode: tests of pytest and scripts.

The names of these modules are such that no tree has modules of the same name.
"""

import functools
import inspect
import json
import os
import signal
import time

# Taken before any code under test is loaded, so that patching the modules changes nothing here.
clock = time.perf_counter
dumps = json.dumps
getpid = os.getpid
leave = os._exit
set_timer = getattr(signal, "setitimer", None)

MESSAGE_BYTES = 2048
ALARMS = 5  # an item that survives as many exceptions is left with the whole process


class GaveUp(BaseException):
    """Raised in a test that runs too long; not an Exception, so that few tests swallow it."""


class Journal(object):
    """The result file. Processes that a test forks do not write to it."""

    def __init__(self, path):
        self._file = open(path, "a")  # what others may write is kept, and found, instead of written over
        self._owner = getpid()

    def write(self, **entry):
        """Adds one line."""
        if getpid() == self._owner:
            self._file.write(dumps(entry) + "\n")
            self._file.flush()


class Stopwatch(object):
    """Times what it wraps; `seconds` is the sum since `reset`, None when nothing was called."""

    def __init__(self, before, after):
        self.before = before
        self.after = after
        self.reset()

    def reset(self):
        """Forgets what was timed."""
        self.seconds = None

    def add(self, seconds):
        """Counts one call."""
        self.seconds = (self.seconds or 0.0) + seconds

    def wrap(self, function):
        """The function, timed; a coroutine function stays one and is timed with what it waits for."""
        before, after, add = self.before, self.after, self.add
        if inspect.iscoroutinefunction(function):

            async def timed(*args, **kwargs):
                before()
                begin = clock()
                try:
                    return await function(*args, **kwargs)
                finally:
                    add(clock() - begin)
                    after()
        else:

            def timed(*args, **kwargs):
                before()
                begin = clock()
                try:
                    return function(*args, **kwargs)
                finally:
                    add(clock() - begin)
                    after()

        return functools.wraps(function)(timed)


def name_of(item):
    """Node id as today's pytest writes it (before 4.0 there was a '::()' for the instance)."""
    return item.nodeid.replace("::()", "")


def readable(text):
    """End of a text, without what cannot be written as UTF-8."""
    return text[-MESSAGE_BYTES:].encode("utf-8", "replace").decode("utf-8")[-MESSAGE_BYTES:]


class Loop(object):
    """The items of one process: runs each under the mode, and reports it."""

    def __init__(self, request, journal, mode, scripts):
        self.request = request
        self.journal = journal
        self.mode = mode
        self.watch = Stopwatch(mode.before, mode.after)
        self.ran = False
        self._scripts = scripts
        self._current = None
        self._alarms, self._armed = 0, False

    def run(self, tests):
        """Runs the tests, then the scripts; each has `nodeid`, `execute`, `release` and `facts`."""
        self.ran = True
        items = tests + self._scripts
        for script in self._scripts:
            self._current = script.nodeid
            self.journal.write(begin=self._current)
            script.load(self)
        self.mode.start()
        for number, item in enumerate(items):
            self._current = name_of(item)
            self.journal.write(begin=self._current)
            entry = self.mode.run(item, item.execute, len(items) - number)
            failure = item.release()
            if failure and entry["outcome"] == "passed":
                outcome, message = failure
                entry.update(outcome=outcome, message=message, samples=[], calls=0)
            self.journal.write(item=dict(entry, node=self._current, **item.facts()))
        self.mode.finish(self.journal)

    def guarded(self, function):
        """Calls it under the limit of one call: what it returned, the exception, and the message if it was given up."""
        self._alarms, self._armed = 0, True
        limit = self.request["test_timeout"]
        value, error = None, None
        try:
            try:
                if limit and set_timer:
                    signal.signal(signal.SIGALRM, self._give_up)
                    set_timer(signal.ITIMER_REAL, limit, 1.0)
                value = function()
            except BaseException as raised:
                error = raised
            self._armed = False
        except GaveUp as raised:  # the alarm fell between the end of the call and this
            error = raised
        self._armed = False
        if limit and set_timer:
            set_timer(signal.ITIMER_REAL, 0)
        return value, error, "still running after %g s" % limit if self._alarms else ""

    def _give_up(self, number, frame):
        if not self._armed:
            return
        self._alarms += 1
        if self._alarms > ALARMS:
            message = "could not be interrupted"
            self.journal.write(item={"node": self._current, "outcome": "timeout", "message": message})
            leave(75)
        raise GaveUp("this runs too long")
