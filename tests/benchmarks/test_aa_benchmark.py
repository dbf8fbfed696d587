"""Packages with known gains, the section that is made of their timings, and the plots."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.aa_packages import GAINS, KINDS, SIZES, known_nodes, with_known_gains
from benchmarks.charts import line_plot
from benchmarks.report import table
from perfquarry.harness.contracts import BuiltSide
from tests.bare_python import bare_python
from tests.drawn import Drawn


def built(tree: Path) -> BuiltSide:
    return BuiltSide("base", "0" * 40, tree, bare_python(), "environment", (tree,))


def test_the_package_has_the_tests_that_are_asked_for(tmp_path: Path) -> None:
    base, head = with_known_gains(built(tmp_path), tmp_path)
    assert len(str(base.tree)) == len(str(head.tree))
    for side in (base, head):
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", str(side.tree)]
        listed = subprocess.run(
            [*command, f"--rootdir={side.tree}"], cwd=side.tree, capture_output=True, text=True, check=True
        )
        assert set(known_nodes()) <= set(listed.stdout.splitlines())
    assert len(known_nodes()) == len(KINDS) * len(GAINS) * len(SIZES)


def test_only_the_head_does_less_and_exactly_so_much(tmp_path: Path) -> None:
    amounts = []
    for side in with_known_gains(built(tmp_path), tmp_path):
        names: dict[str, object] = {}
        exec((side.tree / "test_known.py").read_text(), names)
        amount = names["amount"]
        assert callable(amount)
        amounts.append([amount(gain, 100) for gain in GAINS])
    assert amounts[0] == [100] * len(GAINS)
    assert amounts[1] == [round(100 * (1 - gain)) for gain in GAINS]


def test_a_plot_has_a_line_for_each_series(tmp_path: Path) -> None:
    shown = line_plot("p", "Title", {"a": [(0, 0), (1, 1)], "b": [(0, 1)]}, ("x", "y"), ([0, 1], [0, 1]), tmp_path)
    assert shown == "![Title](plots/p.svg)"
    plot = Drawn((tmp_path / "p.svg").read_text())
    assert [len(plot.marks(name)) for name in ("line-1", "line-2")] == [2, 1]
    assert {"Title", "x", "y", "a", "b", "0", "1"} <= set(plot.texts)


def test_a_table_is_markdown() -> None:
    assert table(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"
