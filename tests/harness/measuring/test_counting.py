"""Instruction counts under the real valgrind; a process takes seconds to start there, so tests share processes."""

from __future__ import annotations

import math
import shutil
import textwrap
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from perfquarry.data.records import FunctionCount
from perfquarry.harness.contracts import BuiltSide, Inside, Limits, ProbeReport, ProbeRequest, Sandbox
from perfquarry.harness.measuring.callgrind import Callgrind, Profile
from perfquarry.harness.measuring.counting import Counter, PairCount
from perfquarry.harness.probing.prober import Prober
from perfquarry.harness.settings import CountSettings
from tests.six_functions import REST

SEEDS = (1, 2)

BASE = """
def square(n):
    return n * n
def changed(n):
    total = 0
    for number in range(n):
        total += number * 3 % 7
    for _ in range(3):
        total += square(total)
    return total
def untouched(words):
    table = {}
    for word in words:
        table[word] = table.get(word, 0) + len(word)
    return sorted(table.items())
"""
HEAD = BASE.replace("range(n)", "range(n - n // 10)")
TESTS = """
import asyncio
import sys
import threading
import time
import unittest
import module

class Same(unittest.TestCase):
    def test_untouched(self):
        module.untouched(["w%d" % (number % 700) for number in range(2000)])

def test_changed():
    module.changed(20000)

def test_in_a_thread():
    thread = threading.Thread(target=module.changed, args=(20000,))
    thread.start()
    thread.join()

def test_coroutine():
    asyncio.run(later())

async def later():
    await asyncio.sleep(0)
    return module.changed(20000)

def test_sleeps():
    time.sleep(0.02)
    print("totals: 5\\nfn=(1)" * 1000)
    sys.stderr.write("{}\\n" * 100)
    module.changed(20000)

def test_fails():
    assert 0

"""
SCRIPT = f"""
import module
def setup():
    return 20000
def experiment(data):
    return {{"sum": module.changed(data)}}
{REST}
"""
EXITS = "import os\n" + SCRIPT.replace("module.changed(data)", "data or os._exit(0)").replace("20000", "0")
SHORTER = SCRIPT.replace("changed(data)", "changed(data // 20)")
NAMES = ("changed", "in_a_thread", "coroutine", "sleeps", "fails")
NODES = ["test_all.py::Same::test_untouched", *(f"test_all.py::test_{name}" for name in NAMES)]

Sides = tuple[BuiltSide, BuiltSide]


@pytest.fixture(scope="module")
def callgrind() -> Callgrind:
    found = Callgrind.find()
    if found is None:
        pytest.skip("valgrind is not installed: instruction counts were NOT tried")
    return found


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory, bare_python: Path) -> Sides:
    """Two trees; the head has one loop with a tenth fewer turns."""
    folder = tmp_path_factory.mktemp("sides")
    for name, module in (("base", BASE), ("head", HEAD)):
        (folder / name).mkdir()
        (folder / name / "module.py").write_text(module)
        (folder / name / "test_all.py").write_text(textwrap.dedent(TESTS))
    base, head = folder / "base", folder / "head"
    return (
        BuiltSide("base", "b", base, bare_python, "e", (base,)),
        BuiltSide("head", "h", head, bare_python, "e", (head,)),
    )


