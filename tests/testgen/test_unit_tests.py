"""Selection of unit tests on real trees, run by the real probe in a real sandbox."""

from __future__ import annotations

import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from two_trees import STAMP, TwoTrees

from perfquarry.data.records import Reason, Side, Workload
from perfquarry.harness.probing.prober import Prober
from perfquarry.harness.sandbox import choose_sandbox
from perfquarry.testgen.case import Case
from perfquarry.testgen.settings import GenerateSettings
from perfquarry.testgen.unit_tests import UnitTests
from tests.bare_python import bare_tools

SETTINGS = GenerateSettings(timeout=60.0, test_timeout=1.0)

HEAP = """\
    \"\"\"A heap.\"\"\"
    LIMIT = 3

    class Heap:
        def __init__(self):
            self.items = []

        def push(self, item):
            self.items.append(item)
            self.items.sort()

        def pop(self):
            return self.items.pop(0)

        def __contains__(self, item):
            return item in self.items

    def smallest(items):
        heap = Heap()
        for item in items:
            heap.push(item)
        return heap.pop()
    """
SORTED = ("self.items.sort()", "self.items = sorted(self.items)")


@pytest.fixture(scope="module")
def prober(tmp_path_factory: pytest.TempPathFactory) -> Prober:
    return Prober(choose_sandbox(), tmp_path_factory.mktemp("scratch"))


class Trial(TwoTrees):
    """Two trees, and what is selected for them."""

    def select(self, settings: GenerateSettings = SETTINGS) -> list[Workload]:
        tools: dict[Side, Path] = dict.fromkeys(("base", "head"), bare_tools())
        base, head = self.built["base"], self.built["head"]
        return UnitTests().workloads(Case(self.change, self.verdict, base, head, self.prober, settings, STAMP, tools))


def reasons(rows: list[Workload]) -> dict[str, str | None]:
    return {row.code: row.reason for row in rows}


def kept(rows: list[Workload]) -> list[str]:
    return [row.code for row in rows if row.status == "kept"]


def test_all_kinds_of_tests_of_a_change(tmp_path: Path, prober: Prober) -> None:
    base = {
        "pkg/__init__.py": "from .heap import Heap, smallest\n",
        "pkg/heap.py": HEAP,
        "pkg/test/__init__.py": "",
        "pkg/test/heap_test.py": """\
            import unittest
            from ..heap import Heap

            class HeapTest(unittest.TestCase):
                def setUp(self):
                    self.heap = Heap()

                def test_push(self):
                    self.heap.push(1)
                    self.assertIn(1, self.heap)

                def test_empty(self):
                    self.assertEqual(self.heap.items, [])
            """,
        "tests/conftest.py": """\
            import pytest
            from pkg import Heap

            @pytest.fixture
            def filled():
                heap = Heap()
                heap.items = [1, 2]
                return heap
            """,
        "tests/test_more.py": """\
            import pytest
            from pkg import smallest
            import pkg.heap

            @pytest.mark.parametrize("text", ["a::b", "c/d [e]", "ü-é", "x y", __file__])
            def test_smallest(text):
                assert smallest([text, text + "z"]) == text

            def test_fixture(filled):
                filled.push(0)
                assert filled.pop() == 0

            @pytest.mark.skip
            def test_skipped():
                smallest([1])
            """,
    }
    far = tmp_path / ("far" * 30)  # pytest 9.2 names texts of more than 100 characters by their number
    rows = Trial(far, base, {"pkg/heap.py": HEAP.replace(*SORTED)}, prober).select()
    assert {row.status for row in rows} == {"kept"}
    nodes = set(kept(rows))
    assert {node.partition("[")[0] for node in nodes} == {
        "pkg/test/heap_test.py::HeapTest::test_push",
        "tests/test_more.py::test_fixture",
        "tests/test_more.py::test_smallest",
    }
    assert len(nodes) == 7 and "tests/test_more.py::test_smallest[<tree>/tests/test_more.py]" in nodes
    for row in rows:
        assert [(hit.side, hit.path, hit.lines) for hit in row.hits] == [
            ("base", "pkg/heap.py", [10]),
            ("head", "pkg/heap.py", [10]),
        ]
        assert row.seconds is not None
        assert row.seconds > 0
    calls = {row.code.partition("[")[0].rpartition("::")[2]: row.calls for row in rows}
    assert {name: set(functions) for name, functions in calls.items()} == {
        "test_push": {"pkg/heap.py::Heap.push", "pkg/heap.py::Heap.__contains__"},
        "test_fixture": {"pkg/heap.py::Heap.push", "pkg/heap.py::Heap.pop"},
        "test_smallest": {"pkg/heap.py::smallest"},
    }


