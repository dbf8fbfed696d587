"""Edited expectations, in real files of two sides."""

from __future__ import annotations

from pathlib import Path

import pytest
from two_trees import change

from perfquarry.testgen.expectations import edited_expectations

BASE = "def test_work():\n    value = work(3)\n    assert value == [1, 2]\n    check(value)\n"
CASE = "class It(TestCase):\n    def test_it(self):\n        self.assertEqual(work(3), 'a')\n"


@pytest.mark.parametrize(
    ("base", "head", "edited"),
    [
        (BASE, BASE.replace("[1, 2]", "[1, 3]"), "test_work expects [1, 3], not [1, 2]"),
        (CASE, CASE.replace("'a'", "'b'"), "It.test_it expects 'b', not 'a'"),
        (BASE, BASE.replace("work(3)", "work(4)").replace("[1, 2]", "[1, 3]"), ""),  # another test altogether
        (BASE, BASE.replace("check(value)", "check(value, 2)"), ""),
        (BASE, BASE + "\ndef test_more():\n    assert work(1) == 2\n", ""),
        (BASE, BASE.replace("    value", "    'Says more.'\n    value", 1), ""),
        (BASE, "not python", ""),
    ],
)
def test_only_the_expected_value_was_edited(tmp_path: Path, base: str, head: str, edited: str) -> None:
    for side, text in (("base", base), ("head", head)):
        (tmp_path / side / "tests").mkdir(parents=True)
        (tmp_path / side / "tests" / "test_work.py").write_text(text)
    made = change({"tests/test_work.py": base}, {"tests/test_work.py": head})
    found = edited_expectations(made, tmp_path / "base", tmp_path / "head")
    assert [one.partition("::")[2] for one in found] == ([edited] if edited else [])
