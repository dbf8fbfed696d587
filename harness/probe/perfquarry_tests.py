"""Runs tests of a tree under pytest 3.6 to 9."""

import os
import random
import re
import sys
from importlib.util import find_spec

from perfquarry_django import options_of_django
from perfquarry_items import OwnTime, name_of, readable

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

_MARKS = ("no_cover", "xdist_group", "random_order")
"""Theirs, which strict settings want to know."""
_SETTINGS = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
_ADDOPTS = re.compile(r"^[ \t]*addopts[ \t]*=.*(?:\n[ \t]+.*)*", re.M)
_PLUGIN = re.compile(r"(?<![\w-])-p[\s=\"',]*([\w.]+)(?![\w.:])")
_OF_NOSE = re.compile(r"^[ \t]*doctest[-_]options[ \t]*=(.*(?:\n[ \t]+\S.*)*)", re.M)
_OWN_FRAMES = re.compile(r"^  File \"[^\"\n]*/(?:_pytest/|pluggy/|perfquarry_\w+\.py\")[^\n]*\n(?:    [^\n]*\n)*", re.M)
_COROUTINES = re.compile(r"--asyncio-mode[\s=]+(\w+)")

SEED = 1
"""Of the generators of `random` and numpy that all modules share."""
TOO_LATE = "hypothesis.errors.DeadlineExceeded"
"""In the text of a failure that is one of time alone."""
_TEST = re.compile(rb"^[ \t]*(?:(?:async[ \t]+)?def[ \t]+test|class[ \t]+(?:Test|\w+\([^)]*Test))", re.M)


class Namesakes(object):
    """Test modules of one name: the one before makes way, where pytest would refuse to import the other (nose did so).

    What was collected of it keeps it. A module of a package has the name of its outermost package.
    """

    def __init__(self):
        self._folders = {}

    def import_next(self, path):
        """A test file is imported next."""
        folder, name = os.path.split(path)
        name = os.path.splitext(name)[0]
        while os.path.isfile(os.path.join(folder, "__init__.py")):
            folder, name = os.path.split(folder)
        if self._folders.setdefault(name, folder) != folder:
            self._folders[name] = folder
            for known in [one for one in sys.modules if one == name or one.startswith(name + ".")]:
                del sys.modules[known]


class Test(object):
    """One collected test as an item of the loop."""

    def __init__(self, item, following, session, execute):
        self.nodeid = name_of(item)
        self._item = item
        self._following = following
        self._session = session
        self._execute = execute
        self._names = dict(item.dtest.globs) if is_example(item) else None

    def execute(self, _):
        """One whole run: outcome, message, and seconds of the call."""
        if self._names is not None:  # a run of an example clears them
            self._item.dtest.globs.clear()
            self._item.dtest.globs.update(self._names)
        return self._execute(self._item)

    def release(self):
        """Tears down the fixtures that the next test does not share; the failure's outcome and text, or None."""
        failure = unwind(self._session, self._following)
        return ("error", failure) if failure else None

    def facts(self):
        """What else is known of it."""
        return {}


def run_tests(loop, files):
    """Runs the tests that the request names, in these files, in one session; pytest's exit code."""
    import pytest

    return int(pytest.main(pytest_arguments(loop.request, files), plugins=[make_plugin(loop, files)]))