def test_every_way_to_be_rejected_alone(tmp_path: Path, prober: Prober) -> None:
    tests = """\
        import os, time
        from heap import Heap, smallest

        def test_good():
            assert smallest([2, 1]) == 1

        def test_broken_before():
            assert smallest([2, 1]) == 2

        def test_flaky():
            assert smallest([2, 1]) == 1
            assert os.environ["PYTHONHASHSEED"] != "3"

        def test_slow():
            assert smallest([2, 1]) == 1
            time.sleep(30)

        def test_modified():
            assert smallest([2, 1]) == 1

        def test_elsewhere():
            assert Heap().items == []
        """
    newer = tests.replace("test_modified():\n            assert", "test_modified():\n            assert True and")
    newer += "\n        def test_added():\n            assert smallest([3]) == 3\n"
    head = {"src/heap.py": HEAP.replace(*SORTED), "tests/test_heap.py": newer}
    rows = Trial(tmp_path, {"src/heap.py": HEAP, "tests/test_heap.py": tests}, head, prober, "src").select()
    names = {code.rpartition("::")[2]: reason for code, reason in reasons(rows).items()}
    assert names == {
        "test_good": None,
        "test_broken_before": Reason.FAILS_ON_BASE,
        "test_flaky": Reason.FLAKY,
        "test_slow": Reason.TEST_TIMEOUT,
        "test_modified": Reason.TEST_CHANGED,
        "test_added": Reason.TEST_CHANGED,
    }
    assert next(row.detail for row in rows if row.reason == Reason.FAILS_ON_BASE).startswith("failed at the base: ")


def test_an_untouched_test_that_breaks_rejects_the_change(tmp_path: Path, prober: Prober) -> None:
    tests = """\
        from heap import smallest

        def test_one():
            assert smallest([1]) == 1

        def test_two():
            assert smallest([2, 1]) == 1
        """
    head = {"heap.py": HEAP.replace(SORTED[0], "pass")}
    rows = Trial(tmp_path, {"heap.py": HEAP, "test_heap.py": tests}, head, prober).select()
    assert reasons(rows) == {"": Reason.FAILS_ON_HEAD, "test_heap.py::test_two": Reason.FAILS_ON_HEAD}
    assert "test_two" in rows[0].detail


def test_names_of_tests_that_the_tree_sets(tmp_path: Path, prober: Prober) -> None:
    """python-docx: classes of other names, edited beside the test, and an example that is no test."""
    before = """\
        from pkg import Heap

        class DescribeHeap:
            def it_takes_one(self):
                \'\'\'>>> 1 + 1
                3
                \'\'\'
                heap = Heap()
                heap.push(1)
                assert 1 in heap

            def it_is_edited(self):
                Heap().push(1)
        """
    settings = "[pytest]\npython_classes = Describe\npython_functions = it_\n"
    base = {"pkg.py": HEAP, "tests/test_heap.py": before, "tox.ini": settings}
    after = {"pkg.py": HEAP.replace(*SORTED), "tests/test_heap.py": before.replace("Heap().push(1)", "Heap().push(2)")}
    rows = Trial(tmp_path, base, after, prober).select()
    assert reasons(rows) == {
        "tests/test_heap.py::DescribeHeap::it_takes_one": None,
        "tests/test_heap.py::DescribeHeap::it_is_edited": Reason.TEST_CHANGED,
    }


def test_no_test_file_reaches_the_change(tmp_path: Path, prober: Prober) -> None:
    base = {"heap.py": HEAP, "test_other.py": "def test_it(): ...\n"}
    rows = Trial(tmp_path, base, {"heap.py": HEAP.replace(*SORTED)}, prober).select()
    assert [(row.code, row.status, row.reason) for row in rows] == [("", "rejected", Reason.NO_TESTS)]


