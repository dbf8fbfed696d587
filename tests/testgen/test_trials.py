"""Scripts tried on real trees in real sandboxes: a good one, and one for each reason of a rejection."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from two_trees import STAMP, Files, TwoTrees

from perfquarry.data.records import Reason, Source
from perfquarry.harness.contracts import ProbeItem
from perfquarry.harness.probing.prober import Prober
from perfquarry.harness.sandbox import choose_sandbox
from perfquarry.testgen.caching import dear_starts
from perfquarry.testgen.case import Case
from perfquarry.testgen.scripts import Script
from perfquarry.testgen.settings import GenerateSettings, ScriptSettings
from perfquarry.testgen.trials import Trial, rows_of, try_scripts
from tests.bare_python import bare_tools
from tests.six_functions import REST

SETTINGS = GenerateSettings(
    timeout=60.0, test_timeout=4.0, scripts=ScriptSettings(min_seconds=2e-5, max_seconds=0.5, result_bytes=10_000)
)
BASE = """\
    LIMIT = 10

    def is_close(pair):
        return pair[0] - pair[1] < 1

    def count_pairs(items):
        found = 0
        for one in items:
            for other in items:
                if one == other:
                    found += 1
        return found

    def unchanged(items):
        return sum(item * item for item in items)

    def first(items):
        items = list(items)
        return min(items)
    """
HEAD = """\
    from collections import Counter
    LIMIT = 10

    def is_close(pair):
        return pair[0] - pair[1] < 1

    def count_pairs(items):
        found = 0
        for count in Counter(items).values():
            found += count ** 2
        return found

    def unchanged(items):
        return sum(item * item for item in items)

    def first(items):
        items = list(items)
        return items[0]
    """
SCRIPT = f"""
import pairs

def setup():
    return [number % 7 for number in range(150)]

