"""Calls recorded in real test runs in real sandboxes, and replayed as scripts on both sides."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
from two_trees import STAMP, Files, TwoTrees

from perfquarry.data.records import Reason, Workload
from perfquarry.harness.probing.prober import Prober
from perfquarry.harness.probing.recording import Recorded
from perfquarry.harness.sandbox import choose_sandbox
from perfquarry.testgen.case import Case
from perfquarry.testgen.replay.expressions import Unwritable, Writer
from perfquarry.testgen.replay.recordings import Recordings, record
from perfquarry.testgen.replay.source import ReplaySource
from perfquarry.testgen.replay.texts import Replay
from perfquarry.testgen.replay.variants import run_scripts
from perfquarry.testgen.settings import GenerateSettings, ReplaySettings, ScriptSettings
from perfquarry.testgen.unit_tests import UnitTests
from tests.bare_python import bare_tools

SETTINGS = GenerateSettings(
    timeout=100.0,
    repeats=1,
    test_timeout=5.0,
    scripts=ScriptSettings(min_seconds=1e-5),
    replay=ReplaySettings(factors=(4, 100), wanted_seconds=2e-3, max_scripts=6),
)
BASE = """\
    from collections import OrderedDict, deque

    class Basket:
        def __init__(self, items=(), *, limit=None):
            self._items = list(items)
            self._limit = limit

        def add(self, item):
            self._items.append(item)

        def __len__(self):
            return len(self._items)

        def __iter__(self):
            return iter(self._items)

        def __contains__(self, item):
            return any([one == item for one in self._items])

        def merge(self, other, times=1):
            for item in other:
                if item not in self:
                    self.add(item)

        @classmethod
        def of(cls, text):
            return cls([part for part in text.split(",")])

        @property
        def total(self):
            return sum([one for one in self._items])

    def unique(items):
        found = []
        while items:
            item = items.pop()
            if item not in found:
                found.append(item)
        return found

    def _count(text, word):
        return len([part for part in text.split() if part == word])

    def frequency(text, word="a", *more, strict=False, **options):
        return _count(text, word)

    def each(items):
        for item in items:
            yield _count(item, "a")

    def apply(function, items):
        return [function(item) for item in items]

    def kinds(one, two, three, four):
        return [one, two, three, four]

    def stored(basket):
        basket.note = 1
        return basket.total
    """
TESTS = """\
    import collections, datetime, decimal, fractions, re
    import shop
    from shop import Basket

    def test_merge():
        basket = Basket([3, 1])
        basket.add(2)
        other = Basket(limit=5)
        other.add(7)
        other.add(1)
        basket.merge(other)
        assert list(basket) == [3, 1, 2, 7] and 7 in basket

    def test_of():
        assert len(Basket.of("a,b,c")) == 3
        assert Basket([1, 2]).total == 3

    def test_unique():
        items = [5, 3, 5, 4]
        assert sorted(shop.unique(items)) == [3, 4, 5]
        assert items == []

    def test_frequency():
        assert shop.frequency("a b a c", "a", strict=True) == 2
        assert shop.frequency("a a") == 2
        assert shop.frequency("x y", "x", 1, 2, key=3) == 1
        assert list(shop.each(["a", "b"])) == [1, 0]

    def test_apply():
        assert shop.apply(lambda one: one + 1, [1]) == [2]
        assert shop.apply(abs, [-1]) == [1]
        assert shop.apply(Basket.of, ["x"])
        shop.apply(Basket().add, ["x"])

    def test_kinds():
        shop.kinds((1, None), {2: True}, {1.5, 2.5}, frozenset([b"x"]))
        shop.kinds(collections.deque([1], 3), collections.OrderedDict([("b", 1), ("a", 2)]),
                   collections.Counter("aab"), collections.defaultdict(list, {"a": [1]}))
        shop.kinds(datetime.datetime(2020, 1, 2), decimal.Decimal("1.50"), fractions.Fraction(1, 3), 2 ** 80)
        shop.kinds(re.compile("a+", re.I), range(2, 9, 3), slice(None, 3), complex(1, -2))
        shop.kinds(float("nan"), float("-inf"), bytearray(b"ab"), "\\udc80 \\n'")

    def test_fails():
        assert shop.unique([9, 9]) == 0
    """


@pytest.fixture(scope="module")
def prober(tmp_path_factory: pytest.TempPathFactory) -> Prober:
    return Prober(choose_sandbox(), tmp_path_factory.mktemp("scratch"))


def case_of(folder: Path, prober: Prober, changed: str, base: str = BASE, tests: str = TESTS) -> Case:
    files: Files = {"shop.py": base, "tests/test_shop.py": tests}
    trees = TwoTrees(folder, files, {"shop.py": changed}, prober)
    tools = dict.fromkeys(("base", "head"), bare_tools())
    sides = trees.built["base"], trees.built["head"]
    return Case(trees.change, trees.verdict, *sides, prober, SETTINGS, STAMP, tools, jobs=1)


def recorded(folder: Path, prober: Prober, *changes: tuple[str, str]) -> Recordings:
    changed = BASE
    for old, new in changes:
        assert old in changed
        changed = changed.replace(old, new)
    case = case_of(folder, prober, changed)
    return record(case)


def by_name(recordings: Recordings) -> dict[str, list[Recorded]]:
    found: dict[str, list[Recorded]] = {}
    for call in recordings.calls:
        found.setdefault(call.function.partition("::")[2], []).append(call)
    return found


def rebuilt(call: Recorded, way: str = "made") -> list[str]:
    """Its arguments as expressions."""
    return [Writer(way).value(one) for one in call.positional]  # type: ignore[arg-type]


def test_arguments_are_those_before_the_call(tmp_path: Path, prober: Prober) -> None:
    calls = by_name(recorded(tmp_path, prober, ("while items:", "while len(items):")))
    assert [rebuilt(call) for call in calls["unique"]] == [["[5, 3, 5, 4]"]]  # not those of the test that fails


def test_instances_are_described_by_what_was_called_on_them(tmp_path: Path, prober: Prober) -> None:
    calls = by_name(recorded(tmp_path, prober, ("any([one == item for one in self._items])", "item in self._items")))
    (merge,) = calls["Basket.merge"]
    assert merge.level == 1
    assert rebuilt(merge) == [
        "made(shop.Basket([3, 1]), [('add', (2,), {})])",
        "made(shop.Basket(limit=5), [('add', (7,), {}), ('add', (1,), {})])",
    ]
    assert rebuilt(merge, "state")[0] == "restored(shop.Basket, [('_items', [3, 1, 2]), ('_limit', None)])"
    (contains,) = calls["Basket.__contains__"]  # not those of merge, in the midst of which no history describes it
    assert contains.level == 0
    assert Replay((contains,)).script().count("(operator.contains, (made(shop.Basket([3, 1]), ") == 1


def test_of_a_slow_file_no_further_test_is_recorded(tmp_path: Path, prober: Prober) -> None:
    """opentelemetry-python's, which wait for exporters: without a limit, recording lasted for minutes."""
    tests = """import os, shop, time
def test_slow():
    assert shop.unique([1, 1]) == [1]
    time.sleep(1.5)
def test_more():
    os._exit(3)
"""
    case = case_of(tmp_path, prober, BASE.replace("while items:", "while len(items):"), tests=tests)
    short = SETTINGS.replay.model_copy(update={"seconds": 2.0})
    found = record(replace(case, settings=SETTINGS.model_copy(update={"replay": short})))
    assert ([rebuilt(call) for call in found.calls], found.troubles) == ([["[1, 1]"]], [])