def test_tests_of_python_2_are_named(tmp_path: Path, prober: Prober) -> None:
    of_2 = "import heap\ndef test_it():\n    print heap.smallest([1])\n"
    base = {"heap.py": HEAP, "test_heap.py": of_2, "test_other.py": "def test_it(): ...\n"}
    (row,) = Trial(tmp_path, base, {"heap.py": HEAP.replace(*SORTED)}, prober).select()
    assert row.reason == Reason.NO_TESTS and "not of Python 3: test_heap.py;" in row.detail


def test_no_test_executes_the_change(tmp_path: Path, prober: Prober) -> None:
    base = {"heap.py": HEAP, "test_heap.py": "import heap\ndef test_it():\n    heap.Heap()\n"}
    assert reasons(Trial(tmp_path / "a", base, {"heap.py": HEAP.replace(*SORTED)}, prober).select()) == {
        "": Reason.NO_TEST_EXECUTES_CHANGE
    }
    comment = {"heap.py": HEAP.replace('"""A heap."""', '"""The heap."""')}
    assert reasons(Trial(tmp_path / "b", base, comment, prober).select()) == {"": Reason.NO_TEST_EXECUTES_CHANGE}


def test_only_modified_tests_execute_the_change(tmp_path: Path, prober: Prober) -> None:
    test = "import heap\ndef test_it():\n    assert heap.smallest([1]) == 1\n"
    head = {"heap.py": HEAP.replace(*SORTED), "test_heap.py": test.replace("1", "2"), "test_new.py": test}
    rows = Trial(tmp_path, {"heap.py": HEAP, "test_heap.py": test}, head, prober).select()
    assert reasons(rows) == dict.fromkeys(["", "test_heap.py::test_it", "test_new.py::test_it"], Reason.TEST_CHANGED)


@pytest.mark.parametrize(("side", "reason"), [("base", Reason.FAILS_ON_BASE), ("head", Reason.FAILS_ON_HEAD)])
def test_a_file_that_cannot_be_collected_on_one_side(
    tmp_path: Path, prober: Prober, side: Side, reason: Reason
) -> None:
    test = "from heap import smallest, LIMIT\ndef test_it():\n    assert smallest([1]) == 1\n"
    without = HEAP.replace("LIMIT = 3", "")
    texts = {"base": (without, HEAP), "head": (HEAP, without)}[side]
    head = {"heap.py": texts[1].replace(*SORTED)}
    rows = Trial(tmp_path, {"heap.py": texts[0], "test_heap.py": test}, head, prober).select()
    assert reasons(rows) == {"": reason, "test_heap.py::test_it": reason}
    assert "cannot import name 'LIMIT'" in rows[1].detail


def test_a_test_that_ends_the_process_takes_no_other_with_it(tmp_path: Path, prober: Prober) -> None:
    tests = """\
        import os
        from heap import smallest

        def test_before():
            assert smallest([1]) == 1

        def test_deadly():
            smallest([1])
            if os.environ["PYTHONHASHSEED"] != "1":
                os._exit(3)

        def test_after():
            assert smallest([1]) == 1
        """
    head = {"heap.py": HEAP.replace(*SORTED)}
    rows = Trial(tmp_path, {"heap.py": HEAP, "test_heap.py": tests}, head, prober).select()
    assert reasons(rows) == {
        "test_heap.py::test_before": None,
        "test_heap.py::test_after": None,
        "test_heap.py::test_deadly": Reason.FLAKY,
    }


def test_lines_only_one_side_has(tmp_path: Path, prober: Prober) -> None:
    test = "import heap\ndef test_it():\n    assert heap.smallest([1]) == 1\n"
    base = {"heap.py": HEAP, "test_heap.py": test}
    removed = HEAP.replace("            self.items.sort()\n", "")
    rows = Trial(tmp_path, base, {"heap.py": removed}, prober).select()
    assert [(hit.side, hit.lines) for hit in rows[0].hits] == [("base", [10])]
    assert rows[0].status == "kept"


