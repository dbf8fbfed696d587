"""Functions altered in the process of the probe."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import pytest

from perfquarry.harness.contracts import Alteration, BuiltSide, Limits, ProbeItem, ProbeRequest, Sandbox
from perfquarry.harness.probing.prober import PROBE, Prober

CORE = """
import functools

class Base:
    def __init__(self, value):
        self.value = value
    def get(self):
        return self.value

class Box(Base):
    def get(self):
        return super().get() + 1
    @property
    def half(self):
        return self.value / 2
    @staticmethod
    def twice(value, *, times=2):
        return value * times
    @classmethod
    def of(cls, value):
        return cls(value)

@functools.lru_cache(None)
def cached(value):
    return [value]

def lazy(count):
    yield from range(count)

def seen(items, calls=[]):
    calls.append(len(items))
    return len(calls)

def quiet(items):
    items.append(1)
"""
NAMES = ("Box.get", "Box.half", "Box.twice", "Box.of", "cached", "lazy", "seen", "quiet", "nowhere", "Box")
TESTS = """
from pkg.core import Box, cached, lazy, quiet, seen

def test_box():
    assert (Box(1).get(), Box(3).half, Box.twice(2), Box.twice(2, times=3), Box.of(4).value) == (2, 1.5, 4, 6, 4)

def test_cached():
    assert cached(1) == [1]

def test_lazy():
    assert list(lazy(3)) == [0, 1, 2] == list(lazy(3))

def test_seen():
    assert seen([1]) != seen([1])

def test_quiet():
    quiet([])
"""


@pytest.fixture
def base(tmp_path: Path, bare_python: Path) -> BuiltSide:
    tree = tmp_path / "tree"
    for path, text in {"pkg/__init__.py": "", "pkg/core.py": CORE, "test_core.py": TESTS}.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)
    return BuiltSide("base", "0" * 40, tree, bare_python, "e", (tree,))


def altered(
    kind: Literal["count", "memo", "damage", "skip"], base: BuiltSide, sandbox: Sandbox, scratch: Path
) -> dict[str, ProbeItem]:
    request = ProbeRequest(
        mode="check",
        arguments=["test_core.py"],
        alteration=Alteration(kind=kind, functions=[f"pkg/core.py::{name}" for name in NAMES]),
    )
    report = Prober(sandbox, scratch).run(base, request, limits=Limits(wall_seconds=60.0))
    assert report.outcome == "finished", report.output
    return {item.node.partition("::")[2]: item for item in report.items}


PASSING = {
    "count": {"test_box", "test_cached", "test_lazy", "test_seen", "test_quiet"},
    "memo": {"test_box", "test_cached", "test_lazy", "test_quiet"},  # a generator is not kept, a list is a key
    "damage": {"test_seen", "test_quiet"},  # changed alike, they still differ; nothing to be changed
    "skip": {"test_quiet"},  # it checks nothing
}


@pytest.mark.parametrize("kind", PASSING)
def test_kinds(
    kind: Literal["count", "memo", "damage", "skip"], base: BuiltSide, sandbox: Sandbox, tmp_path: Path
) -> None:
    items = altered(kind, base, sandbox, tmp_path / "scratch")
    assert {name for name, item in items.items() if item.outcome == "passed"} == PASSING[kind]
    if kind == "count":
        calls = items["test_box"].altered
        assert calls == {f"pkg/core.py::Box.{name}": (2 if name == "twice" else 1, 0) for name in NAMES_OF_BOX}
        assert items["test_cached"].altered == {"pkg/core.py::cached": (1, 0)}
    if kind == "memo":
        assert items["test_seen"].altered == {"pkg/core.py::seen": (2, 1)}
    if kind == "skip":
        assert items["test_quiet"].altered == {"pkg/core.py::quiet": (1, 1)}


NAMES_OF_BOX = ("get", "half", "twice", "of")


def test_keys_are_equal_for_equal_arguments_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PROBE.parent))
    from perfquarry_alter import Unknown, key_of  # type: ignore[import-not-found]

    assert key_of([1, {"a": {2}}]) == key_of([1, {"a": {2}}])
    different = [1, 1.0, True, "1", b"1", (1,), [1], {1}, frozenset([1]), {1: 1}, None, bytearray(b"1")]
    assert len({key_of(one) for one in different}) == len(different)
    box = object()
    assert key_of(box) == key_of(box) != key_of(object())

    class Mutable:
        def __eq__(self, other: object) -> bool:
            return True

    with pytest.raises(Unknown):
        key_of([Mutable()])
    assert "perfquarry_alter" in sys.modules
