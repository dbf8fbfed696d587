"""What scripts of replayed calls contain: larger arguments, and views of results."""

from __future__ import annotations

import json
import runpy
from collections import Counter, OrderedDict, deque
from pathlib import Path
from typing import Any

import pytest

from perfquarry.harness.probing.prober import PROBE

LONGER: dict[str, Any] = runpy.run_path(str(PROBE.parent / "perfquarry_longer.py"))
VIEW: dict[str, Any] = runpy.run_path(str(PROBE.parent / "perfquarry_view.py"))
longer, stretched = LONGER["longer"], LONGER["stretched"]


def view(value: object) -> object:
    """Through JSON, as results are stored."""
    return json.loads(json.dumps(VIEW["View"]().of(value)))


@pytest.mark.parametrize(
    ("value", "larger"),
    [
        ([1, 2, 3], [1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ([3, 1], [3, 1, 6, 4, 9, 7]),
        ([1, 1, 2], [1, 1, 1, 1, 1, 1, 2, 2, 2]),
        ([2, 1, 2], [2, 1, 2] * 3),
        ([True, None], [True, None] * 3),
        ([(1, 3), (4, 5)], [(1, 3), (4, 5), (6, 8), (9, 10), (11, 13), (14, 15)]),
        (("b", "a"), ("b", "a", "bb", "ab", "bc", "ac")),
        (["a", "b"], ["a", "ab", "ac", "b", "bb", "bc"]),
        (["7", "5"], ["7", "5", "71", "51", "72", "52"]),
        ({1, 2}, {1, 2, 3, 4, 5, 6}),
        (frozenset({"x"}), frozenset({"x", "xb", "xc"})),
        ({"k": 1}, {"k": 1, "kb": 1, "kc": 1}),
        (deque([1], 5), deque([1, 2, 3], 5)),
        (range(0, 10, 5), range(0, 30, 5)),
        (range(4, 0, -2), range(4, -8, -2)),
        ([[2, 1]], [[2, 1], [4, 3], [6, 5]]),
        ("a b", "a b a b a b"),
        ("A: 1\r\nB: 2\r\n", "A: 1\r\nB: 2\r\n" * 3),
        ("a=1; b=2", "a=1; b=2; a=1; b=2; a=1; b=2"),
        (b"ab", b"ababab"),
        ("", ""),
    ],
)
def test_larger_values_keep_their_shape(value: Any, larger: Any) -> None:
    found = longer(value, 3)
    assert found == larger
    assert type(found) is type(value)
    assert getattr(found, "maxlen", 5) == 5
    assert longer(value, 1) == value


@pytest.mark.parametrize(
    ("text", "larger"),
    [
        ('name="a;b"; x="yy"', 'name="a;ba;b"; x="yy"'),
        ('a="\\"q"', 'a="\\"q\\"q"'),
        ("key=value; k=v", "key=valuevalue; k=v"),
        ("  ", "    "),
        (b"a-b c", b"a-ba-b c"),
    ],
)
def test_stretched_texts_keep_what_is_around(text: Any, larger: Any) -> None:
    assert stretched(text, 2) == larger


class Plain:
    def __init__(self) -> None:
        self.shown, self._hidden = [1], 2


class Described(Plain):
    def __repr__(self) -> str:
        return "described"


def test_views_are_equal_for_equal_values() -> None:
    assert view({"a": 1, "b": {2, 1}}) == view({"b": {1, 2}, "a": 1})
    assert view(Counter("aab")) == view(Counter("baa"))
    assert view(Plain()) == {"Plain": [{"shown": ["list", 1]}, ""]}
    assert view(Described()) == {"Described": [{"shown": ["list", 1]}, "described"]}
    same = VIEW["same"]
    assert same(view([0.1 + 0.2, 1]), view([0.3, 1]))
    assert same(view(float("nan")), view(float("nan")))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        ("1", 1),
        (b"a", "a"),
        ([1], (1,)),
        ({1: 2}, {"1": 2}),
        ([1, 2], [2, 1]),
        (OrderedDict(a=1, b=2), OrderedDict(b=2, a=1)),
        (1.0, 1.0001),
        (float("inf"), float("-inf")),
        (Plain(), Described()),
        (Path("a"), Path("b")),
        (len, abs),
        ([[]], [[[]]]),
    ],
)
def test_views_are_different_for_different_values(one: object, other: object) -> None:
    assert not VIEW["same"](view(one), view(other))


def test_results_too_large_or_deep_to_compare_are_refused() -> None:
    nested: list[Any] = []
    nested.append(nested)
    for value in (nested, list(range(VIEW["NODES"]))):
        with pytest.raises(ValueError, match="too large"):
            view(value)