def test_farther_files_are_not_run_where_nearer_tests_suffice(tmp_path: Path, prober: Prober) -> None:
    near = "import pytest, heap\n@pytest.mark.parametrize('n', range(3))\ndef test_it(n):\n    heap.smallest([n])\n"
    base = {
        "heap.py": HEAP,
        "user.py": "import heap\ndef use():\n    return heap.smallest([1])\n",
        "test_near.py": near,
        "test_user.py": "import user\ndef test_broken():\n    assert user.use() == 2\n",
    }
    rows = Trial(tmp_path, base, {"heap.py": HEAP.replace(*SORTED)}, prober).select()
    assert sorted(reasons(rows)) == [f"test_near.py::test_it[{number}]" for number in range(3)]


def test_once_much_was_run_one_usable_test_is_enough(tmp_path: Path, prober: Prober) -> None:
    test = "import heap\ndef test_it():\n    assert heap.smallest([1]) == 1\n"
    base = {"heap.py": HEAP, **{f"test_{number}.py": test for number in range(8)}}
    trial = Trial(tmp_path, base, {"heap.py": HEAP.replace(*SORTED)}, prober)
    assert len(kept(trial.select())) == 8
    assert len(kept(trial.select(SETTINGS.model_copy(update={"search_seconds": 1e-3})))) == 3


def test_a_test_that_ends_its_process_takes_no_other_with_it(tmp_path: Path, prober: Prober) -> None:
    """What others executed would be lost, of all files that run with it."""
    crash = "import ctypes\ndef test_crash():\n    ctypes.string_at(0)\n"
    test = "import heap\ndef test_it():\n    assert heap.smallest([1]) == 1\n"
    base = {"heap.py": HEAP, "test_a.py": crash + f"\n{test}", "test_b.py": test}
    rows = Trial(tmp_path, base, {"heap.py": HEAP.replace(*SORTED)}, prober).select()
    assert sorted(kept(rows)) == ["test_a.py::test_it", "test_b.py::test_it"]
    base["test_a.py"], base["test_b.py"] = f"import heap\n{crash}", "import heap\n"
    (row,) = Trial(tmp_path / "alone", base, {"heap.py": HEAP.replace(*SORTED)}, prober).select()
    assert row.reason == Reason.FAILS_ON_BASE and "test_a.py::test_crash ends its process" in row.detail


def test_what_slow_files_leave_undone_is_no_fact(tmp_path: Path, prober: Prober) -> None:
    """Neither that nothing executes the change, nor that a test fails where it was not begun."""
    slow = "def test_other{}():\n    time.process_time() and sum(range(10**6))\n"
    test = "def test_it():\n    assert heap.smallest([1]) == 1\n"
    limited = SETTINGS.model_copy(update={"search_seconds": 1e-6})
    base = {"heap.py": HEAP, "test_heap.py": "import heap\nimport time\n" + slow.format(1) + slow.format(2) + test}
    trial = Trial(tmp_path, base, {"heap.py": HEAP.replace(*SORTED)}, prober)
    assert kept(trial.select()) == ["test_heap.py::test_it"]
    (row,) = trial.select(limited)
    assert row.reason == Reason.TEST_TIMEOUT and "1 more were not begun in slow files: test_heap.py" in row.detail
    assert row.detail.startswith("2 tests ran"), "one of each run: what ran before is not run again"
    base["test_heap.py"] = base["test_heap.py"].replace(slow.format(2), "")
    trial = Trial(tmp_path / "two", base, {"heap.py": HEAP.replace(*SORTED)}, prober)
    assert kept(trial.select(limited)) == ["test_heap.py::test_it"]


def test_definitions_outside_functions_are_represented(tmp_path: Path, prober: Prober) -> None:
    test = "import heap\ndef test_it():\n    assert heap.smallest([1]) == 1\n"
    slots = HEAP.replace("class Heap:\n", 'class Heap:\n        __slots__ = ("items",)\n\n')
    rows = Trial(tmp_path, {"heap.py": HEAP, "test_heap.py": test}, {"heap.py": slots}, prober).select()
    assert kept(rows) == ["test_heap.py::test_it"]
    assert {hit.side for hit in rows[0].hits} == {"head"}


