"""What the probe runs, one item after the other, under one mode: tests of pytest and scripts.

The names of these modules are such that no tree has modules of the same name.
"""

import functools
import gc
import inspect
import json
import os
import signal
from time import process_time

from perfquarry_limits import SHORTEST, TimeLimit, clock, waited_in_all


def private_json():
    """`dumps` and `loads` that no patch of the module's classes reaches: their work is done by objects written in C."""
    encode, scan = json.encoder, json.scanner
    if encode.c_make_encoder is None or scan.c_make_scanner is None:  # an interpreter without them
        return json.dumps, json.loads
    write = encode.c_make_encoder(None, None, encode.encode_basestring_ascii, None, ": ", ", ", False, False, True)
    read = scan.c_make_scanner(json.JSONDecoder())
    return lambda value: "".join(write(value, 0)), lambda text: read(text.strip(), 0)[0]


# Taken before any code under test is loaded, so that patching the modules changes nothing here.
dumps, loads = private_json()
open_file = open
collect = gc.collect
freeze = getattr(gc, "freeze", None)  # 3.7
enable, set_threshold, THRESHOLDS = gc.enable, gc.set_threshold, gc.get_threshold()
getpid = os.getpid
leave = os._exit
set_timer = getattr(signal, "setitimer", None)

MESSAGE_BYTES = 2048
LONG = 0.002  # seconds of a call before which everything is collected on interpreters that settle nothing
DEAR = 4.0  # times as long as the call: where that lasts longer, it is done seldom
SELDOM = 10.0  # times its own length, between two of them
KNOWN = 3  # so many show how long it lasts
IDLE = 2.0  # seconds of sleeping that count as one of work, where tests are not begun for taking long
ALARMS = 5  # an item that survives as many exceptions is left with the whole process


class GaveUp(BaseException):
    """Raised in a test that runs too long; not an Exception, so that few tests swallow it."""


def delay_meter():
    """Seconds for which the main thread was ready but had no processor, as a function: always 0 where none counts them.

    A call that is longer than a slice of the scheduler is interrupted where others use the core, a shorter one
    mostly is not: without this, a busy core would make long calls longer and leave short ones alone.
    """
    try:
        file = os.open("/proc/self/task/%d/schedstat" % getpid(), os.O_RDONLY)
        read = os.pread
        int(read(file, 64, 0).split()[1])
    except (OSError, AttributeError, IndexError, ValueError):
        return lambda: 0.0
    return lambda: int(read(file, 64, 0).split()[1]) * 1e-9


delay = delay_meter()


class OwnTime(object):
    """The time from when it is made until `seconds` is asked for, less that for which others had the processor.

    Others may also have had it while their seconds were read, before the beginning or after the end: what reading
    took longer than usual is left out of theirs, or a call would seem shorter than it is.
    """

    def __init__(self):
        asked = clock()
        self._waited = delay()
        self._begin = clock()
        self._doubt = max(0.0, self._begin - asked - USUAL)

    def seconds(self):
        """Seconds of the call; to be asked once."""
        end = clock()
        delayed = delay() - self._waited
        lasted = end - self._begin
        if not delayed:
            return lasted
        delayed -= self._doubt + max(0.0, clock() - end - USUAL)
        return lasted - delayed if 0 < delayed < lasted else lasted


def usual():
    """Seconds between two looks at the clock with one at the delay between them, where nothing disturbs."""
    found = []
    for _ in range(20):
        begin = clock()
        delay()
        found.append(clock() - begin)
    return min(found)


USUAL = usual()


def settle():
    """What exists by now is not looked at again by collections before each call."""
    collect()
    if freeze:
        freeze()


class Whole(object):
    """Collections of everything, where nothing settles."""

    def __init__(self):
        self._took, self._ended = [], 0.0

    def is_due(self, lasted):
        """Whether one is worth its time before a call that is expected to last so many seconds.

        The shortest of the last ones says what one costs: others on the core make it no longer.
        """
        if lasted < LONG:
            return False
        took = min(self._took) if len(self._took) == KNOWN else 0.0
        return took <= DEAR * lasted or clock() - self._ended >= SELDOM * took

    def collect(self):
        """One of them."""
        own = OwnTime()
        collect(2)
        self._took = self._took[1 - KNOWN :] + [own.seconds()]
        self._ended = clock()


WHOLE = Whole()


def collect_garbage(lasted):
    """Collects what was made since `settle`, before a call that is expected to last so many seconds.

    Where nothing settles (before Python 3.7) everything is looked at, for which short calls have no time: of these
    all but the oldest generation is collected. A long one would then meet whole collections, at calls that differ
    from side to side, and its heap would grow from call to call. Where the heap is so large that looking at it lasts
    many times as long as the call, it is looked at now and then: the interpreter itself does so only once a quarter
    as much has been added, of which such a call makes a small part.

    The collector works as at the start of the interpreter: a package that switches it off when it is imported does so
    to the whole process of its user, and that is no gain of its own. What a call switches is the call's.
    """
    if freeze:
        collect(2)
    elif WHOLE.is_due(lasted):
        WHOLE.collect()
    else:
        collect(1)
    enable()  # after what `gc.callbacks` do
    set_threshold(*THRESHOLDS)