def test_private_functions_are_replayed_by_their_public_callers(tmp_path: Path, prober: Prober) -> None:
    recordings = recorded(
        tmp_path, prober, ("len([part for part in text.split() if part == word])", "text.count(word)")
    )
    calls = by_name(recordings)
    assert {name: {call.level for call in some} for name, some in calls.items()} == {"frequency": {0}, "_count": {3}}
    assert [(rebuilt(call), call.named) for call in calls["frequency"]] == [  # without what is the default
        (["'a b a c'"], {"strict": True}),
        (["'a a'"], {}),
        (["'x y'", "'x'", "1", "2"], {"key": 3}),
    ]
    assert "shop.py::each: it is a generator or coroutine" in recordings.reasons()


def test_functions_are_arguments_if_they_can_be_imported(tmp_path: Path, prober: Prober) -> None:
    recordings = recorded(tmp_path, prober, ("[function(item) for item in items]", "list(map(function, items))"))
    assert [rebuilt(call) for call in by_name(recordings)["apply"]] == [["abs", "[-1]"], ["shop.Basket.of", "['x']"]]
    assert "<lambda> cannot be imported" in recordings.reasons()
    assert "a bound method of Basket" in recordings.reasons()


def test_values_of_many_kinds_are_rebuilt(tmp_path: Path, prober: Prober) -> None:
    old, new = "return [one, two, three, four]", "return list((one, two, three, four))"
    case = case_of(tmp_path, prober, BASE.replace(old, new))
    calls = record(case).calls
    assert len(calls) == 5
    replays = [Replay((call,)) for call in calls]
    items = run_scripts(case, "base", {one.name: one.script(one.calls[0].digest) for one in replays}, 0)
    assert [items[one.name].outcome for one in replays] == ["passed"] * 5, items
    wrong = run_scripts(case, "base", {one.name: one.script("0" * 64) for one in replays}, 0)
    assert {item.outcome for item in wrong.values()} == {"failed"}
    for one in replays:
        ast.parse(one.script())


