"""Examples in docstrings, which pytest clears the names of after a run: timed, and in turns."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfquarry.data.records import Side
from perfquarry.harness.contracts import BuiltSide, Limits, ProbeRequest
from perfquarry.harness.probing.prober import Prober
from perfquarry.harness.sandbox import choose_sandbox
from tests.bare_python import bare_python

CORE = 'LIMIT = 3\n\ndef work(n):\n    """\n    >>> work(LIMIT)\n    3\n    """\n    return sum(range(n))\n'
TESTS = '"""\n>>> 1 + 1\n3\n"""\n\ndef test_it():\n    pass\n'
NODE = "pkg/core.py::pkg.core.work"


@pytest.fixture
def side(tmp_path: Path) -> BuiltSide:
    tree = tmp_path / "tree"
    (tree / "pkg").mkdir(parents=True)
    for name, text in {"pkg/__init__.py": "", "pkg/core.py": CORE, "test_it.py": TESTS}.items():
        (tree / name).write_text(text)
    base: Side = "base"
    return BuiltSide(base, "0", tree, bare_python(), "e", (tree,))


def test_examples_of_modules_without_tests_are_timed(tmp_path: Path, side: BuiltSide) -> None:
    prober = Prober(choose_sandbox(), tmp_path / "scratch")
    request = ProbeRequest(mode="time", arguments=[NODE, "test_it.py"], warmups=1, max_calls=5, min_timed_seconds=1.0)
    report = prober.run(side, request, limits=Limits(60.0))
    assert {item.node: item.outcome for item in report.items} == {NODE: "passed", "test_it.py::test_it": "passed"}
    assert all(item.calls == 5 for item in report.items)


def test_examples_take_turns(tmp_path: Path, side: BuiltSide) -> None:
    prober = Prober(choose_sandbox(), tmp_path / "scratch")
    request = ProbeRequest(mode="turns", arguments=[NODE], test_timeout=30.0)
    with prober.open(side, request, limits=Limits(60.0)) as partner:
        partner.ready()
        assert partner.kinds == {NODE: "test"}
        partner.warm(NODE, 3)
        assert all(call[0] > 0 for call in partner.turn(NODE, 0, [0.5] * 3))
