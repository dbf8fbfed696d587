"""The probe on real trees: what it times, traces and reports."""

from __future__ import annotations

import importlib.util
import random
import shutil
import sys
from collections import Counter
from pathlib import Path

import hypothesis
import pytest
from probed import Probe, by_name

from perfquarry.harness.probing import prober

OUTCOMES = """
    import unittest, pytest
    def test_passes(): pass
    def test_fails(): assert "expected" == "seen", "the message"
    @pytest.mark.skip
    def test_skips(): pass
    @pytest.mark.xfail
    def test_xfails(): assert 0
    @pytest.mark.xfail
    def test_xpasses(): pass
    @pytest.fixture
    def broken(): raise OSError("set-up")
    def test_setup(broken): pass
    @pytest.fixture
    def leaves():
        yield
        raise OSError("tear-down")
    def test_teardown(leaves): pass
    @pytest.mark.parametrize("x", ["a", "b c"])
    def test_parameters(x): assert x == "a"
    class TestClass:
        def test_method(self): pass
    class Case(unittest.TestCase):
        def test_case(self): self.assertEqual(1, 1)
        def test_wrong(self): self.assertEqual(1, 2)
        def test_part(self):
            with self.subTest("x"): self.fail()
        @unittest.expectedFailure
        def test_expected(self): self.fail()
    def test_exits(): raise SystemExit(3)
    def test_interrupts(): raise KeyboardInterrupt
    def test_after(): pass
"""


@pytest.mark.parametrize("mode", ["check", "time"])
def test_outcomes_of_all_kinds_of_tests(probe: Probe, mode: str) -> None:
    items = by_name(probe("test_kinds.py", OUTCOMES, mode=mode))
    assert {name: item.outcome for name, item in items.items()} == {
        "test_passes": "passed", "test_fails": "failed", "test_skips": "skipped", "test_xfails": "xfailed",
        "test_xpasses": "passed", "test_setup": "error", "test_teardown": "error", "test_parameters[a]": "passed",
        "test_parameters[b c]": "failed", "TestClass::test_method": "passed", "Case::test_case": "passed",
        "Case::test_wrong": "failed", "Case::test_part": "failed", "Case::test_expected": "xfailed",
        "test_exits": "failed", "test_interrupts": "error", "test_after": "passed",
    }  # fmt: skip
    message = items["test_fails"].message.rstrip()  # Python's own traceback, without the frames of pytest and the probe
    assert message.endswith("AssertionError: the message") and "_pytest" not in message
    assert message.startswith("Traceback (most recent call last)") and "perfquarry" not in message
    if mode == "time":
        assert all(bool(item.samples) == (item.outcome == "passed") for item in items.values())


SLOW_AROUND = """
    import asyncio, time, unittest, pytest
    @pytest.fixture
    def slow():
        time.sleep(0.2)
        yield
        time.sleep(0.2)
    def test_function(slow): time.sleep(0.02)
    class TestClass:
        def setup_method(self): time.sleep(0.2)
        def teardown_method(self): time.sleep(0.2)
        def test_method(self): time.sleep(0.02)
    class Case(unittest.TestCase):
        def setUp(self): time.sleep(0.2)
        def tearDown(self): time.sleep(0.2)
        def test_case(self): time.sleep(0.02)
    class Asynchronous(unittest.IsolatedAsyncioTestCase):
        async def asyncSetUp(self): await asyncio.sleep(0.2)
        async def asyncTearDown(self): await asyncio.sleep(0.2)
        async def test_coroutine(self): await asyncio.sleep(0.02)
"""


def test_only_the_call_is_timed(probe: Probe) -> None:
    items = by_name(probe("test_slow.py", SLOW_AROUND, mode="time", warmups=1, min_timed_seconds=0.04))
    assert set(items) == {"test_function", "TestClass::test_method", "Case::test_case", "Asynchronous::test_coroutine"}
    for item in items.values():
        # fixtures sleep twenty times as long as the call; the fastest sample is free of the machine's noise
        # nor is time for which the kernel said that it waited for a core, which it may say late
        assert 0.01 <= min(item.samples) < 0.2, item
        assert item.seconds >= 0.01 and item.calls == len(item.samples) >= 1