def make_plugin(loop, files):
    """The pytest plugin; a function, since pytest is imported only after the clocks were taken."""
    import pytest
    from _pytest.runner import runtestprotocol
    from _pytest.unittest import TestCaseFunction

    request, journal, mode, watch = loop.request, loop.journal, loop.mode, loop.watch
    # from 7.0 on a test keeps its instance; before, a collector of its own makes one for each setup
    fresh_instances = int(pytest.__version__.split(".")[0]) >= 7

    class Probe(object):
        """Replaces pytest's loop by one that times, repeats and reports."""

        def __init__(self):
            self.extra_failure = None
            self.namesakes = Namesakes()

        def pytest_configure(self, config):
            for mark in _MARKS:
                config.addinivalue_line("markers", mark)

        def pytest_plugin_registered(self, plugin, manager):
            # hooks of plugins that are left out here, or not installed: pytest ends where one is unknown
            for caller in manager.get_hookcallers(plugin) or ():
                if not caller.has_spec():
                    for implementation in implementations(caller):
                        implementation.optionalhook = True

        @pytest.hookimpl(tryfirst=True)
        def pytest_collectstart(self, collector):
            if isinstance(collector, pytest.Module):
                self.namesakes.import_next(str(getattr(collector, "path", None) or collector.fspath))

        @pytest.hookimpl(tryfirst=True)
        def pytest_collection(self, session):  # the conftests above have set their profiles
            steady_random()
            if "hypothesis" in sys.modules or any(map(names_hypothesis, files)):
                steady_hypothesis()

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtestloop(self, session):
            if session.config.option.collectonly:
                return None
            items = wanted(session.items, request["arguments"], request.get("left_out", ()))
            following = items[1:] + [None]
            loop.run([Test(item, after, session, self.execute) for item, after in zip(items, following)])
            if request["mode"] == "time":
                seen = set(map(name_of, items))
                for node in request["arguments"]:
                    if "::" in node and not any(matches(one, node) for one in seen):
                        journal.write(item={"node": node, "outcome": "error", "message": "not collected"})
            return True

        def execute(self, item):
            """One whole run of a test: outcome, message, and seconds of the call."""
            watch.reset()
            self.extra_failure = None
            steady_random()
            # its parent as the next item: fixtures of the test end, those of the class and module stay
            reports, error, late = loop.guarded(lambda: runtestprotocol(item, log=False, nextitem=item.parent))
            if fresh_instances and isinstance(item.parent, pytest.Class):
                vars(item).pop("_obj", None)  # the next run gets an instance of its own, as the first one did
                vars(item).pop("_instance", None)
            if error is None:
                outcome, message = outcome_of(reports)
            else:
                outcome, message = "error", "%s: %s" % (type(error).__name__, error)
            if outcome == "passed" and watch.seconds is None:
                outcome, message = "error", "its call could not be timed"
            if outcome == "passed" and self.extra_failure:
                outcome, message = "failed", self.extra_failure
            if late:
                outcome, message = "timeout", late
            elif outcome == "failed" and TOO_LATE in message:
                outcome = "timeout"
            return outcome, readable(message), watch.seconds or 0.0

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
                own = OwnTime()
                yield
                watch.add(own.seconds())
                watch.after()

        @pytest.hookimpl(hookwrapper=True, trylast=True)
        def pytest_pyfunc_call(self, pyfuncitem):
            previous = pyfuncitem.obj
            pyfuncitem.obj = watch.wrap(previous)
            own = OwnTime()
            yield
            if watch.seconds is None:  # a plugin called the function by another way
                watch.add(own.seconds())
            pyfuncitem.obj = previous

        def pytest_runtest_logreport(self, report):
            # the loop logs nothing itself: these come from subtests
            if report.failed:
                self.extra_failure = text_of(report)

        def pytest_collectreport(self, report):
            kind = "collect" if report.failed else "skipped" if report.skipped else ""
            if kind:
                journal.write(**{kind: {report.nodeid.replace("::()", ""): readable(text_of(report))}})

    return Probe()


def implementations(caller):
    """Those of a hook."""
    if hasattr(caller, "get_hookimpls"):
        return caller.get_hookimpls()
    return caller._nonwrappers + caller._wrappers  # pluggy before 0.7


def steady_random():
    """What is drawn without a seed is the same in each run of each side: other data are another amount of work."""
    random.seed(SEED)
    drawing = sys.modules.get("numpy.random")
    if hasattr(drawing, "seed"):
        drawing.seed(SEED)


def names_hypothesis(path):
    """Whether a test file speaks of it."""
    with open(path, "rb") as file:
        return b"hypothesis" in file.read()


def steady_hypothesis():
    """Property tests draw equal examples in each process and have no time limit of their own: noise is no failure."""
    try:
        import hypothesis

        options = {}
        for name, value in (("deadline", None), ("derandomize", True), ("database", None)):
            try:
                hypothesis.settings(**{name: value})
            except Exception:  # not known to this version
                continue
            options[name] = value
        hypothesis.settings.register_profile("perfquarry", hypothesis.settings(**options))
        hypothesis.settings.load_profile("perfquarry")
    except Exception:  # a version without profiles, or one that is broken: tests that need it say so
        return


