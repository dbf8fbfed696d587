"""Checks of tasks that run code: real processes on a small tree."""

from __future__ import annotations

from pathlib import Path

import pytest
from screened_task import task, workload

from perfquarry.curation.screening.found import FoundProblem
from perfquarry.curation.screening.runs import depth_of, try_out
from perfquarry.curation.settings import ScreenSettings
from perfquarry.harness.contracts import BuiltSide, ProbeItem
from perfquarry.harness.probing.prober import Prober
from tests.bare_python import bare_tools
from tests.six_functions import REST

SETTINGS = ScreenSettings(rounds=2, calls=3, process_seconds=60.0)
CORE = '''
def busy(number):
    return sum(i * i for i in range(3000 + number))

class Box:
    def __init__(self, items):
        self.items = items

    def total(self):
        """Memos must not outlive what it holds."""
        return sum(busy(item) for item in self.items)

def repeated(items):
    return [busy(item) for item in items]

def through(items):
    return repeated(items)

def logged(items, log):
    log.append(busy(len(items)))
'''
TESTS = """
from pkg.core import Box, busy, logged, repeated, through

def test_repeats():
    assert repeated([1, 2] * 40)[:2] == [busy(1), busy(2)]

def test_differs():
    assert len(set(through(range(60)))) == 60

def test_looks_away():
    repeated(range(20))

def test_box():
    box = Box([1, 2])
    first = box.total()
    box.items = [5, 6]
    assert box.total() != first

def test_fails_by_chance():
    import os
    assert os.environ["PYTHONHASHSEED"] != "2"

def test_guard():
    assert repeated([3]) == [busy(3)]
"""


@pytest.fixture
def base(tmp_path: Path, bare_python: Path) -> BuiltSide:
    tree = tmp_path / "tree"
    for path, text in {"pkg/__init__.py": "", "pkg/core.py": CORE, "tests/test_core.py": TESTS}.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)
    return BuiltSide("base", "0" * 40, tree, bare_python, "e", (tree,))


def tried(
    base: BuiltSide,
    prober: Prober,
    tests: list[str],
    targets: list[str],
    guards: tuple[str, ...] = (),
    rounds: int = 2,
) -> dict[tuple[str, str], FoundProblem]:
    workloads = [workload(f"tests/test_core.py::{name}") for name in tests]
    one = task(
        workloads=workloads,
        oracle_targets=[f"pkg/core.py::{name}" for name in targets],
        realistic_targets=["pkg/core.py::repeated", "pkg/core.py::through"],
    )
    others = tuple(f"tests/test_core.py::{name}" for name in guards)
    found = try_out(one, base, prober, SETTINGS.model_copy(update={"rounds": rounds}), bare_tools(), guards=others)
    return {(item.check, item.subject.rpartition("::")[2]): item for item in found}


def test_memos_mutations_and_chance(base: BuiltSide, prober: Prober) -> None:
    tests = ["test_repeats", "test_differs", "test_box", "test_fails_by_chance"]
    found = tried(base, prober, tests, ["busy", "Box.total", "missing", "<module>"])
    within = found["memo-survives", "test_repeats"]  # a memo wins where inputs repeat, not where they differ
    assert within.severity == "warning" and within.details["gain"] > 3
    between = found["memo-between-calls", "test_differs"]
    assert between.severity == "info" and "busy" in between.evidence
    memos = {about for check, about in found if check.startswith("memo")}
    assert memos == {"test_repeats", "test_differs"}  # the one on Box.total forgets what it holds: its test fails
    mutations = {about: one for (check, about), one in found.items() if check == "mutation-survives"}
    assert set(mutations) == {"busy", "Box.total"}
    assert mutations["Box.total"].severity == "info" and "its result is changed" in mutations["Box.total"].evidence
    chance = found["non-determinism", "test_fails_by_chance"]
    assert chance.severity == "warning" and "1 of 3 runs" in chance.evidence


@pytest.mark.parametrize(
    ("guards", "severity", "words"),
    [((), "blocking", "no test of the change fails"), (("test_guard",), "warning", "1 other test(s)")],
)
def test_a_broken_target_that_no_workload_notices(
    base: BuiltSide, prober: Prober, guards: tuple[str, ...], severity: str, words: str
) -> None:
    found = tried(base, prober, ["test_looks_away"], ["repeated"], guards, rounds=1)
    unnoticed = found["mutation-survives", "repeated"]
    assert unnoticed.severity == severity and words in unnoticed.evidence
    assert found["call-depth", ""].details["depth"] == 1


def test_depth_is_that_of_the_nearest_changed_function() -> None:
    one = task(oracle_targets=["a.py::deep", "a.py::deeper"], realistic_targets=["a.py::top"])
    functions = ["a.py::top", "a.py::middle", "a.py::deep", "a.py::deeper"]
    callers = {"a.py::middle": ["a.py::top"], "a.py::deep": ["a.py::middle"], "a.py::deeper": ["a.py::deep"]}
    item = ProbeItem(node="t", outcome="passed", functions=functions, callers=callers)
    assert depth_of(item, one) == 3
    assert depth_of(item.model_copy(update={"callers": {}}), one) is None


def test_scripts_are_compared_with_what_the_base_computes(base: BuiltSide, prober: Prober) -> None:
    code = (
        "import json\nimport timeit\nfrom pkg.core import busy, repeated\n\ndef setup():\n    return [1, 2] * 30\n\n"
        "def experiment(data):\n    return repeated(data)\n\n" + REST
    )
    one = task(
        workloads=[workload(code, source="generated", workload_id="abcdefabcdef")],
        oracle_targets=["pkg/core.py::repeated", "pkg/core.py::busy"],
    )
    once = SETTINGS.model_copy(update={"rounds": 1})
    found = {item.check: item for item in try_out(one, base, prober, once, bare_tools())}
    assert found["memo-survives"].severity == "blocking"  # a memo passes all of its workloads
    assert found["memo-survives"].subject == "script-abcdefabcdef" and "mutation-survives" not in found