LIFE = """
    import gc, unittest, pytest
    usual = gc.get_threshold()
    gc.disable()
    gc.set_threshold(100000, 1, 1)
    gc.callbacks.append(lambda *rest: gc.disable())
    log = []
    @pytest.fixture(scope="module")
    def module():
        log.append("module")
        yield
        print("LOG", *log)
    @pytest.fixture
    def each():
        log.append("each")
        yield []
        log.append("end")
    def test_one(module, each):
        assert each == []
        each.append(1)
    class TestFresh:
        def test_instance(self, module):
            assert not hasattr(self, "used")
            self.used = True
    class Case(unittest.TestCase):
        @classmethod
        def setUpClass(cls): cls.count = 0
        def test_a(self):
            assert not hasattr(self, "used")
            self.used = True
            type(self).count += 1
        def test_b(self): assert self.count == 6
    def test_collected(): assert gc.isenabled() and gc.get_threshold() == usual
    def test_log(): assert log == ["module"] + ["each", "end"] * 6
"""


def test_each_call_has_fresh_fixtures_and_instances_and_the_class_stays(probe: Probe) -> None:
    names = ("test_one", "TestFresh::test_instance", "Case::test_a", "Case::test_b", "test_collected", "test_log")
    calls = {f"test_life.py::{name}": 4 for name in names}
    items = by_name(probe("test_life.py", LIFE, mode="time", warmups=2, calls=calls))
    assert {name: (item.outcome, item.calls) for name, item in items.items()} == dict.fromkeys(names, ("passed", 4))


def test_a_test_timed_once_is_warmed_up_once(probe: Probe) -> None:
    code = """
        calls = {"long": 0, "short": 0}

        def test_long():
            calls["long"] += 1

        def test_short():
            calls["short"] += 1

        def test_count():
            assert calls == {"long": 1 + 1, "short": 3 + 5}
    """
    nodes = {"test_warm.py::test_long": 1, "test_warm.py::test_short": 5, "test_warm.py::test_count": 1}
    items = by_name(probe("test_warm.py", code, mode="time", warmups=3, calls=nodes))
    assert {name: (item.outcome, item.calls) for name, item in items.items()} == {
        "test_long": ("passed", 1),
        "test_short": ("passed", 5),
        "test_count": ("passed", 1),
    }


def test_a_failure_at_any_repetition_leaves_no_samples(probe: Probe) -> None:
    code = """
        count = []
        def test_third_time():
            count.append(1)
            assert len(count) < 5
        def test_next(): pass"""
    items = by_name(probe("test_count.py", code, mode="time", warmups=3))
    assert (items["test_third_time"].outcome, items["test_third_time"].samples) == ("failed", [])
    assert items["test_next"].outcome == "passed"


def test_calls_are_calibrated_and_bounded(probe: Probe) -> None:
    code = """
        import time
        def test_slow(): time.sleep(0.03)
        def test_fast(): pass"""
    report = probe("test_speed.py", code, mode="time", warmups=1, min_timed_seconds=0.05, max_calls=20)
    assert {name: item.calls for name, item in by_name(report).items()} == {"test_slow": 2, "test_fast": 20}


def test_an_exhausted_budget_leaves_one_call_a_test(probe: Probe) -> None:
    code = """
        import time, pytest
        @pytest.fixture
        def setup(): time.sleep(0.3)
        def test_a(setup): pass
        def test_b(setup): pass"""
    report = probe("test_costly.py", code, mode="time", warmups=3, max_calls=200, max_seconds=0.1)
    assert {name: item.calls for name, item in by_name(report).items()} == {"test_a": 1, "test_b": 1}
    assert report.wall_seconds < 30


def test_nodes_are_chosen_and_missing_ones_named(probe: Probe) -> None:
    code = """
        import pytest
        @pytest.mark.parametrize("x", [1, 2])
        def test_p(x): pass
        class TestC:
            def test_m(self): pass
        def test_other(): pass"""
    nodes = ["test_n.py::test_p[2]", "test_n.py::TestC::test_m", "test_n.py::test_gone", "gone.py::test_x"]
    report = probe("test_n.py", code, mode="time", arguments=nodes)
    assert {item.node: item.outcome for item in report.items} == dict(
        zip(nodes, ["passed", "passed", "error", "error"], strict=True)
    )
    assert report.collect_errors == {"gone.py": "there is no such file"}