class Journal(object):
    """The result file. Processes that a test forks do not write to it."""

    def __init__(self, path):
        self._file = open_file(path, "a")  # what others may write is kept, and found, instead of written over
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
                own = OwnTime()
                try:
                    return await function(*args, **kwargs)
                finally:
                    add(own.seconds())
                    after()
        else:

            def timed(*args, **kwargs):
                before()
                own = OwnTime()
                try:
                    return function(*args, **kwargs)
                finally:
                    add(own.seconds())
                    after()

        return functools.wraps(function)(timed)


TREE = "<tree>"
"""In a node id: the tree, whose path is another one on each side."""
_tree = []


def set_tree(path):
    """What `name_of` takes for the tree."""
    _tree[:] = [path]


def name_of(item):
    """Node id as today's pytest writes it (before 4.0 there was a '::()' for the instance), the same on all sides."""
    name = item.nodeid.replace("::()", "")
    for path in _tree:  # parameters that are paths are a part of it
        name = name.replace(path, TREE)
    return name


def readable(text):
    """End of a text, without what cannot be written as UTF-8."""
    return text[-MESSAGE_BYTES:].encode("utf-8", "replace").decode("utf-8")[-MESSAGE_BYTES:]


class Mode(object):
    """check: what the other modes add to is one run of each test."""

    def __init__(self, request):
        self.request = request

    def start(self):
        """Before the first test, after collection."""

    def before(self):
        """Right before each call."""

    def after(self):
        """Right after each call."""

    def setup(self, item):
        """Before the fixtures of a test."""

    def teardown(self, item):
        """Before the fixtures of a test are torn down."""

    def run(self, item, execute, left):
        """What is known of one test; `left` is the number of tests that are not done yet."""
        outcome, message, seconds = execute(item)
        return {"outcome": outcome, "message": message, "seconds": seconds}

    def finish(self, journal):
        """After the last test."""


class Shares(object):
    """CPU seconds for the tests of a process, in equal parts for their files; what one leaves, the next ones share.

    A test that sleeps, or waits for processes of its own, uses one CPU second in `IDLE` seconds.
    """

    def __init__(self, seconds, files):
        self._limited, self._left = bool(seconds), seconds
        self._files = len(set(files))
        self._file, self._used, self._share = None, 0.0, seconds
        self._cpu, self._wall = process_time(), clock() - waited_in_all()
        self.not_begun = {}

    def is_spent(self, file):
        """Whether no further test of the file is begun: its part is used up. Each file has one test at least."""
        if not self._limited:
            return False
        cpu, wall = process_time(), clock() - waited_in_all()
        self._used += max(cpu - self._cpu, (wall - self._wall) / IDLE)
        self._cpu, self._wall = cpu, wall
        if file != self._file:
            self._left = max(0.0, self._left - self._used)
            self._file, self._used, self._share = file, 0.0, self._left / max(1, self._files)
            self._files -= 1
        if self._used <= self._share:
            return False
        self.not_begun[file] = self.not_begun.get(file, 0) + 1
        return True


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
        self.limit = None

    def run(self, tests):
        """Runs the tests, then the scripts; each has `nodeid`, `execute`, `release` and `facts`."""
        self.ran = True
        items = tests + self._scripts
        for script in self._scripts:
            self._current = script.nodeid
            self.journal.write(begin=self._current)
            script.load(self)
        self.mode.start()
        files = [item.nodeid.partition("::")[0] for item in items]
        shares = Shares(self.request.get("files_seconds", 0.0), files)
        for number, item in enumerate(items):
            if shares.is_spent(files[number]):
                item.release()
                continue
            self._current = name_of(item)
            self.journal.write(begin=self._current)
            entry = self.mode.run(item, item.execute, len(items) - number)
            failure = item.release()
            if failure and entry["outcome"] == "passed":
                outcome, message = failure
                entry.update(outcome=outcome, message=message, samples=[], calls=0)
            self.journal.write(item=dict(entry, node=self._current, **item.facts()))
        if shares.not_begun:
            self.journal.write(not_begun=shares.not_begun)
        self.mode.finish(self.journal)

    def guarded(self, function):
        """Calls it under the limit of one call: what it returned, the exception, and the message if it was given up.

        Seconds for which it was ready but had no processor do not count (`perfquarry_limits.TimeLimit`): an alarm
        that comes before the limit is over by that measure is set again for what is left.
        """
        limit = self.request["test_timeout"]
        self.limit = TimeLimit(limit) if limit else None
        self._alarms, self._armed = 0, True
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
        except GaveUp as raised:  # the alarm came between the end of the call and this
            error = raised
        self._armed = False
        if limit and set_timer:
            set_timer(signal.ITIMER_REAL, 0)
        return value, error, "still running after %g s" % limit if self._alarms else ""

    def _give_up(self, number, frame):
        if not self._armed:
            return
        if not self._alarms:
            if self.limit.left():
                set_timer(signal.ITIMER_REAL, max(self.limit.due - clock(), SHORTEST), 1.0)
                return
        self._alarms += 1
        if self._alarms > ALARMS:
            message = "could not be interrupted"
            self.journal.write(item={"node": self._current, "outcome": "timeout", "message": message})
            leave(75)
        raise GaveUp("this runs too long")