def test_native_changes_are_reached_by_imports_alone(tmp_path: Path, prober: Prober) -> None:
    base = {
        "pkg/__init__.py": "",
        "pkg/heap.py": HEAP,
        "pkg/src/impl.c": "int a;\n",
        "tests/test_heap.py": "from pkg.heap import smallest\ndef test_it():\n    assert smallest([1]) == 1\n",
    }
    (row,) = Trial(tmp_path / "pure", base, {"pkg/src/impl.c": "int b;\n"}, prober).select()
    assert row.reason == Reason.NO_TEST_EXECUTES_CHANGE and "compiles nothing" in row.detail
    base["pkg/impl.abi3.so"] = ""
    base["pkg/heap.py"] = f"try:\n    from pkg import impl\nexcept ImportError:\n    pass\n{textwrap.dedent(HEAP)}"
    rows = Trial(tmp_path / "native", base, {"pkg/src/impl.c": "int b;\n"}, prober).select()
    assert kept(rows) == ["tests/test_heap.py::test_it"]
    assert rows[0].hits == []
    assert "without coverage" in rows[0].detail


def test_tests_that_execute_the_python_twin_come_before_those_that_may_execute_native_code(
    tmp_path: Path, prober: Prober
) -> None:
    test = "from pkg.heap import smallest\ndef test_it():\n    assert smallest([1]) == 1\n"
    base = {
        "pkg/__init__.py": "",
        "pkg/heap.py": HEAP,
        "pkg/twin.py": HEAP,
        "pkg/impl.c": "int a;\n",
        "pkg/impl.abi3.so": "",
        "tests/test_heap.py": f"import pkg.twin\n{test}",
    }
    change = {"pkg/impl.c": "int b;\n", "pkg/twin.py": HEAP.replace(*SORTED)}
    rows = Trial(tmp_path / "native", base, change, prober).select()
    assert kept(rows) == ["tests/test_heap.py::test_it"] and rows[0].hits == []
    assert "whose other half is native" in rows[0].detail
    twin = {**base, "tests/test_twin.py": test.replace("pkg.heap", "pkg.twin")}
    assert kept(Trial(tmp_path / "twin", twin, change, prober).select()) == ["tests/test_twin.py::test_it"]


def test_the_best_workloads_are_kept_and_threads_do_not_disturb(tmp_path: Path, prober: Prober) -> None:
    tests = "import pytest\nfrom heap import Heap, smallest\n"
    tests += "@pytest.mark.parametrize('n', range(8))\ndef test_push(n):\n    Heap().push(n)\n"
    tests += "def test_both():\n    smallest([1])\n    assert 1 not in Heap()\n"
    head = {"heap.py": HEAP.replace(*SORTED).replace("return item in", "return item  in")}
    trials = [Trial(tmp_path / name, {"heap.py": HEAP, "test_heap.py": tests}, head, prober) for name in "ab"]
    settings = SETTINGS.model_copy(update={"max_workloads": 2})
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda trial: trial.select(settings), trials)
    for rows in (first, second):
        assert len(kept(rows)) == 2
        assert "test_heap.py::test_both" in kept(rows)
    assert {row.workload_id for row in first} & {row.workload_id for row in second}


def test_the_search_goes_on_until_each_changed_function_is_executed(tmp_path: Path, prober: Prober) -> None:
    """Usable tests of one function do not end it: the test of the other one is the last of seven files."""
    two = "def near(n):\n    return sum(range(n))\n\ndef far(n):\n    return sum(range(n + 1))\n"
    base = {
        "pkg/__init__.py": "",
        "pkg/core.py": two,
        "pkg/late.py": "from . import core\nhidden = getattr(core, 'fa' + 'r')\n",
        **{
            f"tests/test_{name}.py": "from pkg.core import near\n\n"
            + "".join(f"def test_{number}():\n    assert near({number}) >= 0\n\n" for number in range(4))
            for name in "abcdef"
        },
        "tests/test_g.py": "from pkg.late import hidden\n\ndef test_hidden():\n    assert hidden(2) == 3\n",
    }
    changed = {
        "pkg/core.py": two.replace("sum(range(n))", "n * (n - 1) // 2").replace("sum(range(n + 1))", "n * (n + 1) // 2")
    }
    rows = Trial(tmp_path, base, changed, prober).select()
    assert "tests/test_g.py::test_hidden" in kept(rows)