def test_collection_errors_do_not_stop_other_files(probe: Probe) -> None:
    report = probe(
        "test_bad.py", "import nowhere", "test_good.py", "def test_g(): pass", arguments=["test_bad.py", "test_good.py"]
    )
    assert list(report.collect_errors) == ["test_bad.py"] and "nowhere" in report.collect_errors["test_bad.py"]
    assert [(item.node, item.outcome) for item in report.items] == [("test_good.py::test_g", "passed")]


def test_a_broken_conftest_is_a_crash_with_its_reason(probe: Probe) -> None:
    report = probe("test_x.py", "def test_x(): pass", "conftest.py", "import nowhere")
    assert report.outcome == "crashed" and "nowhere" in report.output and not report.items


def test_environment_of_the_tests(probe: Probe) -> None:
    code = """
        import os, subprocess, sys, tempfile
        def test_environment():
            assert os.environ["PYTHONHASHSEED"] == "77" and os.environ["TZ"] == "UTC"
            assert not any("probe" in os.path.basename(path) for path in sys.path)
            assert sys.path[0] == os.getcwd() == os.path.dirname(os.path.abspath(__file__))
            open(os.path.join(os.environ["HOME"], "file"), "w").close()
            tempfile.TemporaryFile().close()
            command = [sys.executable, "-c", "import module; print(module.x)"]
            assert subprocess.check_output(command, cwd="/") == b"5\\n" """
    report = probe("test_env.py", code, "module.py", "x = 5", hash_seed=77)
    assert by_name(report)["test_environment"].outcome == "passed", report.items[0].message


PACKAGE = """
    import functools, threading
    def deco(function):
        @functools.wraps(function)
        def inner(*arguments):
            return function(*arguments)
        return inner
    class K:
        @deco
        def method(self, n):
            if n > 100:
                return helper(n)
            return n
    def helper(n):
        return n * 2
    def threaded():
        thread = threading.Thread(target=helper, args=(1,))
        thread.start()
        thread.join()
"""
USES = """
    import unittest, pytest, pkg
    @pytest.fixture
    def made(): return pkg.K().method(1)
    def test_small(made): assert made == 1
    def test_big(): assert pkg.K().method(1000) == 2000
    def test_thread(): pkg.threaded()
    class Case(unittest.TestCase):
        def setUp(self): pkg.helper(1)
        def test_it(self): pass
    @pytest.fixture
    def late():
        yield
        pkg.K().method(1)
    def test_teardown(late): pass
"""


def test_coverage_tells_the_tests_apart(probe: Probe) -> None:
    """Set-up and call count, threads too; import and tear-down do not; other files are not traced."""
    report = probe("test_use.py", USES, "pkg.py", PACKAGE, mode="coverage", include=["pkg.py"])
    lines = {name: item.lines for name, item in by_name(report).items()}
    assert lines == {
        "test_small": {"pkg.py": [6, 11, 13]},
        "test_big": {"pkg.py": [6, 11, 12, 15]},
        "test_thread": {"pkg.py": [15, 17, 18, 19]},
        "Case::test_it": {"pkg.py": [15]},
        "test_teardown": {},
    }


def test_tests_that_make_errors_of_warnings_do_not_end_the_tracing(probe: Probe) -> None:
    tests = """
        import sys, warnings
        def test_traces():
            warnings.simplefilter("error")
            sys.settrace(None)
        def test_nothing(): pass
    """
    report = probe("test_use.py", tests, "pkg.py", "def one():\n    return 1\n", mode="coverage", include=["pkg.py"])
    assert report.outcome == "finished" and {item.outcome for item in report.items} == {"passed"}


