"""Runs scripts: texts with the six functions of GSO's tests, of which `experiment(data)` alone is timed.

Each call gets data of its own from `setup()`. Where the request has 'store', the first result is
stored there by the script's own `store_result`, and its `run_test` is tried as GSO calls it; with
'keep' = "last" only the last result remains, and `run_test` is not tried. Where it
has 'references', each result is compared with the stored one by the script's own
`check_equivalence` ('both_ways': in the other order, too), which must not accept a damaged reference (not tried for
data that were drawn).

`setup()` is deterministic: its data come from seeds. Where the request has 'draws' (a number by script, or none), a
number can be drawn for each call, too (`LoadedScript.drawn`). It is added to each seed, so that nobody knows the data
of a call before.
"""

import ast
import linecache
import os
import shutil
import sys
import tempfile
import traceback
import types

from perfquarry_items import clock, readable

RESULT = "_result.json"  # what GSO's tests append to the prefix they are given
SEEDED = frozenset(["Random", "seed", "default_rng", "RandomState", "SeedSequence", "manual_seed", "PRNGKey"])
"""Functions whose first argument, or `seed`, is a seed."""
DRAW = "__perfquarry_seed__"


class LoadedScript(object):
    """One script as an item of the loop."""

    def __init__(self, name, text):
        self.nodeid = name
        self.drawn = None
        """A number that is added to each seed, or None."""
        self.seeds = 0
        """How many seeds its functions have taken since the last `prepare`."""
        self._text = text
        self._file = "<%s>" % name
        self._module = None
        self._failure = None
        self._data = self._result = None
        self._phase = "load"
        self._setup_seconds = None
        self._first_seconds = None
        self._call_seconds = None
        self._kept = False
        self._doubted = False
        self._passed = False

    def load(self, loop):
        """Runs its module body, which imports the package; a failure is reported when the script is run."""
        self._loop = loop
        _, error, late = loop.guarded(self._import)
        if late or error is not None:  # an exception may count as false
            self._failure = "timeout" if late else "error", late or self._traceback(error)

    def _import(self):
        name = self.nodeid.replace("-", "_")
        lines = self._text.splitlines(True)
        linecache.cache[self._file] = (len(self._text), None, lines, self._file)  # for tracebacks
        module = types.ModuleType(name)
        module.__file__ = self._file
        sys.modules[name] = module
        text, draws = self._text, self._loop.request.get("draws")
        if draws is not None:
            vars(module)[DRAW] = self._seed
            text = ast.fix_missing_locations(Seeds().visit(ast.parse(text)))
        exec(compile(text, self._file, "exec", dont_inherit=True), vars(module))
        self.drawn = (draws or {}).get(self.nodeid)
        self._module = module

    def _seed(self, value):
        """What a script takes for a seed: the drawn number counts from there."""
        if isinstance(value, bool) or not isinstance(value, int):
            return value
        self.seeds += 1
        return value if self.drawn is None else (value + self.drawn) % 2**32

    def execute(self, _):
        """One call with fresh data: outcome, message, seconds of `experiment`."""
        return self.step(self._whole)

    def step(self, function):
        """Does a part of a call under the limit of one: outcome, message, seconds of `experiment`."""
        self._loop.watch.reset()
        if self._failure:
            return self._failure + (0.0,)
        _, error, late = self._loop.guarded(function)
        seconds = self._loop.watch.seconds or 0.0
        self._passed = error is None and not late
        if self._passed:
            self._phase = ""
            return "passed", "", seconds
        outcome = "timeout" if late else "failed"
        return outcome, late or self._traceback(error), seconds

    def _whole(self):
        self.prepare()
        self.call()
        self.finish()

    def prepare(self):
        """Makes the data of one call."""
        self._phase, self.seeds = "setup", 0
        begin, waited = clock(), self._waited()
        self._data = self._module.setup()
        self._setup_seconds = least(self._setup_seconds, clock() - begin - self._waited() + waited)

    def call(self):
        """The timed part."""
        loop, module = self._loop, self._module
        self._phase = "experiment"
        data, self._data = self._data, None
        loop.mode.setup(self)
        try:
            self._result = loop.watch.wrap(module.experiment)(data)
        finally:
            loop.mode.teardown(self)
        seconds = loop.watch.seconds or 0.0
        self._first_seconds = seconds if self._first_seconds is None else self._first_seconds
        self._call_seconds = least(self._call_seconds, seconds)

    def finish(self):
        """Stores or compares the result, where the request says so."""
        loop, module = self._loop, self._module
        result, self._result = self._result, None
        if loop.request["store"] and (not self._kept or loop.request["keep"] == "last"):
            self._phase = "store"
            folder = os.path.join(loop.request["store"], self.nodeid)
            if not self._kept:
                os.makedirs(folder)
            module.store_result(result, os.path.join(folder, RESULT))
            self._kept = True
        if loop.request["references"]:
            self._phase = "compare"
            module.check_equivalence(self._reference(), result)
            if loop.request.get("both_ways"):
                self._other_way(result)
            if not self._doubted and self.drawn is None:
                self._phase = "doubt"
                self._doubt(result)

    def _other_way(self, result):
        """The result as the reference, where the check can do with results that were stored on both sides.

        A tolerance is often a part of the reference, and only its keys are looked at: what a stranger stored is none.
        """
        folder = tempfile.mkdtemp()
        try:
            path = os.path.join(folder, RESULT)
            self._module.store_result(result, path)
            try:
                self._module.check_equivalence(self._module.load_result(path), self._module.load_result(path))
            except Exception:
                return
            self._module.check_equivalence(self._module.load_result(path), self._reference())
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _waited(self):
        """Seconds that the limit of this call does not count; nothing is looked up where there is none."""
        return self._loop.limit.waited() if self._loop.limit else 0.0

    def _reference(self):
        return self._module.load_result(os.path.join(self._loop.request["references"], self.nodeid, RESULT))

    def _doubt(self, result):
        """The check must refuse a reference each of whose values is another."""
        self._doubted = True
        try:
            harmed, changed = damaged(self._reference())
            if changed:
                self._module.check_equivalence(harmed, result)
        except Exception:
            return
        raise AssertionError(
            "check_equivalence accepts a reference each value of which was changed"
            if changed
            else "the result holds nothing that could be compared"
        )

    def release(self):
        """Tries `run_test`, where results are stored; the failure's outcome and text, or None."""
        if not self._loop.request["store"] or self._loop.request["keep"] == "last" or not self._passed:
            return None
        self._phase = "run_test"
        for arguments in ({"reference": True}, {"eqcheck": True}):
            _, error, late = self._loop.guarded(lambda: self._run_test(**arguments))
            if late or error is not None:
                return "timeout" if late else "error", late or self._traceback(error)
        self._phase = ""
        return None

    def _run_test(self, **arguments):
        prefix = os.path.join(self._loop.request["store"], "run-" + self.nodeid)
        seconds = self._module.run_test(prefix=prefix, **arguments)
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
            raise AssertionError("run_test returned %s, not the seconds of the call" % type(seconds).__name__)

    def facts(self):
        """The function that failed; of setup and call the least seconds, without those it waited."""
        seconds = {"setup_seconds": self._setup_seconds or 0.0, "call_seconds": self._call_seconds or 0.0}
        seconds["first_seconds"] = self._first_seconds or 0.0
        return dict(seconds, phase=self._phase)

    def _traceback(self, error):
        """The end of its traceback, from the script on."""
        lines = traceback.format_exception(type(error), error, error.__traceback__)
        own = [number for number, line in enumerate(lines) if self._file in line]
        return readable("".join(lines[own[0] :] if own else lines[-1:]).strip())


