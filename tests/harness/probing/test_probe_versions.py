"""The probe on every installed interpreter, each with the pytest of its time and with today's coverage and yappi."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from probed import uv

from perfquarry.harness.contracts import BuiltSide, Files, Limits, PartnerFailed, ProbeRequest
from perfquarry.harness.probing.live import LiveProcess
from perfquarry.harness.probing.prober import Prober
from perfquarry.harness.probing.recording import RecordRequest
from perfquarry.harness.sandbox import choose_sandbox
from tests.six_functions import REST

PYTESTS = {
    "3.6": "pytest==3.6.4",
    "3.7": "pytest==4.6.11",
    "3.8": "pytest==5.4.3",
    "3.9": "pytest==6.2.5",
    "3.10": "pytest==7.1.3",
    "3.11": "pytest==7.4.4",
    "3.12": "pytest==8.2.2",
    "3.13": "pytest==8.4.2",
    "3.14": "pytest>=9",
}
"""From the oldest supported to the newest; each pytest has another way to make, keep and drop instances."""

MODULE = """
def helper(n):
    return sum(range(n))
class K:
    def method(self, n):
        return helper(n)
"""
TESTS = """
import unittest
import pytest
import module

@pytest.fixture
def each():
    return []

def test_function(each):
    each.append(1)
    assert each == [1] and module.K().method(10) == 45

class TestClass:
    def test_instance(self):
        assert not hasattr(self, "used")
        self.used = True

@pytest.mark.parametrize("n", [1, 2])
def test_parameters(n):
    assert module.helper(n) == n - 1

class Case(unittest.TestCase):
    def setUp(self):
        assert not hasattr(self, "used")
        self.used = True
    def test_method(self):
        self.assertEqual(module.helper(3), 3)

if hasattr(unittest, "IsolatedAsyncioTestCase"):
    class Asynchronous(unittest.IsolatedAsyncioTestCase):
        async def test_coroutine(self):
            self.assertEqual(module.helper(3), 3)

def test_fails():
    assert 0
"""
SCRIPT = f"""
import module
def setup():
    return [10]
def experiment(data):
    return {{"sum": module.K().method(data.pop())}}
{REST}
"""
EXPECTED = {
    "test_function": "passed",
    "TestClass::test_instance": "passed",
    "test_parameters[1]": "passed",
    "test_parameters[2]": "passed",
    "Case::test_method": "passed",
    "test_fails": "failed",
}
SCRIPTS = {"script-good": SCRIPT, "script-bad": SCRIPT + "def setup(): return nowhere\n"}


def interpreter(version: str) -> Path | None:
    """An installed CPython: one of pyenv's, else one on PATH."""
    if shutil.which("pyenv"):
        root = subprocess.run(["pyenv", "root"], capture_output=True, text=True, check=True).stdout.strip()
        found = sorted(Path(root).glob(f"versions/{version}.*/bin/python{version}"))
        if found:
            return found[-1]
    on_path = shutil.which(f"python{version}")
    return Path(on_path).resolve() if on_path else None


QUICK = ("3.6", "3.13")