def kept(rows: list[Workload]) -> list[Workload]:
    return [row for row in rows if row.status == "kept"]


def test_calls_of_a_change_become_scripts(tmp_path: Path, prober: Prober) -> None:
    old = """\
        found = []
        while items:
            item = items.pop()
            if item not in found:
                found.append(item)
        return found
"""
    new = """\
        found = list(dict.fromkeys(reversed(items)))
        items.clear()
        return found
"""
    assert old in BASE
    rows = ReplaySource().workloads(case_of(tmp_path, prober, BASE.replace(old, new)))
    good = kept(rows)
    assert good, rows
    assert {row.source for row in rows} == {"replay"}
    for row in good:
        assert row.seconds is not None
        assert row.calls == ["shop.py::unique"]
        assert {hit.path for hit in row.hits} == {"shop.py"}
        assert "shop.unique" in row.code
    assert any("longer([5, 3, 5, 4], TIMES)" in row.code for row in good)
    assert any("TIMES" not in row.code for row in good)


def test_a_head_with_other_results_gives_no_script(tmp_path: Path, prober: Prober) -> None:
    rows = ReplaySource().workloads(case_of(tmp_path, prober, BASE.replace("items.pop()", "items.pop(0)")))
    assert rows
    assert {row.reason for row in rows} == {Reason.DIFFERS}


def test_a_function_that_does_other_things_with_what_tests_give_it_has_no_workload(
    tmp_path: Path, prober: Prober
) -> None:
    base = "def total(items):\n    return sum([one for one in items])\n"
    tests = "import shop\ndef test_total():\n    assert shop.total([1, 2]) > 1\n"
    changed = "def total(items):\n    return sum(items) + (len(items) < 3)\n"
    rows = ReplaySource().workloads(case_of(tmp_path, prober, changed, base, tests))
    assert {row.reason for row in rows} == {Reason.DIFFERS}
    assert any(row.detail == "the calls as recorded have other results at the head" for row in rows)


def test_rounds_do_not_time_a_cache_that_the_change_adds(tmp_path: Path, prober: Prober) -> None:
    base = """\
        KNOWN = {}

        def score(text):
            found = 0
            for letter in text * 500:
                found += ord(letter)
            return found
        """
    tests = "import shop\ndef test_score():\n    for text in ('ab', 'c d', 'efg'):\n        assert shop.score(text)\n"
    changed = """\
        KNOWN = {}

        def score(text):
            if text in KNOWN:
                return KNOWN[text]
            found = 0
            for letter in text * 500:
                found += ord(letter)
            KNOWN[text] = found
            return found
        """
    rows = ReplaySource().workloads(case_of(tmp_path, prober, changed, base, tests))
    assert not kept(rows), [row.detail for row in kept(rows)]
    assert Reason.CACHED in {row.reason for row in rows}