def test_of_files_that_take_long_not_all_tests_are_begun(probe: Probe) -> None:
    """Each file has its share, what quick ones leave goes to the next; fixtures of a file end with it."""
    slow = """
        import time, pytest
        @pytest.fixture(scope="module", autouse=True)
        def whole():
            yield
            print("ended")
        @pytest.mark.parametrize("x", range(50))
        def test_slow(x):
            until = time.process_time() + 0.2
            while time.process_time() < until: pass
    """
    quick = "def test_a(): pass\ndef test_b(): pass\n"
    files = ("test_a.py", slow, "test_b.py", quick, "test_c.py", slow, "test_d.py", slow)
    report = probe(*files, arguments=list(files[::2]), files_seconds=3.0)
    ran = Counter(item.node.partition("::")[0] for item in report.items)
    assert report.outcome == "finished" and {item.outcome for item in report.items} == {"passed"}
    assert ran["test_b.py"] == 2 and report.not_begun == {
        name: 50 - ran[name] for name in files[::2] if name != "test_b.py"
    }
    assert 1 <= ran["test_a.py"] <= 5 and ran["test_a.py"] < ran["test_c.py"] + 2 and 1 <= ran["test_d.py"] <= 8
    assert probe(*files[:2], files_seconds=1e-9).not_begun == {"test_a.py": 49}
    sleeping = "import time, pytest\n@pytest.mark.parametrize('x', range(50))\ndef test_slow(x): time.sleep(0.2)\n"
    assert probe("test_a.py", sleeping, files_seconds=0.5).not_begun["test_a.py"] >= 40


def test_a_tree_that_is_the_tracer_itself_tests_its_own(probe: Probe) -> None:
    """So with coverage.py and yappi, whose tests ran ours; and a test that traces ends our tracer."""
    tests = """
        import sys
        from coverage.core import cached
        def test_traces():
            assert cached(2) == 4
            sys.settrace(lambda *of: None)
            sys.settrace(None)
        def test_after(): assert cached(3) == 6
    """
    core = "def cached(of):\n    return of * 2\n"
    files = ("test_use.py", tests, "coverage/__init__.py", "", "coverage/core.py", core)
    items = by_name(probe(*files, mode="coverage", include=["coverage/core.py"]))
    assert {name: item.lines for name, item in items.items()} == {
        "test_traces": {"coverage/core.py": [2]},
        "test_after": {"coverage/core.py": [2]},
    }


def test_profile_names_functions_with_their_classes_and_callers(probe: Probe) -> None:
    items = by_name(probe("test_use.py", USES, "pkg.py", PACKAGE, mode="profile"))
    big = items["test_big"]
    assert set(big.functions) == {"test_use.py::test_big", "pkg.py::deco.inner", "pkg.py::K.method", "pkg.py::helper"}
    assert big.functions[0] == "test_use.py::test_big"
    assert big.callers["pkg.py::K.method"] == ["pkg.py::deco.inner"]
    assert big.callers["pkg.py::deco.inner"] == ["test_use.py::test_big"]
    assert big.statistics["pkg.py::helper"][0] == 1 and big.statistics.keys() == set(big.functions)
    assert "pkg.py::helper" in items["test_thread"].functions
    assert "pkg.py::K.method" not in items["test_small"].functions  # called by a fixture, not by the test