def experiment(data):
    return {{"count": pairs.count_pairs(data)}}
{REST}
"""


@pytest.fixture(scope="module")
def prober(tmp_path_factory: pytest.TempPathFactory) -> Prober:
    return Prober(choose_sandbox(), tmp_path_factory.mktemp("scratch"))


def case_of(folder: Path, prober: Prober, base: Files, head: Files) -> Case:
    trees = TwoTrees(folder, {path: textwrap.dedent(text) for path, text in base.items()}, head, prober)
    sides = trees.built["base"], trees.built["head"]
    return Case(
        trees.change, trees.verdict, *sides, prober, SETTINGS, STAMP, dict.fromkeys(("base", "head"), bare_tools())
    )


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory, prober: Prober) -> Case:
    return case_of(tmp_path_factory.mktemp("case"), prober, {"pairs.py": BASE}, {"pairs.py": HEAD})


def tried(case: Case, text: str, source: Source = "generated") -> Trial:
    """The trial of the good script with other definitions after it."""
    (trial,) = try_scripts(case, [Script(SCRIPT + textwrap.dedent(text), source, "note")])
    return trial


def test_a_good_script_is_a_workload(case: Case) -> None:
    trial = tried(case, "")
    assert trial.reason is None, trial.detail
    assert trial.seconds is not None and 2e-5 < trial.seconds < 0.5
    assert trial.calls == ["pairs.py::count_pairs"]
    assert {hit.side: hit.lines for hit in trial.hits} == {"base": [8, 9, 10, 11], "head": [9, 10]}
    (row,) = rows_of(case, [trial, trial])
    assert (row.status, row.reason, row.source, row.detail) == ("kept", None, "generated", "note")
    assert row.code == SCRIPT and row.node == f"script-{row.workload_id[:12]}"


REJECTED = {
    Reason.UNPARSABLE: ("def", ""),
    Reason.CONTRACT_BROKEN: (
        "def run_test(eqcheck=False, reference=False, prefix=''): return 'soon'\n",
        "run_test returned str",
    ),
    Reason.MODULE_MISSING: ("import nowhere\n", "No module named 'nowhere'"),
    Reason.SCRIPT_FAILS_ON_BASE: ("def setup(): return pairs.COUNT\n", "has no attribute 'COUNT'"),
    Reason.SCRIPT_FAILS_ON_HEAD: (
        "def experiment(data):\n    assert not hasattr(pairs, 'Counter')\n    return pairs.count_pairs(data)\n",
        "failed in experiment at the head",
    ),
    Reason.DIFFERS: (
        "def experiment(data): return [pairs.count_pairs(data), pairs.first([2, 1])]\n",
        "[3216, 1] became [3216, 2]",
    ),
    Reason.CHECKS_NOTHING: ("def check_equivalence(a, b): assert a.keys() == b.keys()\n", "each value of which"),
    Reason.NOT_DETERMINISTIC: (
        "def experiment(data): return pairs.count_pairs(data), list({'a', 'b', 'c', 'd', 'e', 'f', 'g'})\n"
        "def check_equivalence(a, b): assert a == list(b)\n",
        "run 2: failed in compare at the base",
    ),
    Reason.MISSES_CHANGE: (
        "def setup(): return list(range(10000))\ndef experiment(data): return pairs.unchanged(data)\n",
        "of pairs.py",
    ),
    Reason.TOO_SHORT: ("def setup(): return [1]\n", "a call takes"),
    Reason.TOO_LONG: (
        "import threading\ndef experiment(data): return [threading.Event().wait(0.8), pairs.count_pairs(data)]\n",
        "a call of experiment takes",
    ),
    Reason.CACHED: (
        "import functools\ncached = functools.lru_cache()(pairs.count_pairs)\n"
        "def experiment(data): return cached(tuple(data)), sum(range(100000))\n"
        "def check_equivalence(a, b): assert a == list(b)\n",
        "at the base, only the first call executes changed lines",
    ),
}


@pytest.mark.parametrize("reason", REJECTED)
def test_each_reason_of_a_rejection(case: Case, reason: Reason) -> None:
    text, detail = REJECTED[reason]
    trial = tried(case, text)
    assert trial.reason == reason and detail in trial.detail, trial


MORE = {
    "a setup that takes too long": (
        Reason.TOO_LONG, "import threading\ndef setup(): return [threading.Event().wait(0.8)] * 150\n", "setup takes",
    ),
    "a call that never ends": (
        Reason.TOO_LONG, "def experiment(data):\n    while True: pass\n", "timeout in experiment at the base",
    ),
    "a run_test that never ends": (
        Reason.TOO_LONG, "def run_test(eqcheck=False, reference=False, prefix=''):\n    while True: pass\n",
        "timeout in run_test at the base",
    ),
    "a result that is too large": (
        Reason.CONTRACT_BROKEN, "def experiment(data): return 'x' * 20000\n", "at most 10000 bytes",
    ),
    "a result that cannot be stored": (
        Reason.CONTRACT_BROKEN, "def experiment(data): return object()\n", "failed in store at the base",
    ),
    "an end of the process": (Reason.SCRIPT_FAILS_ON_BASE, "import os\ndef setup(): os._exit(3)\n", "exit code 3"),
    "a result that depends on the calls before": (
        Reason.NOT_DETERMINISTIC,
        "calls = []\ndef experiment(data):\n    calls.append(1)\n"
        "    return {'count': pairs.count_pairs(data), 'calls': len(calls)}\n"
        "def run_test(eqcheck=False, reference=False, prefix=''): return 1.0\n",
        "run 2: failed in compare",
    ),
    "a private name": (Reason.USES_PRIVATE_API, "def experiment(data): return pairs._count(data)\n", "pairs._count"),
}  # fmt: skip


@pytest.mark.parametrize("what", MORE)
def test_more_rejections(case: Case, what: str) -> None:
    reason, text, detail = MORE[what]
    trial = tried(case, text)
    assert trial.reason == reason and detail in trial.detail, trial


def test_scripts_that_call_what_the_change_touched_may_be_private(case: Case) -> None:
    trial = tried(case, "def experiment(data): return pairs._count(data)\n", source="replay")
    assert trial.reason == Reason.SCRIPT_FAILS_ON_BASE


CACHED = """\
    CACHE = {}

    def count_pairs(items):
        key = tuple(items)
        if key in CACHE:
            return CACHE[key]
        found = 0
        for one in items:
            for other in items:
                if one == other:
                    found += 1
        CACHE[key] = found
        return found
    """
HELD_UP = """
import os
todo = [] if hasattr(pairs, "CACHE") or int(os.environ["PYTHONHASHSEED"]) > 3 else [1]

def experiment(data):
    sum(range(1_000_000 if todo and todo.pop() else 0))
    return {"count": pairs.count_pairs(data)}
