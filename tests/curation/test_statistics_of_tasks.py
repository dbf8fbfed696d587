"""Statistics of tasks, test files left out."""

from __future__ import annotations

import pytest
from sample_change import CHANGE
from screened_task import PATCH, task, workload

from perfquarry.curation.statistics_of_tasks import overview, profile_of
from perfquarry.data.records import FileChange

C_FILE = FileChange(path="pkg/fast.c", status="modified", added=1, deleted=1, role="source", language="c")
PYTHON = C_FILE.model_copy(update={"path": "pkg/core.py", "language": "python"})
TEST = PYTHON.model_copy(update={"path": "tests/test_core.py", "role": "test"})


def test_figures_of_a_task_and_their_overview() -> None:
    change = CHANGE.model_copy(update={"files": [PYTHON, PYTHON, C_FILE, TEST]})
    one = profile_of(task(), change, (10, 1000), depth=2)
    assert (one.hunks, one.lines, one.files, one.functions, one.languages) == (1, 8, 1, 1, ["python", "c"])
    assert one.base_seconds == pytest.approx(0.02) and one.depth == 2
    two = task("b", patch=PATCH * 2, workloads=[workload(base_seconds=0.04)], speedup=4.1, lines_changed=20)
    other = profile_of(two, change.model_copy(update={"files": [PYTHON]}), (20, 3000))
    lines = {(line.category, line.metric): line for line in overview([one, other])}
    assert lines["Size", "tasks"].mean == 2
    edited = lines["Expert patch", "lines edited"]
    assert (edited.mean, edited.median, edited.low, edited.high) == (14, 14, 8, 20)
    assert lines["Expert patch", "hunks"].high == 2
    assert lines["Codebase", "lines (non-test)"].mean == 2000
    assert lines["Performance", "speedup"].high == 4.1
    assert lines["Functions", "call depth"].mean == 2  # of those where it is known
    assert lines["Languages", "tasks with python"].mean == 2 and lines["Languages", "tasks with c"].mean == 1
    assert lines["Languages", "tasks with several"].mean == 1
    assert [line.metric for line in overview([])] == ["tasks"]
