"""The probe on real trees: what it times, traces and reports, and what hostile tests cannot make of it."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from pathlib import Path

import coverage
import pytest

from harness.contracts import BuiltSide, Completed, Limits, ProbeItem, ProbeMode, ProbeReport, ProbeRequest, Sandbox
from harness.prober import SandboxProber, read_report

OVERLAY = Path(coverage.__file__).parents[1]
"""Our own site-packages: coverage and yappi for an interpreter of our own version."""
Probe = Callable[..., ProbeReport]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    return tmp_path / "tree"


@pytest.fixture
def probe(sandbox: Sandbox, folder: Path, tmp_path: Path, bare_python: Path) -> Probe:
    """Writes files of a tree ('path', text, ...) and probes it: the first file, unless `arguments` says otherwise."""
    prober = SandboxProber(sandbox, tmp_path / "scratch", overlay=lambda built: [OVERLAY])

    def run(
        *files: str, mode: ProbeMode = "check", wall: float = 60.0, hash_seed: int = 0, **asked: object
    ) -> ProbeReport:
        for path, text in zip(files[::2], files[1::2], strict=True):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(textwrap.dedent(text))
        request = ProbeRequest.model_validate({"mode": mode, "arguments": [files[0]], "max_calls": 5, **asked})
        built = BuiltSide("base", "sha", folder, bare_python, "e", (folder,))
        return prober.run(built, request, limits=Limits(wall_seconds=wall), hash_seed=hash_seed)

    return run


def by_name(report: ProbeReport) -> dict[str, ProbeItem]:
    assert report.outcome == "finished", report.output
    return {item.node.split("::", 1)[1]: item for item in report.items}


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
    assert "the message" in items["test_fails"].message
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
        assert 0.02 <= min(item.samples) < 0.2, item
        assert item.seconds >= 0.02 and item.calls == len(item.samples) >= 1


LIFE = """
    import gc, unittest, pytest
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
    def test_collected(): assert gc.isenabled()
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


def test_configuration_of_the_tree_holds_but_its_command_line_does_not(probe: Probe) -> None:
    report = probe(
        "tests/checks.py", "def check_it(value, other): assert (value, other) == (1, 2)",
        "setup.cfg", "[tool:pytest]\naddopts = --cov=x -n 4 --reruns 3\npython_functions = check_*\n"
        "filterwarnings = error\nrequired_plugins = nowhere\n",
        "conftest.py", "import pytest\n@pytest.fixture\ndef value(): return 1",
        "tests/conftest.py", "import pytest\n@pytest.fixture\ndef other(): return 2",
    )  # fmt: skip
    assert [(item.node, item.outcome) for item in report.items] == [("tests/checks.py::check_it", "passed")]


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


# Tests that misbehave


def test_a_test_that_runs_too_long_is_given_up(probe: Probe) -> None:
    code = """
        import time
        def test_sleeps(): time.sleep(600)
        def test_swallows():
            for _ in range(3):
                try: time.sleep(600)
                except BaseException: pass
        def test_good(): pass"""
    items = by_name(probe("test_long.py", code, test_timeout=0.3))
    assert {name: item.outcome for name, item in items.items()} == {
        "test_sleeps": "timeout", "test_swallows": "timeout", "test_good": "passed"
    }  # fmt: skip


STUCK = """
    import time
    def test_good(): pass
    def test_stuck():
        while True:
            try: time.sleep(600)
            except BaseException: pass
    def test_later(): pass
"""


def test_a_test_that_cannot_be_interrupted_ends_the_process_and_is_named(probe: Probe) -> None:
    report = probe("test_stuck.py", STUCK, test_timeout=0.3)
    assert report.outcome == "crashed"
    assert [item.outcome for item in report.items] == ["passed", "timeout"]


def test_the_wall_limit_names_the_test_that_was_running(probe: Probe) -> None:
    report = probe("test_stuck.py", STUCK, wall=8.0)
    assert report.outcome == "timeout"
    assert [(item.node, item.outcome) for item in report.items] == [
        ("test_stuck.py::test_good", "passed"), ("test_stuck.py::test_stuck", "timeout")
    ]  # fmt: skip


