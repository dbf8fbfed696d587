"""Which of the tests that execute a change become workloads."""

from __future__ import annotations

import pytest

from perfquarry.data.records import Hit, Reason
from perfquarry.harness.contracts import ProbeItem
from perfquarry.testgen.candidates import Candidate, best, choose, choose_dense, within, without_slow, without_twins

FUNCTIONS = frozenset({"m.py::f", "m.py::g"})


def candidate(node: str, lines: list[int], seconds: float, **shares: float) -> Candidate:
    """`shares` by function name: share of the call's time spent there."""
    item = ProbeItem(
        node=node,
        outcome="passed",
        seconds=seconds,
        statistics={f"m.py::{name}": (1, 0.0, share * seconds) for name, share in shares.items()},
    )
    made = Candidate(node, [Hit(path="m.py", side="base", lines=lines)], {"base": item, "head": item})
    made.take_profile(item, FUNCTIONS)
    return made


def names(candidates: list[Candidate]) -> list[str]:
    return [one.node for one in candidates]


def test_a_test_that_spends_its_time_in_the_change_comes_before_one_that_executes_more_of_it() -> None:
    direct = candidate("t.py::test_direct", [1], 3e-5, f=0.9)
    through = candidate("t.py::test_server", [1, 2, 3], 2e-2, f=0.001)
    assert names(choose([through, direct], 2)) == ["t.py::test_direct", "t.py::test_server"]
    assert direct.may_gain
    assert not through.may_gain


def test_each_changed_function_gets_its_best_test_first() -> None:
    many = [candidate(f"t.py::test_f{number}", [1, 2], 1e-3, f=0.9, h=1.0) for number in range(5)]
    only = candidate("t.py::test_g", [3], 1e-3, g=0.1)
    assert "t.py::test_g" in names(choose([*many, only], 2))


def test_without_a_profile_lines_then_spread_then_length_decide() -> None:
    rows = [
        candidate("a.py::test_one[1]", [1, 2], 1e-3),
        candidate("a.py::test_one[2]", [1, 2], 2e-3),
        candidate("a.py::test_two", [1, 2], 1e-3),
        candidate("b.py::test_other", [1, 2], 1e-4),
        candidate("b.py::test_rest", [3], 1e-4),
        candidate("b.py::test_tiny", [1, 2, 3], 1e-6),
        candidate("c.py::test_long", [1], 30.0),
    ]
    order = names(choose(rows, 7))
    assert order[:2] == ["a.py::test_one[2]", "b.py::test_rest"]  # the longer of equals, then the line still missing
    assert order[2:5] == ["a.py::test_two", "b.py::test_other", "a.py::test_one[1]"]
    assert order[5:] == ["c.py::test_long", "b.py::test_tiny"]
    assert names(choose(rows, 1)) == order[:1]


def test_the_first_choice_of_many_keeps_short_tests() -> None:
    long = [candidate(f"a.py::test_{number}", [1, 2, 3], 1e-1) for number in range(10)]
    short = candidate("b.py::test_short", [1], 1e-4)
    chosen = names(choose_dense([*long, short], 4))
    assert "b.py::test_short" in chosen
    assert len(set(chosen)) == 4


def test_slow_tests_are_left_out_where_there_are_quick_ones() -> None:
    quick = [candidate(f"a.py::test_{number}", [1], 1e-3) for number in range(3)]
    slow = candidate("a.py::test_stress", [1, 2], 3.0)
    assert without_slow([*quick, slow], 1.0) == quick
    assert without_slow([*quick[:2], slow], 1.0) == [*quick[:2], slow]


def test_workloads_together_take_no_longer_than_measuring_them_may() -> None:
    rows = [candidate(f"t.py::{number}", [1], seconds) for number, seconds in enumerate((2.0, 0.9, 0.6, 0.5, 0.1))]
    assert names(within(rows, 1.5)) == ["t.py::0"]
    assert names(within(rows[1:], 1.5)) == ["t.py::1", "t.py::2"]
    assert names(within(rows[2:], 1.25)) == ["t.py::2", "t.py::3", "t.py::4"]
    assert within([], 1.0) == []


def test_of_native_changes_the_tests_of_the_python_twin_are_left_out() -> None:
    native = [
        "t.py::test_add[cs-c]",
        "t.py::TestIStr::test_upper",
        "t.py::test_copy[CIMultiDict]",
        "t.py::test_q[c_quoter]",
    ]
    pure = [
        "t.py::test_add[cs-py]",
        "t.py::TestPyIStr::test_upper",
        "t.py::test_copy[PyCIMultiDict]",
        "t.py::test_q[py_quoter]",
        "t.py::test_add[pure-python-module]",
    ]
    others = ["t.py::test_only[py]", "t.py::TestPyOther::test_a", "t.py::test_sizes[pyramid-3]", "t.py::test_sizes[1]"]
    rows = [candidate(node, [], 1e-4) for node in (*pure, *native, *others)]
    assert names(without_twins(rows)) == [*native, *others]


@pytest.mark.parametrize(
    ("base", "head", "reason"),
    [
        ("ppp", "ppp", None),
        ("fff", "fff", Reason.FAILS_ON_BASE),
        ("fff", "ppp", Reason.FAILS_ON_BASE),
        ("ppp", "fff", Reason.FAILS_ON_HEAD),
        ("ppp", "pfp", Reason.FLAKY),
        ("pfp", "ppp", Reason.FLAKY),
        ("pfp", "fff", Reason.FLAKY),
        ("ppt", "ppp", Reason.TEST_TIMEOUT),
        ("fft", "ppp", Reason.TEST_TIMEOUT),
    ],
)
def test_a_test_must_pass_every_time(base: str, head: str, reason: Reason | None) -> None:
    outcomes = {"p": "passed", "f": "failed", "t": "timeout"}

    def item(letter: str) -> ProbeItem:
        return ProbeItem.model_validate({"node": "t", "outcome": outcomes[letter], "message": letter})

    made = Candidate("t", [], {"base": item(base[0]), "head": item(head[0])})
    made.runs = {"base": [item(letter) for letter in base[1:]], "head": [item(letter) for letter in head[1:]]}
    made.settle()
    assert made.reason == reason
    assert made.is_checked == (reason is None)
    assert bool(made.detail) == (reason is not None)


def test_slow_tests_that_can_gain_little_are_left_out_beside_others() -> None:
    """Property tests of 0.9 and 0.6 s that spend 5 and 7 % of it in the change made one change last 15 minutes."""
    quick = [candidate(f"t.py::test_{number}", [1], 1e-4, f=0.8) for number in range(3)]
    slow = [candidate("t.py::test_all", [1], 0.9, g=0.05), candidate("t.py::test_some", [1], 0.5, g=0.07)]
    little = [candidate("t.py::test_few", [1], 0.15, f=0.1), candidate("t.py::test_again", [1], 0.1, f=0.06)]
    kept = names(best([*slow, *little, *quick], 12))
    assert kept[:3] == names(quick) and kept[3:] == ["t.py::test_few"]
    assert "t.py::test_some" in names(best([*slow, *little], 12)), "where nothing can gain more, they are kept"
    assert names(best([candidate("t.py::test_all", [1], 0.9)], 12)) == ["t.py::test_all"], "without a profile, too"