@pytest.mark.parametrize(
    ("test", "reason", "word"),
    [
        ("import pytest\npytest.importorskip('a_module_nobody_has')\n", Reason.MODULE_MISSING, "a_module_nobody_has"),
        ("import a_module_nobody_has\n", Reason.MODULE_MISSING, "a_module_nobody_has"),
        ("from StringIO import StringIO\n", Reason.NEEDS_PYTHON_2, "StringIO"),
        ("exec('print 1')\n", Reason.NEEDS_PYTHON_2, "print 1"),
        ("    {}.iteritems()\n", Reason.NEEDS_PYTHON_2, "iteritems"),
        ("    open('data/numbers.txt')\n", Reason.NEEDS_FILE, "numbers.txt"),
        ("    raise LookupError('use the NLTK Downloader to obtain the resource')\n", Reason.NEEDS_FILE, "Downloader"),
        ("    raise OSError('Run python -m spacy download en')\n", Reason.NEEDS_FILE, "spacy"),
        ("    import socket\n    socket.create_connection(('127.0.0.1', 9))\n", Reason.NEEDS_SERVICE, "efused"),
        ("    raise OSError('Unable to download ffmpeg')\n", Reason.NEEDS_SERVICE, "ffmpeg"),
        ("    mocker.patch('x')\n", Reason.MODULE_MISSING, "mocker"),
        ("    open(__file__ + '.out', 'w')\n", Reason.NEEDS_TREE, "Read-only"),
        ("    import sqlite3\n    sqlite3.connect('tests/made.db')\n", Reason.NEEDS_TREE, "unable to open"),
        (
            "def test_a(): pass\ndef test_b(): pass\ndef test_c(): open(__file__ + '.out', 'w')\n",
            Reason.NEEDS_TREE,
            "1 of 1 that failed",
        ),
        ("    assert work is None\n", Reason.FAILS_ON_BASE, "assert work is None"),
        ("", Reason.NO_TEST_EXECUTES_CHANGE, "not executed: pkg/core.py::work"),
        (
            "def test_a(): pass\ndef test_b(): 1 / 0\ndef test_c(): 1 / 0\ndef test_d(): 1 / 0\n",
            Reason.FAILS_ON_BASE,
            "1 / 0",
        ),
        ("def test_a(): pass\ndef test_b(mocker): pass\n", Reason.NO_TEST_EXECUTES_CHANGE, "mocker"),
    ],
)
def test_what_tests_need_is_a_reason_of_its_own(
    tmp_path: Path, prober: Prober, test: str, reason: Reason, word: str
) -> None:
    """Such a test does not come to the change: that is no sign that none executes it."""
    above, inside = ("", test) if test.startswith(" ") else (test, "")
    fixture = "mocker" if "mocker.patch" in test else ""
    call = "    assert work(2) == 1\n" if test and "test_a" not in test else "    assert work\n"
    base = {
        "pkg/__init__.py": "",
        "pkg/core.py": "def work(n):\n    return sum(range(n))\n",
        "tests/test_core.py": f"{above}from pkg.core import work\n\ndef test_it({fixture}):\n{inside}{call}",
    }
    changed = {"pkg/core.py": base["pkg/core.py"].replace("sum(range(n))", "n * (n - 1) // 2")}
    rows = Trial(tmp_path, base, changed, prober).select()
    assert (rows[0].code, rows[0].reason) == ("", reason)
    assert word in rows[0].detail


def test_a_plugin_that_writes_into_the_tree_needs_it(tmp_path: Path, prober: Prober) -> None:
    """The process ends before it collects any test."""
    base = {
        "pkg/__init__.py": "",
        "pkg/core.py": "def work(n):\n    return sum(range(n))\n",
        "conftest.py": "import sqlite3\n\n\ndef pytest_sessionstart(session):\n"
        "    sqlite3.connect('made.db').execute('create table made (one)')\n",
        "tests/test_core.py": "from pkg.core import work\n\ndef test_it():\n    work(3)\n",
    }
    changed = {"pkg/core.py": base["pkg/core.py"].replace("sum(range(n))", "n * (n - 1) // 2")}
    rows = Trial(tmp_path, base, changed, prober).select()
    assert rows[0].reason == Reason.NEEDS_TREE and "unable to open database" in rows[0].detail


