"""Runs tests of a tree under pytest and says what they did: `python probe.py request.json`.

It runs in the target's environment: Python 3.6 to 3.14, pytest 3.6 to 9, nothing else of ours.
The request is `harness.contracts.ProbeRequest` plus 'tree', 'source_roots' and 'result'. The
result file gets one JSON object a line, as things happen, so that a process that dies tells how
far it came: {"begin": node}, {"item": ProbeItem}, {"lines": ..}, {"collect": ..}, and {"end": ..}
as the last one.

Only the call itself is timed: the test function, or the test method of a TestCase, without
fixtures, setUp and tearDown.
"""

import functools
import gc
import inspect
import json
import os
import signal
import sys
import time

# Taken before any code under test is loaded, so that patching the modules changes nothing here.
clock = time.perf_counter
collect = gc.collect
freeze = getattr(gc, "freeze", None)  # 3.7
dumps = json.dumps
getpid = os.getpid
leave = os._exit
set_timer = getattr(signal, "setitimer", None)

MESSAGE_BYTES = 2048
ALARMS = 5  # a test that survives as many exceptions is left with the whole process
# Plugins that reorder, distribute, repeat or trace tests, or write into the tree.
UNWANTED = (
    "cacheprovider",
    "randomly",
    "random_order",
    "xdist",
    "xdist.looponfail",
    "pytest_cov",
    "sugar",
    "instafail",
)


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


class Coverage(Mode):
    """Lines of the `include` files executed in the setup and the call of each test, threads included."""

    def __init__(self, request):
        Mode.__init__(self, request)
        if sys.version_info >= (3, 12):
            os.environ["COVERAGE_CORE"] = "ctrace"  # sys.monitoring cannot tell the tests apart
        coverage = overlaid("coverage", request)
        files = [os.path.join(request["tree"], name) for name in request["include"]]
        self._coverage = (
            coverage.Coverage(data_file=None, config_file=False, include=files, messages=False)
            if (coverage.version_info >= (6, 1))
            else coverage.Coverage(data_file=None, config_file=False, include=files)
        )
        os.environ.pop("COVERAGE_CORE", None)

    def start(self):
        self._coverage.start()

    def setup(self, item):
        self._coverage.switch_context(name_of(item))

    def teardown(self, item):
        self._coverage.switch_context("")

    def finish(self, journal):
        self._coverage.stop()
        data = self._coverage.get_data()
        for path in data.measured_files():
            by_node = {}
            for line, contexts in data.contexts_by_lineno(path).items():
                for context in contexts:
                    if context:  # the empty one holds what ran outside tests
                        by_node.setdefault(context, []).append(line)
            file = os.path.relpath(path, self.request["tree"])
            for node, lines in by_node.items():
                journal.write(lines={"node": node, "file": file, "lines": sorted(lines)})


class Profile(Mode):
    """Functions of the tree called in the call phase of each test, by yappi, in all threads."""

    def __init__(self, request):
        Mode.__init__(self, request)
        self._yappi = overlaid("yappi", request)
        self._yappi.set_clock_type("wall")
        self._names = Names(request["tree"])

    def before(self):
        self._yappi.start(builtins=False)

    def after(self):
        self._yappi.stop()

    def run(self, item, execute, left):
        self._yappi.clear_stats()
        entry = Mode.run(self, item, execute, left)
        statistics, callers = {}, {}
        for stat in self._yappi.get_func_stats():
            name = self._names.of(stat.module, stat.lineno)
            if not name:
                continue
            statistics[name] = (stat.ncall, stat.tsub, stat.ttot)
            for child in stat.children:
                callee = self._names.of(child.module, child.lineno)
                if callee:
                    callers.setdefault(callee, set()).add(name)
        entry["functions"] = sorted(statistics, key=lambda name: -statistics[name][2])
        entry["callers"] = {callee: sorted(names) for callee, names in callers.items() if callee in statistics}
        entry["statistics"] = statistics
        return entry


class Time(Mode):
    """Samples: warm-ups, then as many timed calls as asked for, or as fill the wanted time."""

    def start(self):
        self._oldest = 2  # generation of the collector up to which garbage is collected before a call
        self._deadline = clock() + self.request["max_seconds"]

    def before(self):
        collect(self._oldest)

    def run(self, item, execute, left):
        self._oldest = 2
        now = clock()
        deadline = now + max(0.0, self._deadline - now) / left
        calls = self.request["calls"].get(name_of(item))
        entry = {"samples": [], "calls": 0}
        # a test so long that it is timed once or twice is warmed up no more often than that
        warm, samples = min(self.request["warmups"], calls or self.request["warmups"]), []
        while not self._enough(samples, calls):
            outcome, message, seconds = execute(item)
            entry.update(outcome=outcome, message=message)
            entry.setdefault("seconds", seconds)
            if outcome != "passed":
                return entry
            late = clock() > deadline
            if warm > 0:
                warm = 0 if late else warm - 1
                if not warm:  # what exists by now is not looked at again before each of the calls
                    collect()
                    if freeze:
                        freeze()
                    else:  # Python 3.6: it is in the oldest generation
                        self._oldest = 1
                continue
            samples.append(seconds)
            if late:
                break
        entry.update(samples=samples, calls=len(samples))
        return entry

    def _enough(self, samples, calls):
        if calls:
            return len(samples) >= calls
        return len(samples) >= self.request["max_calls"] or sum(samples) >= self.request["min_timed_seconds"] > 0


