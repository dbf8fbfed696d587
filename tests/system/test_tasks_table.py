"""The table of accepted tasks in a terminal of 80 columns."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from perfquarry.curation.facts import tasks_table
from tests.review_home import task_of


@pytest.mark.parametrize("speedup", [1.04, 43.21, 1234.0])
@pytest.mark.parametrize("counted", [False, True])
def test_both_speedups_stand_side_by_side_and_no_word_is_broken(speedup: float, counted: bool) -> None:
    name, title = "grantjenks__python-sortedcontainers-0123456789", "Keep free nodes in a heap, " * 5 + "always"
    task = task_of(1, speedup, task_id=name, title=title, overall_speedup=1.03)
    out = io.StringIO()
    Console(file=out, width=80).print(tasks_table([task], {name: 1.5} if counted else {}))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert f"  {name}" in [line.rstrip() for line in lines]
    assert set(title.split()) <= set(out.getvalue().split())
    [figures] = [line for line in lines if "1.03×" in line]
    assert figures.count("[") == figures.count("]") == 2 and ("1.50×" in figures) == counted
