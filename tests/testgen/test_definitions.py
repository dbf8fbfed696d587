"""What a test consists of, and what it calls."""

import textwrap

import pytest

from perfquarry.testgen.definitions import Definitions, NodeId, definitions_of
from perfquarry.testgen.pytest_config import Naming

SOURCE = textwrap.dedent(
    """\
    import pytest
    from pkg import first, second
    from .base import Base

    SIZE = 3
    OTHER = 4

    @pytest.fixture
    def items():
        return list(range(SIZE))

    @pytest.fixture(autouse=True)
    def quiet():
        yield

    def helper(x):
        return first(x)

    class Common:
        limit = OTHER
        def test_inherited(self):
            self.make()
        def make(self):
            return second()

    class TestHeap(Common):
        def setup_method(self):
            self.heap = first([])
        def test_one(self):
            assert self.make() == 1
        def test_two(self):
            assert 3 in self.heap

    def test_plain(items):
        helper(items).push(1)
    """
)
PLAIN, ONE, TWO, INHERITED = (
    ("test_plain",),
    ("TestHeap", "test_one"),
    ("TestHeap", "test_two"),
    ("TestHeap", "test_inherited"),
)


def definitions(text: str = SOURCE) -> Definitions:
    found = definitions_of(text.encode())
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("SIZE = 3", "SIZE = 30", {PLAIN}),  # used by a fixture of test_plain
        ("OTHER = 4", "OTHER = 5", {ONE, TWO, INHERITED}),
        ("push(1)", "push(2)", {PLAIN}),
        ("3 in", "4 in", {TWO}),
        ("first([])", "first([1])", {ONE, TWO, INHERITED}),
        ("    yield", "    yield 1", {PLAIN, ONE, TWO, INHERITED}),  # autouse
        ("return first(x)", "return second(x)", {PLAIN}),
        ("return second()", "return second(1)", {ONE, TWO, INHERITED}),
        ("self.make()\n    def", "self.make(1)\n    def", {INHERITED}),
        ("import first, second", "import first, second, third", set()),
        ("import first, second", "import first as other, second", {ONE, TWO, INHERITED, PLAIN}),
        ("def test_plain", "# a comment\ndef test_plain", set()),
        ("def test_plain", "@pytest.mark.slow\ndef test_plain", {PLAIN}),
        ("def test_plain", "def test_new(): ...\n\ndef test_plain", set()),
    ],
)
def test_a_fingerprint_changes_with_what_the_test_uses(old: str, new: str, changed: set[tuple[str, ...]]) -> None:
    assert SOURCE.count(old) == 1
    before, after = definitions(), definitions(SOURCE.replace(old, new))
    tests = (PLAIN, ONE, TWO, INHERITED)
    assert {
        test for test in tests if before.fingerprint(test, Naming()) != after.fingerprint(test, Naming())
    } == changed


DESCRIBED = textwrap.dedent(
    """\
    from pkg import first, second

    def describe_heap():
        size = 3

        def filled():
            return first(size)

        def _made():
            return second(size)

        def it_pops():
            assert _made().pop()

        def describe_empty():
            def has_nothing():
                assert not second()

    class DescribeHeap:
        def it_opens(self):
            assert first()

        def it_closes(self):
            assert second()
    """
)
POPS, EMPTY, OPENS = (
    ("describe_heap", "it_pops"),
    ("describe_heap", "describe_empty", "has_nothing"),
    ("DescribeHeap", "it_opens"),
)


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("_made().pop()", "_made().pop(0)", {POPS}),
        ("size = 3", "size = 4", {POPS, EMPTY}),
        ("return second(size)", "return second(size + 1)", {POPS, EMPTY}),
        ("return first(size)", "return first(size + 1)", set()),  # a test, too, of another name
        ("not second()", "not second(1)", {EMPTY}),
        ("assert first()", "assert first(1)", {OPENS}),
        ("        assert second()\n", "        assert second(1)\n", set()),
    ],
)
def test_tests_within_functions_and_of_names_that_the_tree_sets(
    old: str, new: str, changed: set[tuple[str, ...]]
) -> None:
    assert DESCRIBED.count(old) == 1
    before, after = definitions(DESCRIBED), definitions(DESCRIBED.replace(old, new))
    naming = Naming(classes=("Describe",), functions=("it_",))
    prints = {test: [one.fingerprint(test, naming) for one in (before, after)] for test in (POPS, EMPTY, OPENS)}
    assert all(None not in pair for pair in prints.values())
    assert {test for test, (first, second) in prints.items() if first != second} == changed
    assert before.called_names(POPS) == {"_made", "pop", "second"}


def test_unknown_tests_have_no_fingerprint() -> None:
    assert definitions().fingerprint(("test_gone",), Naming()) is None
    assert definitions().fingerprint(("TestHeap", "test_gone"), Naming()) is None
    assert definitions().fingerprint(("Nowhere", "test_one"), Naming()) is None
    assert definitions_of(b"print 'old'") is None


MADE = """
RANKS = [(1, "A")]
@parametrized(*RANKS)
class TestRank(Case):
    def test(self): pass
class TestSums(Case):
    @parameterized.expand([("one", 1), ("two", 2)])
    def test_sum(self, name, value): assert value
    @parameterized.expand([("one", 1)])
    def test_sum_of(self, name, value): assert value
    def test_9(self): pass
"""


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ('"A")]', '"B")]', {("TestRank_0", "test")}),
        ("2)]", "3)]", {("TestSums", "test_sum_1_two")}),
        ('("one", 1)])\n    def test_sum_of', '("one", 7)])\n    def test_sum_of', {("TestSums", "test_sum_of_0")}),
        ("def test_9", "def test_8", set()),
    ],
)
def test_what_a_decorator_made_consists_of_its_source(old: str, new: str, changed: set[tuple[str, ...]]) -> None:
    """In a file that changed elsewhere its tests are as before."""
    before, after = definitions_of(MADE.encode()), definitions_of(MADE.replace(old, new).encode())
    assert before is not None and after is not None
    tests = [("TestRank_0", "test"), ("TestSums", "test_sum_1_two"), ("TestSums", "test_sum_of_0")]
    prints = {test: [one.fingerprint(test, Naming()) for one in (before, after)] for test in tests}
    assert all(one is not None for both in prints.values() for one in both)
    assert {test for test, (one, other) in prints.items() if one != other} == changed
    for name in ("test_93", "test_summer", "test_sum_x", "TestRank_0"):
        assert before.fingerprint(("TestSums", name), Naming()) is None


def test_called_names_follow_helpers_but_not_set_up() -> None:
    found = definitions()
    assert found.called_names(PLAIN) == {"helper", "push", "first"}
    assert found.called_names(ONE) >= {"make", "second"}
    assert "first" not in found.called_names(ONE)
    assert "__contains__" in found.called_names(TWO)


def test_parameters_with_odd_characters_are_not_part_of_the_name() -> None:
    node = NodeId.parse("tests/test_x.py::TestA::test_b[a::b/c[0]-x]")
    assert node == NodeId("tests/test_x.py", ("TestA", "test_b"))


def test_a_circle_of_classes_ends() -> None:
    found = definitions("class A(B): ...\nclass B(A):\n    def test_x(self): ...\n")
    assert found.fingerprint(("A", "test_x"), Naming()) is not None