@pytest.fixture(scope="module")
def prober(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Prober:
    return Prober(sandbox, tmp_path_factory.mktemp("scratch"))


SETTINGS = CountSettings(seeds=SEEDS, warmups=1, calls=2, process_seconds=120.0, change_seconds=600.0, explained=1)


@pytest.fixture(scope="module")
def pairs(callgrind: Callgrind, prober: Prober, sides: Sides) -> dict[str, PairCount]:
    """Scripts, whose processes start soon, counted in the way of `perfquarry count`, by function, too."""
    counter = Counter(prober, callgrind, *sides, SETTINGS, ["module.py::changed"])
    scripts = {"exits": EXITS, "script-a": SCRIPT, "script-b": SHORTER}
    return {pair.node: pair for pair in counter.count([], scripts)}


@pytest.fixture(scope="module")
def tests(callgrind: Callgrind, prober: Prober, sides: Sides) -> dict[str, PairCount]:
    """Unit tests, for which pytest starts under valgrind, with one seed and not by function."""
    settings = SETTINGS.model_copy(update={"seeds": SEEDS[:1], "touched": 9.0})
    counter = Counter(prober, callgrind, *sides, settings, ["module.py::changed"])
    return {pair.node.rpartition("::")[2]: pair for pair in counter.count(NODES, {})}


def ratios(pair: PairCount, seeds: Sequence[int] = SEEDS[:1]) -> list[float]:
    assert not pair.problem
    assert [one.seed for one in pair.seeds] == list(seeds)
    return [one.ir_base / one.ir_head for one in pair.seeds]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["test_changed", "test_in_a_thread", "test_coroutine", "test_sleeps"])
def test_a_tenth_less_work_is_a_tenth_fewer_instructions(tests: dict[str, PairCount], name: str) -> None:
    assert ratios(tests[name]) == pytest.approx([1 / 0.9], rel=0.03 if name != "test_coroutine" else 0.08)


@pytest.mark.slow
def test_each_seed_has_its_counts(pairs: dict[str, PairCount]) -> None:
    found = ratios(pairs["script-a"], SEEDS)
    assert found == pytest.approx([1 / 0.9] * 2, rel=0.03)
    assert max(found) / min(found) < 1.03, "hash seeds and the allocator move the ratio by little"


@pytest.mark.slow
def test_what_the_change_does_not_touch_executes_as_much(tests: dict[str, PairCount]) -> None:
    assert ratios(tests["test_untouched"]) == pytest.approx([1.0], abs=0.002)
    assert not tests["test_untouched"].functions


def test_long_workloads_are_called_less_and_with_fewer_seeds(
    callgrind: Callgrind, prober: Prober, sides: Sides
) -> None:
    """Once each here: a call is longer than what is allowed for all of them."""
    calls: list[int] = []

    class Watched(Prober):
        def run(self, *args: Any, **options: Any) -> ProbeReport:
            report = super().run(*args, **options)
            calls.extend(len(item.instructions) for item in report.items)
            return report

    settings = CountSettings(seeds=SEEDS, warmups=50, calls=50, workload_seconds=0.01, change_seconds=0.01)
    watched = Watched(prober.sandbox, prober.scratch)
    [pair] = Counter(watched, callgrind, *sides, settings).count([], {"script-c": SCRIPT})
    assert ratios(pair) == pytest.approx([1 / 0.9], rel=0.03)
    assert calls == [1, 1]


@pytest.mark.slow
def test_of_long_workloads_only_the_most_telling_is_counted_by_function(pairs: dict[str, PairCount]) -> None:
    assert SHORTER != SCRIPT
    scripts = [pairs["script-a"], pairs["script-b"]]
    telling = max(scripts, key=lambda pair: max(abs(math.log(ratio)) for ratio in ratios(pair, SEEDS)))
    assert [pair for pair in scripts if any(one.in_patch for one in pair.functions)] == [telling]


@pytest.mark.slow
def test_waiting_is_not_counted(tests: dict[str, PairCount]) -> None:
    sleeping, awake = tests["test_sleeps"].seeds[0], tests["test_changed"].seeds[0]
    assert sleeping.ir_base == pytest.approx(awake.ir_base, rel=0.05)


@pytest.mark.slow
def test_what_cannot_be_counted_says_why(pairs: dict[str, PairCount]) -> None:
    assert "crashed" in pairs["exits"].problem and "exit code 0" in pairs["exits"].problem


@pytest.mark.slow
def test_a_test_that_fails_cannot_be_counted(tests: dict[str, PairCount]) -> None:
    assert "failed" in tests["test_fails"].problem and not tests["test_fails"].seeds