class Seeds(ast.NodeTransformer):
    """Sends each seed through a function."""

    def visit_Call(self, node):
        """Of a call of one of `SEEDED`, its first argument and what is called `seed`."""
        self.generic_visit(node)
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in SEEDED:
            node.args[:1] = [one if isinstance(one, ast.Starred) else through(one) for one in node.args[:1]]
            for keyword in node.keywords:
                if keyword.arg in ("seed", "x", "a"):
                    keyword.value = through(keyword.value)
        return node


def through(value):
    """The call that stands for a seed."""
    return ast.copy_location(ast.Call(func=ast.Name(id=DRAW, ctx=ast.Load()), args=[value], keywords=[]), value)


def least(known, seconds):
    """The smaller one of what is known, if anything is, and of seconds, which never are below zero."""
    seconds = max(0.0, seconds)
    return seconds if known is None else min(known, seconds)


def damaged(value):
    """The value with every number, text and flag in it changed, and how many that were."""
    if isinstance(value, dict):
        pairs = [(key, damaged(one)) for key, one in value.items()]
        return {key: one for key, (one, _) in pairs}, sum(count for _, (_, count) in pairs)
    if isinstance(value, (list, tuple, set, frozenset)):
        parts = [damaged(one) for one in value]
        kind = type(value) if type(value) in (list, tuple, set, frozenset) else tuple
        return kind(one for one, _ in parts), sum(count for _, count in parts)
    if hasattr(value, "tolist") and "numpy" in sys.modules:
        new, count = damaged(value.tolist())
        return sys.modules["numpy"].array(new), count
    if isinstance(value, bool):
        return not value, 1
    if isinstance(value, (int, float, complex)):
        other = value + 1 + abs(value)
        return (other, 1) if other != value and other == other else (0, 1)
    if isinstance(value, str):
        return value + "?", 1
    if isinstance(value, bytes):
        return value + b"?", 1
    return object(), 1
