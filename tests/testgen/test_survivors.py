"""Which usable scripts are kept, in what order, and which stay hidden."""

from __future__ import annotations

from perfquarry.data.records import Hit, Reason
from perfquarry.testgen.scripts import Script
from perfquarry.testgen.survivors import choose, input_of, roles_of, shape_of
from perfquarry.testgen.trials import Trial

SCRIPT = '''"""{about}"""
import random

SIZE = {size}


def setup():
    chance = random.Random({seed})
    return [chance.random() for _ in range(SIZE)]


def experiment(data):
    """Calls it."""
    return pkg.{function}(data)


def run_test(eqcheck=False, reference=False, prefix=""):
    return {harness}
'''


def code(function: str = "walk", size: int = 10, seed: int = 1, about: str = "", harness: str = "0.0") -> str:
    return SCRIPT.format(function=function, size=size, seed=seed, about=about, harness=harness)


def trial(text: str, lines: list[int], seconds: float = 0.01, calls: tuple[str, ...] = ()) -> Trial:
    hits = [Hit(path="pkg.py", side="base", lines=lines)]
    return Trial(Script(text, "generated", text[-40:]), None, "", hits, seconds, list(calls))


def test_what_differs_in_literals_only_and_executes_the_same_is_a_duplicate() -> None:
    first, again = trial(code(), [1, 2]), trial(code(size=999, seed=3, about="larger", harness="sum([1.0])"), [1, 2])
    elsewhere, other = trial(code(size=7), [1, 2, 3]), trial(code("leap"), [1, 2])
    rows = choose([first, again, elsewhere, other], wanted=5)
    assert [(row.script, row.reason) for row in rows[-1:]] == [(again.script, Reason.DUPLICATE)]
    assert {row.script for row in rows if row.reason is None} == {first.script, elsewhere.script, other.script}
    assert shape_of(code(size=1, about="x")) == shape_of(code(size=2)) != shape_of(code("leap"))


def test_new_lines_first_then_what_is_least_alike_and_the_rest_is_surplus() -> None:
    few, most = trial(code("few"), [1]), trial(code("most"), [1, 2, 3])
    like = trial(code("most").replace("pkg.most(data)", "list(pkg.most(data))"), [1, 2, 3])
    unlike = trial(
        "def setup():\n    return {'a': 'b'}\n\n\ndef experiment(tree):\n    return pkg.leaf(tree)\n",
        [1, 2],
        0.4,
        ("leaf",),
    )
    new = trial(code("new"), [4])
    rows = choose([few, like, most, unlike, new], wanted=3)
    assert [row.script for row in rows[:3]] == [like.script, new.script, unlike.script]
    assert {row.reason for row in rows[3:]} == {Reason.SURPLUS}
    assert choose([few, like, most, unlike, new], wanted=3) == rows


def test_rejected_ones_stay_rejected_and_in_their_order() -> None:
    bad = Trial(Script("def", "generated"), Reason.UNPARSABLE, "line 1")
    worse = Trial(Script("x", "generated"), Reason.CONTRACT_BROKEN)
    good = trial(code(), [1])
    assert choose([bad, good, worse], wanted=2) == [good, bad, worse]
    assert choose([], wanted=2) == []


def test_hidden_tests_have_other_inputs_than_the_visible_ones() -> None:
    codes = [code(f"f{letter}", size=size) for letter, size in zip("abcde", (1, 2, 3, 1, 1), strict=True)]
    for change in ("one", "two", "three", "four", "five", "six"):
        roles = roles_of(change, codes, held_out=3)
        shown = {input_of(one) for one, role in zip(codes, roles, strict=True) if role == "visible"}
        hidden = {input_of(one) for one, role in zip(codes, roles, strict=True) if role == "hidden"}
        assert shown and not shown & hidden
        assert roles.count("hidden") <= 3
    alike = [code("a"), code("b")]
    assert roles_of("one", alike, held_out=1) == ["visible", "visible"]


def test_who_is_visible_is_drawn_by_change_before_anything_is_timed() -> None:
    codes = [code(size=size) for size in range(4)]
    drawn = [tuple(roles_of(f"change{number}", codes, held_out=3)) for number in range(60)]
    assert len(set(drawn)) == 4, "each of them is the visible one of some change"
    assert all(roles.count("visible") == 1 for roles in drawn)
    assert roles_of("change0", codes[::-1], held_out=3) == list(drawn[0][::-1]), "the order of quality plays no part"
    assert roles_of("change0", codes[:1], held_out=3) == ["visible"]
    assert roles_of("change0", [], held_out=3) == []