MODES = {"check": Mode, "coverage": Coverage, "profile": Profile, "time": Time}


class Names(object):
    """Qualified names of functions by file and first line ('path::Class.method'), from the source."""

    def __init__(self, tree):
        self._tree = os.path.realpath(tree)
        self._files = {}

    def of(self, path, line):
        """None for what is no function of the tree (a lambda, a module body, another package)."""
        if path not in self._files:
            self._files[path] = self._read(path)
        return self._files[path].get(line)

    def _read(self, path):
        import ast

        inside = os.path.relpath(os.path.realpath(path), self._tree)
        found = {}
        if inside.startswith(os.pardir) or not os.path.isfile(path):
            return found
        with open(path, "rb") as file:
            source = file.read()
        try:
            waiting = [(ast.parse(source), "")]
        except (SyntaxError, ValueError):
            return found
        while waiting:
            node, prefix = waiting.pop()
            for child in ast.iter_child_nodes(node):
                name = prefix
                if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    name = prefix + child.name + "."
                    if not isinstance(child, ast.ClassDef):
                        # the compiler counts from the first decorator
                        for first in child.decorator_list[:1] + [child]:
                            found[first.lineno] = inside + "::" + name[:-1]
                waiting.append((child, name))
        return found


def name_of(item):
    """Node id as today's pytest writes it (before 4.0 there was a '::()' for the instance)."""
    return item.nodeid.replace("::()", "")


def overlaid(name, request):
    """Imports a package of the harness's own folder, whatever version the environment has."""
    sys.path[:0] = request["extra_paths"]
    try:
        return __import__(name)
    finally:
        del sys.path[: len(request["extra_paths"])]
        sys.path.extend(request["extra_paths"])


def readable(text):
    """End of a text, without what cannot be written as UTF-8."""
    return text[-MESSAGE_BYTES:].encode("utf-8", "replace").decode("utf-8")[-MESSAGE_BYTES:]


def make_plugin(request, journal):
    """The pytest plugin; a function, since pytest is imported only after the clocks were taken."""
    import pytest
    from _pytest.runner import runtestprotocol
    from _pytest.unittest import TestCaseFunction

    mode = MODES[request["mode"]](request)
    watch = Stopwatch(mode.before, mode.after)
    # from 7.0 on a test keeps its instance; before, a collector of its own makes one for each setup
    fresh_instances = int(pytest.__version__.split(".")[0]) >= 7

    class Probe(object):
        """Replaces pytest's loop by one that times, repeats and reports."""

        def __init__(self):
            self.alarms = 0
            self.current = None
            self.extra_failure = None

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtestloop(self, session):
            if session.config.option.collectonly:
                return None
            items = wanted(session.items, request["arguments"])
            mode.start()
            for number, item in enumerate(items):
                self.current = name_of(item)
                journal.write(begin=self.current)
                entry = mode.run(item, self.execute, len(items) - number)
                failure = unwind(session, items[number + 1] if number + 1 < len(items) else None)
                if failure and entry["outcome"] == "passed":
                    entry.update(outcome="error", message=failure, samples=[], calls=0)
                journal.write(item=dict(entry, node=self.current))
            mode.finish(journal)
            if request["mode"] == "time":
                seen = set(map(name_of, items))
                for node in request["arguments"]:
                    if "::" in node and not any(matches(one, node) for one in seen):
                        journal.write(item={"node": node, "outcome": "error", "message": "not collected"})
            return True

        def execute(self, item):
            """One whole run of a test: outcome, message, and seconds of the call."""
            watch.reset()
            self.alarms, self.extra_failure = 0, None
            if request["test_timeout"] and set_timer:
                signal.signal(signal.SIGALRM, self.give_up)
                set_timer(signal.ITIMER_REAL, request["test_timeout"], 1.0)
            try:
                # its parent as the next item: fixtures of the test end, those of the class and module stay
                reports = runtestprotocol(item, log=False, nextitem=item.parent)
            except (Exception, GaveUp, KeyboardInterrupt, SystemExit, pytest.exit.Exception) as error:
                reports, outcome, message = [], "error", "%s: %s" % (type(error).__name__, error)
            else:
                outcome, message = outcome_of(reports)
            finally:
                if request["test_timeout"] and set_timer:
                    set_timer(signal.ITIMER_REAL, 0)
                if fresh_instances and isinstance(item.parent, pytest.Class):
                    vars(item).pop("_obj", None)  # the next run gets an instance of its own, as the first one did
                    vars(item).pop("_instance", None)
            if outcome == "passed" and watch.seconds is None:
                outcome, message = "error", "its call could not be timed"
            if outcome == "passed" and self.extra_failure:
                outcome, message = "failed", self.extra_failure
            if self.alarms:
                outcome, message = "timeout", "still running after %g s" % request["test_timeout"]
            return outcome, readable(message), watch.seconds or 0.0

        def give_up(self, number, frame):
            self.alarms += 1
            if self.alarms > ALARMS:
                journal.write(item={"node": self.current, "outcome": "timeout", "message": "could not be interrupted"})
                leave(75)
            raise GaveUp("this test runs too long")

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_setup(self, item):
            mode.setup(item)

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_teardown(self, item):
            mode.teardown(item)

        @pytest.hookimpl(hookwrapper=True, trylast=True)
        def pytest_runtest_call(self, item):
            # TestCase methods never pass through pytest_pyfunc_call
            if isinstance(item, TestCaseFunction):
                case = getattr(item, "_testcase", None) or item.instance
                previous = item.obj
                timed = watch.wrap(getattr(case, item.name))
                setattr(case, item.name, timed)
                item.obj = timed  # newer versions set the case's method from it
                yield
                item.obj = previous
            elif isinstance(item, pytest.Function):
                yield
            else:  # an item of another kind, a doctest, say
                watch.before()
                begin = clock()
                yield
                watch.add(clock() - begin)
                watch.after()

        @pytest.hookimpl(hookwrapper=True, trylast=True)
        def pytest_pyfunc_call(self, pyfuncitem):
            previous = pyfuncitem.obj
            pyfuncitem.obj = watch.wrap(previous)
            begin = clock()
            yield
            if watch.seconds is None:  # a plugin called the function by another way
                watch.add(clock() - begin)
            pyfuncitem.obj = previous

        def pytest_runtest_logreport(self, report):
            # the loop logs nothing itself: these come from subtests
            if report.failed:
                self.extra_failure = text_of(report)

        def pytest_collectreport(self, report):
            if report.failed:
                journal.write(collect={report.nodeid.replace("::()", ""): readable(text_of(report))})

    return Probe()