@pytest.mark.parametrize(("end", "told"), [("os._exit(0)", "exit code 0"), ("os.kill(os.getpid(), 11)", "signal 11")])
def test_a_test_that_ends_the_process_is_named(probe: Probe, end: str, told: str) -> None:
    report = probe("test_end.py", f"import os\ndef test_a(): pass\ndef test_b(): {end}\ndef test_c(): pass")
    assert report.outcome == "crashed"
    assert [item.outcome for item in report.items] == ["passed", "crashed"] and told in report.items[1].message


def test_threads_left_behind_do_not_hold_the_process(probe: Probe) -> None:
    code = "import threading, time\ndef test_a(): threading.Thread(target=time.sleep, args=(600,)).start()"
    assert by_name(probe("test_thread.py", code))["test_a"].outcome == "passed"


def test_a_forked_child_does_not_report(probe: Probe) -> None:
    code = "import os\ndef test_a():\n    if os.fork() == 0: return\n    os.wait()\ndef test_b(): pass"
    report = probe("test_fork.py", code)
    assert report.outcome == "finished" and [item.outcome for item in report.items] == ["passed", "passed"]


def test_patched_clocks_do_not_reach_the_samples(probe: Probe) -> None:
    code = """
        import gc, json, os, time
        time.perf_counter = time.monotonic = time.time = lambda: 0.0
        json.dumps = lambda *a, **k: "{}"
        def test_work():
            time.sleep(0.02)"""
    item = by_name(probe("test_cheat.py", code, mode="time", warmups=0))["test_work"]
    assert item.samples and min(item.samples) >= 0.02


def test_sitecustomize_of_the_tree_is_not_loaded_into_the_probe(probe: Probe) -> None:
    code = "import sys\ndef test_a(): assert 'loaded' not in dir(sys)"
    report = probe("test_site.py", code, "sitecustomize.py", "import sys; sys.loaded = True")
    assert by_name(report)["test_a"].outcome == "passed"


def line(entry: dict[str, object]) -> str:
    return f"write({json.dumps(entry)!r})"


FORGERS = {
    "twice": line({"item": {"node": "test_forge.py::test_forge", "outcome": "passed"}}),
    "garbage": "write('not json')",
    "other kind": line({"check": 1}),
    "no object": "write('[1]')",
    "impossible time": line({"item": {"node": "x", "outcome": "passed", "samples": [1e6], "calls": 1}}),
    "negative time": line({"item": {"node": "x", "outcome": "passed", "samples": [-1.0], "calls": 1}}),
    "not a number": line({"item": {"node": "x", "outcome": "passed", "samples": [float("nan")], "calls": 1}}),
    "calls": line({"item": {"node": "x", "outcome": "passed", "samples": [1e-9], "calls": 2}}),
    "deep": "write('[' * 100000)",
    "binary": "open(path, 'ab').write(b'\\xff\\xfe\\n')",
    "fifo": "os.remove(path); os.mkfifo(path)",
    "link": "os.remove(path); os.symlink('/etc/hostname', path)",
    "folder": "os.remove(path); os.mkdir(path)",
    "huge": "os.truncate(path, 2**29)",
}


@pytest.mark.parametrize("forgery", FORGERS.values(), ids=FORGERS)
def test_a_forged_result_is_a_crash_and_never_an_exception(probe: Probe, forgery: str) -> None:
    code = f"""
import os
path = os.path.join(os.environ["HOME"], "result.jsonl")
def write(line):
    with open(path, "a") as file: file.write(line + "\\n")
def test_forge():
    {forgery}
"""
    report = probe("test_forge.py", code)
    assert (report.outcome, report.items) == ("crashed", [])
    assert "result refused" in report.output


def test_a_process_that_wrote_nothing_is_a_crash(tmp_path: Path) -> None:
    ended = Completed(0, None, False, b"out \xff", b"err", False, 1.0, 0.5)
    report = read_report(tmp_path / "missing", ended)
    assert (report.outcome, report.items, report.wall_seconds) == ("crashed", [], 1.0)
    assert report.output == "out \ufffderr"


def test_private_folders_are_removed(probe: Probe, tmp_path: Path) -> None:
    probe("test_a.py", "import os\ndef test_a(): os.mkdir(os.path.join(os.environ['HOME'], 'x'))")
    assert list((tmp_path / "scratch").iterdir()) == []


def test_the_tree_is_left_as_it_was(probe: Probe, folder: Path) -> None:
    probe("pkg/test_a.py", "def test_a(): assert True", "pkg/__init__.py", "", mode="time")
    assert sorted(path.name for path in folder.rglob("*")) == ["__init__.py", "pkg", "test_a.py"]