"""
"""The first calls of the base in its first three processes last as long as any that is held up by others."""


def test_a_cache_that_the_change_adds_is_found_by_what_later_calls_save(tmp_path: Path, prober: Prober) -> None:
    case = case_of(tmp_path, prober, {"pairs.py": BASE}, {"pairs.py": CACHED})
    for text in ("", HELD_UP):
        trial = tried(case, text)
        assert trial.reason == Reason.CACHED and trial.detail.startswith("at the head, the first call takes"), trial
    clears = "def setup():\n    getattr(pairs, 'CACHE', {}).clear()\n    return [number % 7 for number in range(150)]\n"
    trial = tried(case, clears)
    assert trial.reason is None, trial


def test_native_changes_are_tried_without_lines(tmp_path: Path, prober: Prober) -> None:
    case = case_of(tmp_path, prober, {"pairs.py": BASE, "fast.c": "int x;", "fast.abi3.so": ""}, {"fast.c": "int y;"})
    trial = tried(case, "")
    assert (trial.reason, trial.hits) == (None, []), trial


def test_where_native_code_changed_too_a_script_need_not_reach_the_python_lines(tmp_path: Path, prober: Prober) -> None:
    """The Python part of the change is the twin of what is compiled, and is not executed."""
    before = {"pairs.py": BASE, "twin.py": BASE, "fast.c": "int x;", "fast.abi3.so": ""}
    case = case_of(tmp_path / "both", prober, before, {"twin.py": HEAD, "fast.c": "int y;"})
    trial = tried(case, "")
    assert (trial.reason, trial.hits) == (None, []), trial
    before |= {"twin.pyi": "x: int", "page.js": "x"}
    for name, change in {"alone": {}, "stub": {"twin.pyi": "x: str"}, "script": {"page.js": "y"}}.items():
        other = case_of(tmp_path / name, prober, before, {"twin.py": HEAD, **change})
        assert tried(other, "").reason == Reason.MISSES_CHANGE, name


MAKER = """\
    def adder():
        names = {}
        exec(WORK, names)
        return names["add"]
    """
LOOP = repr("def add(items):\n    total = 0\n    for one in items:\n        total += one\n    return total\n")
SUM = repr("def add(items):\n    return sum(items)\n")
MADE = f"""
import pairs

def setup():
    return pairs.adder(), [number % 7 for number in range(30_000)]

def experiment(data):
    add, items = data
    return {{"count": add(items)}}
{REST}
"""


def test_what_a_package_generates_in_setup_is_executed_though_no_line_of_it_is(tmp_path: Path, prober: Prober) -> None:
    before, after = ({"pairs.py": MAKER.replace("WORK", work)} for work in (LOOP, SUM))
    case = case_of(tmp_path / "made", prober, before, after)
    (trial,) = try_scripts(case, [Script(MADE, "generated")])
    assert trial.reason is None and {hit.side for hit in trial.hits} == {"base", "head"}, trial
    (replayed,) = try_scripts(case, [Script(MADE, "replay")])
    assert replayed.reason == Reason.MISSES_CHANGE


def test_a_change_without_statements_has_no_scripts(tmp_path: Path, prober: Prober) -> None:
    case = case_of(tmp_path, prober, {"pairs.py": BASE}, {"pairs.py": BASE.replace("LIMIT = 10", "LIMIT = 9")})
    trial = tried(case, "")
    assert (trial.reason, trial.detail) == (Reason.MISSES_CHANGE, "no statement of a function changed")


# What first calls cost


def runs(first: float, later: float) -> list[ProbeItem]:
    """Three runs, held up here and there."""
    noise = ((0.5, 0.0), (later / 20, 0.5), (0.0, 0.0))
    return [
        ProbeItem(node="x", outcome="passed", seconds=first + one, samples=[later, later + other], calls=2)
        for one, other in noise
    ]


@pytest.mark.parametrize(
    ("base", "head", "found"),
    [
        ((0.010, 0.010), (0.002, 0.002), None),  # faster, nothing kept
        ((0.310, 0.010), (0.302, 0.002), None),  # imports of 0.3 s on both sides
        ((0.010, 0.010), (0.010, 0.0001), "head"),  # the head keeps its result
        ((0.310, 0.010), (0.710, 0.0001), "head"),
        ((0.010, 0.0001), (0.010, 0.010), "base"),  # the change removes a cache
        ((0.010, 0.0001), (0.010, 0.0001), None),  # both keep it: no gain will show
        ((0.010, 0.010), (0.0009, 0.00005), None),  # what the first call saves explains no gain
        ((0.100, 0.010), (0.140, 0.010), None),  # later calls still take long
    ],
)
def test_a_first_call_that_is_dear_on_one_side_only(
    base: tuple[float, float], head: tuple[float, float], found: str | None
) -> None:
    assert dear_starts({"base": runs(*base), "head": runs(*head)}, 0.9) == ([found] if found else [])