@pytest.fixture(params=["scripts", "tests"])
def told(request: pytest.FixtureRequest, callgrind: Callgrind, prober: Prober, sides: Sides) -> PairCount:
    """A workload that is counted by function."""
    if request.param == "scripts":
        pairs: dict[str, PairCount] = request.getfixturevalue("pairs")
        return next(pair for pair in pairs.values() if any(one.in_patch for one in pair.functions))
    settings = CountSettings(seeds=SEEDS[:1], warmups=1, calls=2, process_seconds=120.0, explained=1)
    return Counter(prober, callgrind, *sides, settings, ["module.py::changed"]).count(NODES[1:2], {})[0]


@pytest.mark.slow
def test_functions_that_execute_less_are_named(told: PairCount) -> None:
    whole = told.seeds[0]
    functions = {one.name: one for one in told.functions}
    changed = functions["module.py::changed"]
    assert changed.in_patch and not changed.native and told.functions[0] == changed
    assert changed.ir_base == pytest.approx(whole.ir_base, rel=0.03)
    assert changed.ir_head == pytest.approx(whole.ir_head, rel=0.03)
    [interpreter] = [one for name, one in functions.items() if name.endswith(":_PyEval_EvalFrameDefault")]
    assert interpreter.native and interpreter.called_from_patch and not interpreter.in_patch
    assert fewer(interpreter) > 10000


def fewer(function: FunctionCount) -> int:
    return (function.ir_base or 0) - (function.ir_head or 0)


def test_equal_seeds_give_equal_counts(callgrind: Callgrind, prober: Prober, sides: Sides) -> None:
    """Of two processes that do the same, but for the allocator: they differ by a third of the fence at most."""
    prober = Prober(prober.sandbox, prober.scratch, under=callgrind)
    request = ProbeRequest(mode="count", scripts={"a": SCRIPT}, warmups=1, max_calls=2)
    with ThreadPoolExecutor(max_workers=2) as pool:
        run = partial(prober.run, sides[0], request, limits=Limits(wall_seconds=120.0), hash_seed=1)
        reports = [waiting.result() for waiting in [pool.submit(run) for _ in range(2)]]
    (first,), (second,) = (report.items for report in reports)
    assert len(first.instructions) == 2, reports[0].output
    assert first.instructions == pytest.approx(second.instructions, rel=3e-3)


def test_without_callgrind_each_item_says_so(prober: Prober, sides: Sides) -> None:
    report = prober.run(sides[0], ProbeRequest(mode="count", arguments=NODES[:2]), limits=Limits())
    assert [(item.outcome, item.message) for item in report.items] == [
        ("error", "the process does not run under valgrind")
    ] * 2


def test_no_valgrind_on_the_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Callgrind.find() is None
    broken = tmp_path / "valgrind"
    shutil.copy("/bin/false", broken)
    assert Callgrind.find() is None


FILE = """\
positions: instr
events: Ir
summary: 1234

ob=(1) /lib/libpython3.11.so.1.0
fn=(1) eval
0x10 100
cfn=(2) PyObject_Call'2
calls=1 0x20
0x5000 700
fn=(2)
0x20 34
calls=2 0x10
0x24 5

totals: 1234
"""


def test_files_of_callgrind() -> None:
    profile = Profile.of(FILE)
    assert profile.own == {"libpython3.11.so.1.0:eval": 100, "libpython3.11.so.1.0:PyObject_Call": 34}
    way = Inside(
        addresses={"a.py::f": [(0x4FF0, 0x5010)], "a.py::g": [(0x6000, 0x6010)]}, nested={"a.py::f": 2}, overhead=50
    )
    assert profile.inside(way) == {"a.py::f": 600}


@pytest.mark.parametrize(
    "text", ["", FILE.replace("totals", "total"), FILE.replace("0x10 100", "100"), "summary: 1\nfn=(7)\ntotals: 1"]
)
def test_what_is_no_file_of_callgrind(text: str) -> None:
    with pytest.raises((ValueError, LookupError)):
        Profile.of(text)