def test_what_cannot_be_recorded_is_one_row(tmp_path: Path, prober: Prober) -> None:
    tests = """\
        import shop
        def test_apply():
            assert shop.apply(lambda one: one + 1, [1]) == [2]
        """
    changed = BASE.replace("[function(item) for item in items]", "list(map(function, items))")
    (row,) = ReplaySource().workloads(case_of(tmp_path, prober, changed, tests=tests))
    assert (row.code, row.reason) == ("", Reason.NOT_RECORDED)
    assert "<lambda> cannot be imported" in row.detail


def test_calls_that_depend_on_more_than_their_arguments_are_not_replayed(tmp_path: Path, prober: Prober) -> None:
    base = "STATE = []\ndef count(items):\n    STATE.append(items)\n    return len(items) + len(STATE)\n"
    tests = "import shop\ndef test_count():\n    shop.count([1])\n    shop.count([2])\n"
    changed = base.replace("len(items) + len(STATE)", "len(STATE) + len(items)")
    rows = ReplaySource().workloads(case_of(tmp_path, prober, changed, base, tests))
    assert Reason.NOT_REPLAYED in {row.reason for row in rows}
    assert not kept(rows)


def test_attributes_are_set_only_in_classes_that_stay_as_they_are(tmp_path: Path, prober: Prober) -> None:
    base = """\
        class Box:
            pass

        def weight(box):
            return sum([one for one in box.items])
        """
    tests = """\
        import shop
        def test_weight():
            box = shop.Box()
            box.items = [1, 2]
            assert shop.weight(box) == 3
        """
    changed = base.replace("sum([one for one in box.items])", "sum(box.items)")
    rows = ReplaySource().workloads(case_of(tmp_path / "one", prober, changed, base, tests))
    assert kept(rows)
    assert "restored(shop.Box, [('items', " in kept(rows)[0].code
    other = changed.replace("pass", "kind = 'box'")
    rows = ReplaySource().workloads(case_of(tmp_path / "other", prober, other, base, tests))
    assert [row.reason for row in rows] == [Reason.NOT_REPLAYED] * len(rows)
    assert any("may alter the attributes of Box" in row.detail for row in rows)


@pytest.mark.parametrize(
    "value",
    [
        {"kind": "name", "module": "os; import sys", "name": "x"},
        {"kind": "name", "module": "os", "name": "system('x')"},
        {"kind": "unknown"},
        {"kind": "tuple"},
        {"kind": "int", "text": "1 + 1"},
        {"kind": "float", "text": "x()"},
        {"kind": "bytes", "text": 5},
        {"kind": "array", "dtype": "f", "shape": ["x"], "items": []},
        {"kind": "deque", "items": [], "size": "1)"},
        {"kind": "object", "module": "shop", "name": "Box", "classes": []},
        {"kind": "object", "module": "shop", "name": "Box", "made": [[], {"a b": 1}], "calls": []},
        {"kind": "object", "module": "shop", "name": "Box", "made": [[], {}], "calls": [["a'b", [], {}]]},
        {"kind": "name", "module": "setup", "name": "x"},
    ],
)
def test_forged_descriptions_are_not_written(value: dict[str, object]) -> None:
    with pytest.raises(Unwritable):
        Writer().value(value)


def test_nested_descriptions_have_a_limit() -> None:
    value: object = []
    for _ in range(500):
        value = [value]
    with pytest.raises(Unwritable):
        Writer().value(value)


def test_calls_that_raised_are_left_out(tmp_path: Path, prober: Prober) -> None:
    """A profiler sees them return None, as calls that do return it."""
    base = """\
        def check(items):
            for item in sorted(items):
                if item < 0:
                    raise ValueError(item)

        def outer(items):
            return check(items)
        """
    tests = """\
        import pytest
        from shop import check, outer

        def test_raises():
            with pytest.raises(ValueError):
                check([3, -1])
            with pytest.raises(ValueError):
                outer([-7])

        def test_returns():
            assert check([3, 1]) is None
            assert outer([4]) is None
        """
    changed = base.replace("sorted(items)", "list(items)")
    case = case_of(tmp_path, prober, changed, base, tests)
    found = record(case)
    assert {call.node.partition("::")[2] for call in found.calls} == {"test_returns"}
    assert sum(one.count for one in found.missed if "raised" in one.reason) == 3