def text_of(report):
    """Why a report failed or was skipped."""
    return _OWN_FRAMES.sub("", getattr(report, "longreprtext", None) or str(report.longrepr))


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


def is_example(item):
    """Whether it is a doctest."""
    return getattr(item, "dtest", None) is not None


def has_examples(path):
    """Whether the tests of a file are the examples in its docstrings: it has no others."""
    with open(path, "rb") as file:
        content = file.read()
    return b">>> " in content and not _TEST.search(content)


def wanted(items, arguments, left_out=()):
    """The collected tests that the arguments name, each once; examples only of files without other tests."""
    found = {}
    written = {name_of(item).partition("::")[0] for item in items if not is_example(item)}
    for item in items:
        node = name_of(item)
        file = node.partition("::")[0]
        if is_example(item) and (file in written or not has_examples(file)):
            continue
        if node not in found and node not in left_out and any(matches(node, argument) for argument in arguments):
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


def settings_of(tree):
    """Texts of the files of settings that there are."""
    for settings in _SETTINGS:
        path = os.path.join(tree, settings)
        if os.path.isfile(path):
            with open(path, "rb") as file:
                yield file.read().decode("utf-8", "replace")


def options_of_the_tree(tree):
    """What of the tree's `addopts` its tests may need to run: plugins that it loads by name, how coroutines are run."""
    options = "\n".join(line for text in settings_of(tree) for line in _ADDOPTS.findall(text))
    kept = []
    for name in _PLUGIN.findall(options):
        top = name.partition(".")[0]
        unwanted = top in UNWANTED or re.sub("^pytest_", "", top) in UNWANTED
        if not unwanted and (find_spec(top) or find_spec("_pytest." + top)):
            kept += ["-p", name]
    if find_spec("pytest_asyncio"):
        kept += ["--asyncio-mode=" + mode for mode in _COROUTINES.findall(options)]
    return kept


def options_of_examples(tree):
    """How examples are compared where nose's settings say it and pytest's do not."""
    from doctest import OPTIONFLAGS_BY_NAME  # as the plugin of pytest that is loaded for them

    text = "\n".join(settings_of(tree))
    flags = [flag for one in _OF_NOSE.findall(text) for flag in re.findall(r"\w+", one) if flag in OPTIONFLAGS_BY_NAME]
    return ["-o", "doctest_optionflags=" + " ".join(flags)] if flags and "doctest_optionflags" not in text else []


def pytest_arguments(request, files):
    """The tree's own configuration holds, but for its command line (coverage, workers, reports)."""
    options = ["-q", "--rootdir=" + request["tree"], "--assert=plain", "-o", "addopts=", "-o", "required_plugins="]
    options.append("--tb=native")  # for its own pytest parses each file of a traceback again: a second a failure
    # of the plugins that are left out: settings, and marks of `conftest.py` where warnings are errors
    options += ["-W", "ignore:Unknown config option", "-W", "ignore:Unknown pytest.mark"]
    if tuple(map(int, sys.modules["pytest"].__version__.split(".")[:2])) >= (9, 2):
        # else texts of more than 100 characters have no part in names: of paths, the length is that of the machine's
        options += ["-o", "parametrize_long_str_id_strategy=legacy"]
    for name in UNWANTED:
        options += ["-p", "no:" + name]
    if find_spec("pytest_benchmark") and "no:benchmark" not in request.get("test_arguments", []):
        options.append("--benchmark-disable")  # it would call a function for a second, however fast it is
    if any(map(has_examples, files)):
        options += ["--doctest-modules"] + options_of_examples(request["tree"])
    if any(os.path.basename(file) == "__init__.py" for file in files):
        options += ["-o", "python_files=__init__.py"]  # before pytest 8 none is taken that no pattern names
    options += options_of_the_tree(request["tree"]) + options_of_django(request["tree"])
    return options + request.get("test_arguments", []) + files
