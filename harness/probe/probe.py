"""Runs tests of a tree under pytest, and scripts, and says what they did: `python probe.py request.json`.

It runs in the target's environment: Python 3.6 to 3.14, pytest 3.6 to 9 (none without tests),
nothing else of ours but the modules beside it. The request is `harness.contracts.ProbeRequest`
plus 'tree', 'source_roots', 'result', and the folders 'store' and 'references' (empty: none). The
result file gets one JSON object a line, as things happen, so that a process that dies shows how
far it came: {"begin": node}, {"item": ProbeItem}, {"lines": ..}, {"collect": ..}, {"skipped": ..} and {"end": ..}
as the last one.

Only the call itself is timed: the test function, or the test method of a TestCase, without
fixtures, setUp and tearDown; of a script, `experiment`.
"""

import json
import os
import sys
import warnings

from perfquarry_alter import AlteredFunctions, Altering
from perfquarry_items import Journal, Loop, Mode, clock, collect_garbage, leave, name_of, set_tree, settle
from perfquarry_limits import waited_in_all
from perfquarry_roots import put_first
from perfquarry_scripts import LoadedScript
from perfquarry_tests import run_tests
from perfquarry_turns import Phased, Turning

AGAIN = "\n"  # ends the context of a second call; node ids have none


class Coverage(Mode):
    """Lines of the `include` files executed in the setup and the call of each test, threads included.

    A test that traces (a debugger's, a tracer's) takes our tracer away: the next test has one again.
    Scripts are called twice, and the lines of the second call kept apart: those of the first alone were cached.
    """

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
        self._call = ""
        os.environ.pop("COVERAGE_CORE", None)

    def start(self):
        self._coverage.start()
        self._tracer = sys.gettrace()

    def setup(self, item):
        if sys.gettrace() is not self._tracer:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # tests may make errors of them
                self._coverage.stop()
                self.start()
        self._coverage.switch_context(name_of(item) + self._call)

    def teardown(self, item):
        self._coverage.switch_context("")

    def run(self, item, execute, left):
        entry = Mode.run(self, item, execute, left)
        if isinstance(item, LoadedScript) and entry["outcome"] == "passed":
            self._call = AGAIN
            entry = Mode.run(self, item, execute, left)
            self._call = ""
        return entry

    def finish(self, journal):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._coverage.stop()
            data = self._coverage.get_data()
        for path in data.measured_files():
            by_node = {}
            for line, contexts in data.contexts_by_lineno(path).items():
                for context in contexts:
                    if context:  # the empty one holds what ran outside tests
                        by_node.setdefault(context, []).append(line)
            file = os.path.relpath(path, self.request["tree"])
            for context, lines in by_node.items():
                node, again, _ = context.partition(AGAIN)
                journal.write(lines={"node": node, "file": file, "lines": sorted(lines), "again": bool(again)})


class ProfileMode(Mode):
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

    _lasted = 0.0

    def start(self):
        settle()
        self._deadline = clock() + self.request["max_seconds"]

    def before(self):
        collect_garbage(self._lasted)

    def run(self, item, execute, left):
        now = clock()
        deadline = now + max(0.0, self._deadline - now) / left
        calls = self.request["calls"].get(name_of(item))
        entry = {"samples": [], "calls": 0}
        # a test so long that it is timed once or twice is warmed up no more often than that
        warm, samples = min(self.request["warmups"], calls or self.request["warmups"]), []
        while not self._enough(samples, calls):
            outcome, message, seconds = execute(item)
            self._lasted = seconds
            entry.update(outcome=outcome, message=message)
            entry.setdefault("seconds", seconds)
            if outcome != "passed":
                return entry
            late = clock() > deadline
            if warm > 0:
                warm = 0 if late else warm - 1
                if not warm:
                    settle()
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


class TurnsMode(Phased, Mode):
    """Nothing runs by itself: requests say what is called (`perfquarry_turns.Turning`)."""


MODES = {"check": Mode, "coverage": Coverage, "profile": ProfileMode, "time": Time, "turns": TurnsMode}


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


def overlaid(name, request):
    """Imports a package of the harness's own folder, whatever version the environment has.

    A tree that is this package itself has its own for whatever it imports, and ours lies aside.
    """
    sys.path[:0] = request["extra_paths"]
    try:
        package = __import__(name)
    finally:
        del sys.path[: len(request["extra_paths"])]
        sys.path.extend(request["extra_paths"])
    roots = request["source_roots"]
    if any(os.path.exists(os.path.join(root, name + end)) for root in roots for end in ("", ".py")):
        for module in [module for module in sys.modules if module.partition(".")[0].lstrip("_") == name]:
            del sys.modules[module]
    return package


def main(path):
    """One session; ends the process. '-': the request comes on standard input, and lies in no file."""
    if path == "-":
        request = json.load(sys.stdin)
    else:
        with open(path) as file:
            request = json.load(file)
    journal = Journal(request["result"])
    set_tree(request["tree"])
    if request["mode"] == "record":
        from perfquarry_recorder import RecordMode  # as long as its folder is on sys.path

        MODES["record"] = lambda request: RecordMode(request, Names(request["tree"]))
    if request["mode"] == "count":
        from perfquarry_count import CountMode

        MODES["count"] = lambda request: CountMode(request, Names(request["tree"]))
    here = os.path.dirname(os.path.realpath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry or ".") != here]
    put_first(request["source_roots"])
    os.environ["PYTHONPATH"] = os.pathsep.join(request["source_roots"])  # for processes that tests start
    sys.argv[:] = ["pytest"]
    files = []
    for argument in request["arguments"]:
        file = argument.split("::")[0]
        if not os.path.exists(file):
            journal.write(collect={file: "there is no such file"})
        elif file not in files:
            files.append(file)
    if files:
        import pytest  # noqa: F401  # before coverage, which may have other versions of what it needs

    scripts = [LoadedScript(name, text) for name, text in request["scripts"].items()]
    mode = MODES[request["mode"]](request)
    altered = request.get("alteration")  # the grader's requests have none
    kind = Turning if request["mode"] == "turns" else Loop
    loop = kind(request, journal, Altering(mode, AlteredFunctions(request)) if altered else mode, scripts)
    status = run_tests(loop, files) if files else 5
    if not loop.ran and (scripts or kind is Turning):
        loop.run([])
    python = ".".join(map(str, sys.version_info[:3]))
    end = {"status": status, "python": python, "nonce": request.get("nonce"), "waited": waited_in_all()}
    journal.write(end=end)
    sys.stdout.flush()
    sys.stderr.flush()
    leave(0)  # threads that tests left behind would hold the interpreter


if __name__ == "__main__":
    main(sys.argv[1])
