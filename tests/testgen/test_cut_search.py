"""A search that is cut, and gone on with."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from two_trees import STAMP, TwoTrees

from perfquarry.data.records import Workload
from perfquarry.harness.contracts import Command, Completed
from perfquarry.harness.probing.known_reports import KnownReports
from perfquarry.harness.probing.prober import Prober
from perfquarry.harness.sandbox import choose_sandbox
from perfquarry.testgen.case import Case
from perfquarry.testgen.settings import GenerateSettings
from perfquarry.testgen.unit_tests import UnitTests
from tests.bare_python import bare_tools

BASE = {
    "lib.py": "def total(items):\n    found = 0\n    for item in items:\n        found += item\n    return found\n",
    "test_lib.py": "from lib import total\ndef test_total(): assert total([1, 2]) == 3\n",
}
HEAD = {"lib.py": "def total(items):\n    return sum(items)\n"}


@dataclass
class Cut:
    """A sandbox that counts its processes, and is interrupted once so many were begun."""

    inner: Any
    left: float = float("inf")
    begun: int = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def run(self, command: Command) -> Completed:
        if self.begun >= self.left:
            raise KeyboardInterrupt
        self.begun += 1
        return self.inner.run(command)


def search(trees: TwoTrees, sandbox: Cut, known: KnownReports | None) -> list[Workload]:
    prober = replace(trees.prober, sandbox=sandbox, known=known)
    base, head = trees.built["base"], trees.built["head"]
    settings = GenerateSettings(timeout=60.0, test_timeout=5.0)
    tools = dict.fromkeys(trees.built, bare_tools())
    return UnitTests().workloads(Case(trees.change, trees.verdict, base, head, prober, settings, STAMP, tools))


def test_a_search_that_was_cut_goes_on_where_it_was(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    trees = TwoTrees(tmp_path, BASE, HEAD, Prober(choose_sandbox(), tmp_path / "scratch"))
    whole = Cut(choose_sandbox())
    expected = search(trees, whole, None)
    assert [row.reason for row in expected] == [None] and whole.begun > 4

    known, cut = tmp_path / "known", Cut(choose_sandbox(), left=4)
    with pytest.raises(KeyboardInterrupt), ThreadPoolExecutor(1) as pool:
        pool.submit(search, trees, cut, KnownReports(known)).result()
    done, rest = len(list(known.iterdir())), Cut(choose_sandbox())
    found = search(trees, rest, KnownReports(known))
    assert 0 < done <= 4 and rest.begun == whole.begun - done
    assert [row.code for row in found] == [row.code for row in expected]