def test_instances_of_subclasses_of_texts_and_numbers_are_made_of_their_plain_value(
    tmp_path: Path, prober: Prober
) -> None:
    base = """\
        class Line(str):
            def __new__(cls, value):
                return super().__new__(cls, value.strip())

            def parts(self):
                return [part for part in self.split(";")]

        class Feet(int):
            def __int__(self):
                raise TypeError("not that")

        class Odd(float):
            def __float__(self):
                raise TypeError("not that")

        def longest(line, feet, odd, raw):
            return Line(max([part for part in line.split(";")], key=len)), feet, odd, raw

        class Raw(bytes):
            def __iter__(self):
                raise TypeError("not that")
        """
    tests = """\
        from shop import Feet, Line, Odd, Raw, longest
        def test_parts():
            line = Line(" a;bc ")
            assert line.parts() == ["a", "bc"]
            assert longest(line, Feet(3), Odd(0.5), Raw(b"ab"))[0] == "bc"
        """
    changed = base.replace('[part for part in self.split(";")]', 'self.split(";")')
    changed = changed.replace('[part for part in line.split(";")]', 'line.split(";")')
    case = case_of(tmp_path, prober, changed, base, tests)
    calls = by_name(record(case))
    assert [rebuilt(call, "contents") for call in calls["Line.parts"]] == [["shop.Line('a;bc')"]]
    assert [rebuilt(call, "contents") for call in calls["longest"]] == [
        ["shop.Line('a;bc')", "shop.Feet(3)", "shop.Odd(0.5)", "shop.Raw(b'ab')"]
    ]
    rows = kept(ReplaySource().workloads(case))
    assert {name for row in rows for name in row.calls} == {"shop.py::Line.parts", "shop.py::longest"}


def test_a_collection_that_holds_itself_is_compared_by_its_text(tmp_path: Path, prober: Prober) -> None:
    base = """\
        class Span:
            def __init__(self, *ends):
                self._ends = list(ends)

            def __len__(self):
                return len(self._ends)

            def __iter__(self):
                return iter([Span(one) for one in self._ends])

            def __eq__(self, other):
                return self._ends == other._ends

            def __repr__(self):
                return "Span({})".format(self._ends)

        def joined(one, other):
            return Span(*[end for end in one._ends + other._ends])
        """
    tests = """\
        from shop import Span, joined
        def test_joined():
            assert joined(Span(1), Span(2)) == Span(1, 2)
            assert joined(Span(), Span(2)) == Span(2)
        """
    changed = base.replace("Span(*[end for end in one._ends + other._ends])", "Span(*one._ends, *other._ends)")
    case = case_of(tmp_path / "equal", prober, changed, base, tests)
    assert len(by_name(record(case))["joined"]) == 2
    assert kept(ReplaySource().workloads(case))
    wrong = changed.replace("*other._ends", "*[end + 1 for end in other._ends]")
    rows = ReplaySource().workloads(case_of(tmp_path / "wrong", prober, wrong, base, tests))
    assert rows and not kept(rows)


def test_after_unit_tests_only_tests_that_execute_the_change_are_recorded(tmp_path: Path, prober: Prober) -> None:
    tests = """\
        from shop import Basket, unique

        def test_unique():
            assert unique([3, 1, 3]) == [3, 1]

        def test_fails():
            assert unique([2, 2]) == [2, 2]

        def test_other():
            assert Basket([1]).total == 1
        """
    case = case_of(
        tmp_path / "trees", prober, BASE.replace("if item not in found", "if not item in found"), tests=tests
    )
    UnitTests().workloads(case)
    assert [node.partition("::")[2] for node in case.seen.nodes] == ["test_unique"]
    assert case.seen.files == ["tests/test_shop.py"]
    found = record(case)
    assert {call.node.partition("::")[2] for call in found.calls} == {"test_unique"} and found.files == case.seen.files
    assert not [one for one in found.missed if "pass while" in one.reason]