@pytest.mark.parametrize(
    "version", [one if one in QUICK else pytest.param(one, marks=pytest.mark.slow) for one in PYTESTS]
)
def test_every_mode_works_on_every_interpreter(version: str, tmp_path: Path) -> None:
    found = interpreter(version)
    if found is None:
        pytest.skip(f"no Python {version} is installed: the probe was NOT tried on it")
    python, overlay, tree = tmp_path / "env" / "bin" / "python", tmp_path / "overlay", tmp_path / "tree"
    uv("venv", "-q", "--python", str(found), str(tmp_path / "env"))
    uv("pip", "install", "-q", "--python", str(python), PYTESTS[version])
    uv("pip", "install", "-q", "--python", str(python), "--target", str(overlay), "coverage", "yappi")
    tree.mkdir()
    (tree / "conftest.py").write_text("def pytest_of_a_plugin_left_out(node): 1 / 0\n")
    (tree / "module.py").write_text(textwrap.dedent(MODULE))
    (tree / "test_all.py").write_text(textwrap.dedent(TESTS))
    (tree / "units").mkdir()
    (tree / "units" / "__init__.py").write_text("def test_of_a_package(): pass\n")
    expected = {f"test_all.py::{name}": outcome for name, outcome in EXPECTED.items()}
    expected["units/__init__.py::test_of_a_package"] = "passed"
    if version not in ("3.6", "3.7"):
        expected["test_all.py::Asynchronous::test_coroutine"] = "passed"
    prober = Prober(choose_sandbox(), tmp_path / "scratch", overlay=lambda built: [overlay])
    built = BuiltSide("base", "sha", tree, python, "e", (tree,))

    expected |= {"script-good": "passed", "script-bad": "failed"}
    results: dict[str, Files] = {}

    for mode in ("check", "time", "coverage", "profile"):
        request = ProbeRequest(
            mode=mode,
            arguments=["test_all.py", "units/__init__.py"],
            scripts=SCRIPTS,
            store=not results,
            references=results,
            include=["module.py"],
            warmups=2,
            max_calls=3,
        )
        report = prober.run(built, request, limits=Limits(wall_seconds=100.0))
        assert report.outcome == "finished" and report.python.startswith(version), report.output
        items = {item.node: item for item in report.items}
        assert {node: item.outcome for node, item in items.items()} == expected, (mode, report.items)
        assert items["script-bad"].phase == "setup" and "nowhere" in items["script-bad"].message
        results = results or report.results
        method, script = items["test_all.py::Case::test_method"], items["script-good"]
        if mode == "time":
            assert {item.calls for item in items.values() if item.outcome == "passed"} == {3}
        if mode == "coverage":
            assert items["test_all.py::test_function"].lines == {"module.py": [3, 6]}
            assert method.lines == {"module.py": [3]}
            assert script.lines == script.again == {"module.py": [3, 6]}
        if mode == "profile":
            assert set(method.functions) == {"test_all.py::Case.test_method", "module.py::helper"}
            callers = items["test_all.py::test_function"].callers
            assert callers["module.py::helper"] == script.callers["module.py::helper"] == ["module.py::K.method"]

    turns = ProbeRequest(
        mode="turns", arguments=["test_all.py", "units/__init__.py"], scripts=SCRIPTS, test_timeout=60.0
    )
    with prober.open(built, turns, limits=Limits(wall_seconds=100.0)) as partner:
        partner.ready()
        assert set(partner.kinds) == set(expected)
        for node, outcome in expected.items():
            if outcome != "passed":
                with pytest.raises(PartnerFailed) as failed:
                    partner.warm(node, 2)
                assert (failed.value.outcome, failed.value.gone) == ("failed", False)
                continue
            first, last, outside = partner.warm(node, 2)
            assert 0 < first < outside and 0 < last < outside
            partner.stop()
            partner.go()
            calls = partner.turn(node, 1, [0.5, 0.0])
            assert len(calls) == 2 and all(inside > 0 and outside == around for inside, outside, around in calls)
        assert partner.end().python.startswith(version)

    wanted = RecordRequest(
        functions=["module.py::helper"],
        lines={"module.py": [3]},
        test_files=["test_*.py"],
        calls=5,
        test_calls=5,
        values=100,
        bytes=1000,
        seconds=60.0,
        test_seconds=10.0,
    )
    recorded = prober.run(
        built,
        ProbeRequest(mode="record", arguments=["test_all.py"], record=wanted),
        limits=Limits(wall_seconds=100.0),
    )
    assert recorded.outcome == "finished", recorded.output
    calls = {(call.function, call.node): call for call in recorded.recorded}
    direct = calls["module.py::helper", "test_all.py::test_parameters[2]"]
    assert (direct.level, direct.positional, direct.hits) == (0, [2], [("module.py::helper", 3)])
    around = calls["module.py::K.method", "test_all.py::test_function"]
    assert (around.level, around.kind, around.positional[1:]) == (1, "method", [10])
    state = {"kind": "object", "module": "module", "name": "K", "classes": [["module", "K"]], "state": []}
    assert around.positional[0] == state