def text_of(report):
    """Why a report failed or was skipped."""
    return getattr(report, "longreprtext", None) or str(report.longrepr)


def outcome_of(reports):
    """Outcome of one run, and the text of what failed."""
    for report in reports:
        if report.failed:
            return "failed" if report.when == "call" else "error", text_of(report)
    for report in reports:
        if report.skipped:
            return ("xfailed" if hasattr(report, "wasxfail") else "skipped"), text_of(report)
    return "passed", ""


def matches(node, argument):
    """Whether a node is what an argument names: a file, a class, a test, or all its parameters."""
    return node == argument or node.startswith((argument + "::", argument + "["))


def wanted(items, arguments):
    """The collected tests that the arguments name, each once."""
    found = {}
    for item in items:
        node = name_of(item)
        if node not in found and any(matches(node, argument) for argument in arguments):
            found[node] = item
    return list(found.values())


def unwind(session, nextitem):
    """Tears down the fixtures that the next test does not share; the failure's text, or None."""
    state = session._setupstate
    try:
        if hasattr(state, "_teardown_towards"):  # pytest before 7
            state._teardown_towards(nextitem.listchain() if nextitem else [])
        else:
            state.teardown_exact(nextitem)
    except (Exception, SystemExit) as error:
        return readable("%s: %s" % (type(error).__name__, error))
    return None


def pytest_arguments(request, files):
    """The tree's own configuration holds, but for its command line (coverage, workers, reports)."""
    options = ["-q", "--rootdir=" + request["tree"], "--assert=plain", "-o", "addopts=", "-o", "required_plugins="]
    options += ["-W", "ignore:Unknown config option"]  # of the plugins that are left out
    for name in UNWANTED:
        options += ["-p", "no:" + name]
    return options + files


def main(path):
    """One session; ends the process."""
    with open(path) as file:
        request = json.load(file)
    journal = Journal(request["result"])
    if request["mode"] == "record":
        from perfquarry_recorder import Record  # as long as its folder is on sys.path

        MODES["record"] = lambda request: Record(request, Names(request["tree"]))
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = request["source_roots"] + [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    os.environ["PYTHONPATH"] = os.pathsep.join(request["source_roots"])  # for processes that tests start
    sys.argv[:] = ["pytest"]
    import pytest

    files = []
    for argument in request["arguments"]:
        file = argument.split("::")[0]
        if not os.path.exists(file):
            journal.write(collect={file: "there is no such file"})
        elif file not in files:
            files.append(file)
    status = pytest.main(pytest_arguments(request, files), plugins=[make_plugin(request, journal)]) if files else 5
    journal.write(end={"status": int(status), "python": ".".join(map(str, sys.version_info[:3]))})
    sys.stdout.flush()
    sys.stderr.flush()
    leave(0)  # threads that tests left behind would hold the interpreter


if __name__ == "__main__":
    main(sys.argv[1])