def test_of_a_file_that_is_skipped_nothing_is_said_where_a_likelier_one_passes(tmp_path: Path, prober: Prober) -> None:
    base = {
        "pkg/__init__.py": "",
        "pkg/core.py": "def work(n):\n    return sum(range(n))\n",
        "tests/test_core.py": "from pkg.core import work\n\ndef test_it():\n    assert work\n",
        "tests/test_far.py": "import pytest\nfrom pkg import core\npytest.importorskip('a_module_nobody_has')\n"
        "def test_far():\n    assert core\n",
    }
    changed = {"pkg/core.py": base["pkg/core.py"].replace("sum(range(n))", "n * (n - 1) // 2")}
    rows = Trial(tmp_path, base, changed, prober).select()
    assert rows[0].reason == Reason.NO_TEST_EXECUTES_CHANGE and "a_module_nobody_has" in rows[0].detail


def test_of_examples_that_fail_nothing_is_said_where_tests_pass(tmp_path: Path, prober: Prober) -> None:
    base = {
        "pkg/__init__.py": "",
        "pkg/core.py": 'def work(n):\n    """\n    >>> 1\n    u1\n    """\n    return sum(range(n))\n\n\n'
        'def other():\n    """\n    >>> 2\n    u2\n    """\n',
        "tests/test_core.py": "from pkg.core import work\n\ndef test_it():\n    assert work\n",
    }
    changed = {"pkg/core.py": base["pkg/core.py"].replace("sum(range(n))", "n * (n - 1) // 2")}
    (first, *_) = Trial(tmp_path, base, changed, prober).select()
    assert first.reason == Reason.NO_TEST_EXECUTES_CHANGE and "3 tests ran" in first.detail

    del base["tests/test_core.py"]
    (first, *_) = Trial(tmp_path / "examples", base, changed, prober).select()
    assert first.reason == Reason.FAILS_ON_BASE


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("import a_module_nobody_has", Reason.MODULE_MISSING),
        ("raise ValueError('a_module_nobody_has')", Reason.FAILS_ON_BASE),
    ],
)
def test_a_likelier_file_that_cannot_be_collected_is_the_reason(
    tmp_path: Path, prober: Prober, line: str, reason: Reason
) -> None:
    base = {
        "pkg/__init__.py": "",
        "pkg/core.py": "def work(n):\n    return sum(range(n))\n",
        "tests/test_core.py": f"{line}\nfrom pkg.core import work\n\ndef test_it():\n    work(3)\n",
        "tests/test_far.py": "from pkg import core\n\ndef test_far():\n    assert core\n",
    }
    changed = {"pkg/core.py": base["pkg/core.py"].replace("sum(range(n))", "n * (n - 1) // 2")}
    rows = Trial(tmp_path, base, changed, prober).select()
    assert rows[0].reason == reason and "a_module_nobody_has" in rows[0].detail


def test_examples_in_docstrings_are_tests(tmp_path: Path, prober: Prober) -> None:
    """Of a project without test files; of the same names, since a run clears them, again and again."""
    core = """\
        LIMIT = 3

        def work(n):
            \'\'\'Sums up.

            >>> work(LIMIT)
            3
            \'\'\'
            return sum([one for one in range(n)])

        def said(n):
            \'\'\'
            >>> said(3)
            'old 3'
            \'\'\'
            return "old %s" % sum([one for one in range(n)])

        def plain(n):
            return n
        """
    head = core.replace("[one for one in range(n)]", "range(n)").replace("old ", "new ")
    rows = Trial(tmp_path, {"pkg/__init__.py": "", "pkg/core.py": core}, {"pkg/core.py": head}, prober).select()
    assert reasons(rows) == {"pkg/core.py::pkg.core.work": None, "pkg/core.py::pkg.core.said": Reason.TEST_CHANGED}
