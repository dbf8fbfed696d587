"""A small asv suite: read, made into scripts, and tried on real trees in real sandboxes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from trees import write
from two_trees import STAMP, Files, TwoTrees, verdict

from perfquarry.data.records import Reason, TouchedFunction
from perfquarry.harness.probing.prober import Prober
from perfquarry.harness.sandbox import choose_sandbox
from perfquarry.testgen.asv import AsvBenchmark, AsvSource, combinations
from perfquarry.testgen.asv_suites import Benchmark, suite_of
from perfquarry.testgen.case import Case
from perfquarry.testgen.settings import AsvSettings, GenerateSettings, ScriptSettings
from tests.bare_python import bare_tools

BASE = """
    def count_pairs(items):
        found = 0
        for one in items:
            for other in items:
                found += one == other
        return found

    def unchanged(items):
        return sorted(items)
    """
HEAD = """
    from collections import Counter

    def count_pairs(items):
        return sum(count ** 2 for count in Counter(items).values())

    def unchanged(items):
        return sorted(items)
    """
SUITE = {
    "asv/asv.conf.json": """
        {
            // asv's file may hold comments, "quoted" ones, too
            "version": 1, "repo": "https://example.org//repo.git", /* here: */
            "benchmark_dir": "bench",
        }
        """,
    "asv/bench/__init__.py": "from . import common\n",
    "asv/bench/common.py": """
        SIZES = [40, 300]
        class Base:
            params = [SIZES, ["few", "many"]]
            param_names = ["size", "kinds"]
            def time_unchanged(self, size, kinds):
                pairs.unchanged(self.items)
        """,
    "asv/bench/bench_pairs.py": """
        import os
        import random
        from asv_runner.benchmarks.mark import SkipNotImplemented
        from .common import Base as Common
        import pairs

        NUMBERS = list(range(3))
        log = []
        FOLDER = os.path.dirname(__file__)

        def setup(*params):
            log.append("module")

        class Counting(Common):
            number = 1
            def setup(self, size, kinds):
                log.append("class")
                self.items = [random.randrange(3 if kinds == "few" else 30) for _ in range(size)]
            def time_count(self, size, kinds):
                return self._count()
            def _count(self):
                return pairs.count_pairs(self.items)
            def mem_items(self, size, kinds):
                return self.items
            def teardown(self, size, kinds):
                log.append("teardown")

        class Cached:
            params = NUMBERS
            def setup_cache(self):
                return [1, 2] * 3
            def time_short(self, cache, number):
                pairs.count_pairs(cache)

        class _Hidden:
            def time_hidden(self):
                pairs.count_pairs([1])

        class Computed:
            params = sorted({"b", "a", "c"})
            def time_list(self, name):
                return [name]

        def time_function(size):
            return helper(size)

        def helper(size):
            return pairs.count_pairs([1.5] * size)

        def prepare(size):
            log.append("function")

        time_function.params = [7, 8]
        time_function.setup = prepare

        def track_count():
            return 1
        """,
}


def by_id(tree: Path) -> dict[str, Benchmark]:
    suite = suite_of(tree)
    assert suite is not None
    return {one.id: one for one in suite.benchmarks()}


def test_benchmarks_of_a_suite(tmp_path: Path) -> None:
    found = by_id(write(tmp_path, SUITE))
    assert {name: (one.lengths, one.number) for name, one in found.items()} == {
        "common.Base.time_unchanged": ((2, 2), None),
        "bench_pairs.Counting.time_count": ((2, 2), 1),
        "bench_pairs.Counting.time_unchanged": ((2, 2), 1),
        "bench_pairs.Cached.time_short": ((3,), None),
        "bench_pairs.Computed.time_list": (None, None),
        "bench_pairs.time_function": ((2,), None),
    }
    inherited = found["bench_pairs.Counting.time_unchanged"]
    assert (inherited.path, inherited.defined) == ("asv/bench/common.py", "Base.time_unchanged")


@pytest.mark.parametrize(
    ("config", "there"),
    [
        ('{"benchmark_dir": "bench"}', True),
        ('{"benchmark_dir": "../asv/bench"}', True),
        ('{"benchmark_dir": "../../outside"}', False),
        ('{"benchmark_dir": ".."}', False),
        ('{"benchmark_dir": "none"}', False),
        ("[]", False),
        ("{", False),
    ],
)
def test_where_a_suite_lies(tmp_path: Path, config: str, there: bool) -> None:
    write(tmp_path, {"outside/bench_x.py": "def time_x(): pass\n"})
    tree = write(tmp_path / "tree", SUITE | {"asv/asv.conf.json": config})
    assert (suite_of(tree) is not None) is there


def test_a_tree_without_configuration_has_no_suite(tmp_path: Path) -> None:
    assert suite_of(write(tmp_path, {"benchmarks/bench_a.py": "def time_a(): pass\n"})) is None


def test_combinations_start_with_the_last_and_differ() -> None:
    assert combinations((), 3) == [()]
    assert combinations((4,), 3) == [(3,), (0,), (1,)]
    assert combinations((2, 3), 9) == [(1, 2), (0, 0), (0, 1)]  # all values once; not all six
    assert combinations(None, 2) == [1.0, 0.0]
    assert combinations((10**6, 10**6, 10**6), 3)[0] == (10**6 - 1,) * 3


def scripts_of(tree: Path, name: str, limit: int = 9) -> list[ModuleType]:
    """The modules that the scripts of a benchmark are."""
    suite = suite_of(tree)
    assert suite is not None
    one = by_id(tree)[name]
    candidate = AsvBenchmark(suite, one, 1, 0)
    modules = []
    for combination in combinations(one.lengths, limit):
        module = ModuleType("script")
        exec(candidate.script(combination, 2).code, vars(module))
        modules.append(module)
    return modules


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    tree = write(tmp_path, SUITE | {"pairs.py": BASE})
    monkeypatch.syspath_prepend(tree)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    yield tree
    for name in [name for name in sys.modules if name.partition(".")[0] in ("pairs", "bench", "asv_runner")]:
        del sys.modules[name]


def test_a_script_does_what_asv_does(tree: Path, tmp_path: Path) -> None:
    last, first, *_ = scripts_of(tree, "bench_pairs.Counting.time_count")
    one, other = last.setup(), last.setup()
    log = sys.modules["bench.bench_pairs"].log
    assert log == ["module", "class", "teardown", "module", "class"]
    assert one[1] == (300, "many") and first.setup()[1] == (40, "few")
    assert one[0].__self__.items == other[0].__self__.items and one[0].__self__ is not other[0].__self__
    assert last.experiment(one) == last.experiment(other) > 300
    assert last.run_test(reference=True, prefix=str(tmp_path / "kept")) > 0
    assert last.run_test(eqcheck=True, prefix=str(tmp_path / "kept")) > 0
    (tmp_path / "kept_result.json").write_text("1")
    with pytest.raises(AssertionError, match="something else"):
        last.run_test(eqcheck=True, prefix=str(tmp_path / "kept"))


def test_parameters_nobody_can_count_are_taken_by_their_place(tree: Path) -> None:
    scripts = scripts_of(tree, "bench_pairs.Computed.time_list")
    assert [script.setup()[1] for script in scripts] == [("c",), ("a",), ("b",)]


def test_a_cache_is_made_once_and_given_first(tree: Path) -> None:
    (last, *_) = scripts_of(tree, "bench_pairs.Cached.time_short")
    (_, values), (_, again) = last.setup(), last.setup()
    assert values == ([1, 2] * 3, 2) and values[0] is again[0]


def test_functions_have_attributes(tree: Path) -> None:
    (last, _) = scripts_of(tree, "bench_pairs.time_function")
    assert last.experiment(last.setup()) == 64
    module = sys.modules["bench.bench_pairs"]
    assert module.log == ["module", "function"]
    assert issubclass(module.SkipNotImplemented, NotImplementedError)
    assert str(Path.cwd() / "asv/bench") == module.FOLDER


@pytest.mark.parametrize(
    ("result", "kept"),
    [(1.5, 1.5), ({"a": [1, None]}, {"a": [1, None]}), ([], None), (object(), None), ("", None), ({1: 2}, {"1": 2})],
)
def test_of_results_only_json_is_compared(tree: Path, result: object, kept: object) -> None:
    (script, *_) = scripts_of(tree, "bench_pairs.time_function")
    assert script._comparable(result) == kept
    script.check_equivalence(kept, result)
    with pytest.raises(AssertionError):
        script.check_equivalence({"other": 1}, result)
    script.check_equivalence([1.0, float("nan")], (1.0 + 1e-9, float("nan")))


def case_of(folder: Path, base: Files, head: Files, *functions: TouchedFunction) -> Case:
    prober = Prober(choose_sandbox(), folder / "scratch")
    trees = TwoTrees(folder, base, head, prober)
    settings = GenerateSettings(
        timeout=60.0,
        repeats=1,
        scripts=ScriptSettings(min_seconds=1e-4),
        asv=AsvSettings(benchmarks=3, combinations=1, workloads=2),
    )
    sides = trees.built["base"], trees.built["head"]
    judged = verdict(trees.change, *functions)
    return Case(trees.change, judged, *sides, prober, settings, STAMP, dict.fromkeys(("base", "head"), bare_tools()))


COUNT = TouchedFunction(path="pairs.py", name="count_pairs", change="modified")


@pytest.mark.parametrize("base_has_suite", [True, False])
def test_benchmarks_that_reach_the_change_become_workloads(tmp_path: Path, base_has_suite: bool) -> None:
    base = {path: text for path, text in SUITE.items() if base_has_suite}
    case = case_of(tmp_path, base | {"pairs.py": BASE}, SUITE | {"pairs.py": HEAD}, COUNT)
    kept, rejected = [], []
    for row in AsvSource().workloads(case):
        (kept if row.status == "kept" else rejected).append(row)
    assert len(kept) == 2 and not rejected, [(row.reason, row.detail) for row in rejected]
    names = {row.detail.split(",")[0].removeprefix("asv benchmark bench_pairs.") for row in kept}
    assert names <= {"Counting.time_count", "Cached.time_short", "time_function"}
    assert all(row.source == "asv" and row.hits and "equivalence is weak" in row.detail for row in kept)
    assert all(row.seconds is not None and row.seconds >= 1e-4 for row in kept)
    assert all(row.calls == ["pairs.py::count_pairs"] for row in kept)


def test_a_repository_without_a_suite_has_no_row(tmp_path: Path) -> None:
    assert AsvSource().workloads(case_of(tmp_path, {"pairs.py": BASE}, {"pairs.py": HEAD}, COUNT)) == []


def test_a_benchmark_that_fails_is_a_row(tmp_path: Path) -> None:
    broken = "import pairs\n\nclass Broken:\n    def time_count(self):\n        pairs.count_pairs(3)\n"
    suite = {"asv.conf.json": json.dumps({"version": 1}), "benchmarks/bench_a.py": broken}
    case = case_of(tmp_path, suite | {"pairs.py": BASE}, {"pairs.py": HEAD}, COUNT)
    (row,) = AsvSource().workloads(case)
    assert row.reason == Reason.SCRIPT_FAILS_ON_BASE and "not iterable" in row.detail