def test_our_own_part_is_compiled_once_for_an_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = tmp_path / "probe"
    shutil.copytree(prober.PROBE.parent, ours, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(prober, "PROBE", ours / prober.PROBE.name)
    prober.compile_probe.cache_clear()
    prober.compile_probe(tmp_path / "no-such-python")
    assert not (ours / "__pycache__").exists(), "an interpreter of a container is not here"
    prober.compile_probe(Path(sys.executable).resolve())
    assert all(Path(importlib.util.cache_from_source(str(one))).exists() for one in ours.glob("*.py"))


PROPERTIES = """
    import time
    from hypothesis import given, settings, strategies
    @given(strategies.integers())
    @settings(max_examples=2)
    def test_slow(number): time.sleep(0.3)
    @given(strategies.integers())
    @settings(max_examples=2, deadline=10)
    def test_own_limit(number): time.sleep(0.02)
    @given(strategies.integers())
    def test_wrong(number): assert number != 0
    @given(strategies.lists(strategies.integers()))
    def test_drawn(numbers):
        drawn.append(numbers)
    drawn = []
    def test_shown(): raise ValueError("drawn %s" % drawn[:20])
"""


def test_properties_draw_the_same_and_fail_by_no_time_of_theirs(probe: Probe) -> None:
    ours = f"import sys; sys.path.append({str(Path(hypothesis.__file__).parents[1])!r})"
    reports = [by_name(probe("test_properties.py", PROPERTIES, "conftest.py", ours)) for _ in range(2)]
    for items in reports:
        assert {name: item.outcome for name, item in items.items()} == {
            "test_slow": "passed", "test_own_limit": "timeout", "test_wrong": "failed", "test_drawn": "passed",
            "test_shown": "failed",
        }  # fmt: skip
    shown = [items["test_shown"].message for items in reports]
    assert shown[0] == shown[1] and "drawn [[" in shown[0]


@pytest.mark.parametrize("mode", ["check", "coverage", "time"])
def test_what_tests_write_into_their_own_copy_of_the_tree_ends_with_the_process(
    probe: Probe, folder: Path, mode: str
) -> None:
    code = """
        import os, pathlib
        import lib
        beside = pathlib.Path(__file__).with_name("made.txt")
        def test_writes():
            assert not beside.exists() and not os.path.exists("here.txt"), "another process's"
            beside.write_text("1")
            with open("here.txt", "w") as file:
                file.write(str(lib.one()))
            with open(lib.__file__, "a") as file:
                file.write("# changed")
            for path in (beside, "here.txt"):
                os.remove(path)
            open("left.txt", "w").close()
    """
    files = ("tests/test_a.py", code, "lib.py", "def one():\n    return 1\n")
    (folder.parent / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")  # nobody's above a home
    for _ in range(2):
        report = probe(*files, mode=mode, include=["lib.py"], writable_tree=True)
        item = by_name(report)["test_writes"]
        assert item.outcome == "passed", item.message
    assert mode != "coverage" or item.lines == {"lib.py": [2]}
    assert sorted(path.name for path in folder.rglob("*.[pt][yx]*")) == ["lib.py", "test_a.py"]
    assert (folder / "lib.py").read_text() == files[3]


FROZEN = """\
    import sys, time
    import pytest
    import lib

    @pytest.fixture(autouse=True)
    def frozen():
        "As freezegun does: in all modules, whatever is the library's clock is another one meanwhile."
        real = {id(getattr(time, name)): name for name in ("time", "monotonic", "perf_counter", "localtime")}
        changed = []
        for module in list(sys.modules.values()):
            for name in dir(module):
                value = getattr(module, name, None)
                if id(value) in real and module is not sys.modules[__name__]:
                    changed.append((module, name, value))
                    setattr(module, name, lambda: 1308874145.0)
        assert time.time() == 1308874145.0
        yield
        for module, name, value in changed:
            setattr(module, name, value)

    def test_frozen():
        assert lib.one() == 1
"""


@pytest.mark.parametrize("mode", ["check", "coverage", "time"])
def test_tests_that_freeze_the_clock_are_timed_by_the_real_one(probe: Probe, mode: str) -> None:
    report = probe("tests/test_a.py", FROZEN, "lib.py", "def one():\n    return 1\n", mode=mode, include=["lib.py"])
    assert report.outcome == "finished", report.output
    item = by_name(report)["test_frozen"]
    assert item.outcome == "passed", item.message
    assert all(0 < seconds < 10 for seconds in [item.seconds, *item.samples])


RANDOM = """
    import random
    import numpy.random
    FROM = [random.random() for _ in range(3)]
    AT_IMPORT = numpy.random.SEEDS[:]
    def test_draws():
        assert [random.random() for _ in range(3)] == FROM == {expected}
        assert numpy.random.SEEDS[len(AT_IMPORT):] and set(numpy.random.SEEDS) == {{1}}
"""


@pytest.mark.parametrize("mode", ["check", "time"])
def test_what_is_drawn_without_a_seed_is_the_same_in_each_run(probe: Probe, mode: str) -> None:
    drawn = random.Random(1)
    text = RANDOM.format(expected=[drawn.random() for _ in range(3)])
    numpy = ["numpy/__init__.py", "", "numpy/random.py", "SEEDS = []\nseed = SEEDS.append\n"]
    (item,) = probe("test_random.py", text, *numpy, mode=mode).items
    assert item.outcome == "passed", item.message