def test_a_long_test_is_watched_for_its_time_only(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    prober = Prober(choose_sandbox(), tmp_path / "scratch")
    built = BuiltSide("base", "sha", tree, Path(sys.executable), "e", (tree,))
    (built.tree / "module.py").write_text("def helper(n):\n    return n + 1\n")
    (built.tree / "test_it.py").write_text(
        "import sys, time\nfrom module import helper\nSEEN = []\ndef test_long():\n"
        "    SEEN.append([helper(len(SEEN)) and sys.getprofile() is not None])\n    end = time.time() + 60\n"
        "    while sys.getprofile() and time.time() < end:\n        helper(1)\n"
        "    SEEN[-1].append(sys.getprofile() is None)\n    assert all(map(all, SEEN)), SEEN\n"
    )
    wanted = RecordRequest(
        functions=["module.py::helper"], lines={"module.py": [2]}, test_files=["test_*.py"], calls=5, test_calls=5,
        values=100, bytes=1000, seconds=60.0, test_seconds=0.2,
    )  # fmt: skip
    request = ProbeRequest(mode="record", arguments=["test_it.py"], record=wanted)
    recorded = prober.run(built, request, limits=Limits(wall_seconds=100.0))
    assert [item.outcome for item in recorded.items] == ["passed"], recorded
    assert [call.positional for call in recorded.recorded] == [[1]]  # the second run's first call


WHOLE = f"""
import gc
CALLS = []
def setup():
    return [[] for _ in range(30000)]
def experiment(data):
    CALLS.append(gc.get_stats()[2]["collections"])
    kept = [[one] for one in data]
    whole = gc.get_stats()[2]["collections"] - CALLS[-1]
    assert len(CALLS) < 3 or not whole, "call %d met %d whole collections" % (len(CALLS), whole)
    return {{"kept": len(kept)}}
{REST}
"""


SCRIPT = "script-it"


def _empty(version: str, folder: Path) -> tuple[Prober, BuiltSide]:
    """An empty tree with an interpreter."""
    found = interpreter(version)
    if found is None:
        pytest.skip(f"no Python {version} is installed: the probe was NOT tried on it")
    (folder / "tree").mkdir()
    built = BuiltSide("base", "sha", folder / "tree", found, "e", (folder / "tree",))
    return Prober(choose_sandbox(), folder / "scratch"), built


@contextlib.contextmanager
def _loaded(prober: Prober, built: BuiltSide, script: str) -> Iterator[LiveProcess]:
    turns = ProbeRequest(mode="turns", scripts={SCRIPT: script}, test_timeout=60.0)
    with prober.open(built, turns, limits=Limits(wall_seconds=100.0)) as partner:
        partner.ready()
        yield partner


@pytest.mark.parametrize("version", PYTESTS)
def test_long_calls_meet_no_whole_collection_for_what_earlier_ones_left(version: str, tmp_path: Path) -> None:
    prober, built = _empty(version, tmp_path)
    with _loaded(prober, built, WHOLE) as partner:
        partner.warm(SCRIPT, 1)
        for _ in range(12):
            assert len(partner.turn(SCRIPT, 0, [0.3])) == 1
    request = ProbeRequest(mode="time", scripts={SCRIPT: WHOLE}, warmups=1, calls={SCRIPT: 12})
    (item,) = prober.run(built, request, limits=Limits(wall_seconds=100.0)).items
    assert (item.outcome, item.calls) == ("passed", 12), item.message


LARGE = f"""
import gc
import time
HEAP = [[] for _ in range(3000000)]
WHOLE = []
def setup():
    return None
def experiment(data):
    WHOLE.append(gc.get_stats()[2]["collections"])
    assert WHOLE[-1] - WHOLE[0] < len(WHOLE) // 2 + 5, "before nearly each call"
    until = time.perf_counter() + 0.004
    while time.perf_counter() < until:
        pass
    return {{"calls": 1}}
{REST}
"""


def test_a_large_heap_is_looked_at_now_and_then_where_nothing_settles(tmp_path: Path) -> None:
    with _loaded(*_empty("3.6", tmp_path), LARGE) as partner:
        partner.warm(SCRIPT, 1)
        assert len(partner.turn(SCRIPT, 0, [0.3] * 40)) == 40


KEEPS = f"""
import gc
KEPT, SEEN = [], []
def setup():
    return None
def experiment(data):
    SEEN.append(len(gc.get_objects()))
    assert max(SEEN) - SEEN[0] < 40000, SEEN
    KEPT.append([[] for _ in range(2000)])
    return {{"calls": 1}}
{REST}
"""


@pytest.mark.parametrize("version", [version for version in PYTESTS if version != "3.6"])
def test_what_calls_keep_is_not_looked_at_before_each_later_call(version: str, tmp_path: Path) -> None:
    with _loaded(*_empty(version, tmp_path), KEEPS) as partner:
        partner.warm(SCRIPT, 2)
        for _ in range(20):
            assert len(partner.turn(SCRIPT, 1, [0.3] * 4)) == 4
