"""Tasks that the grader of a Harbor folder could not guard."""

from __future__ import annotations

import pytest

from perfquarry.curation.release.harbor_folders import not_gradable
from perfquarry.data.records import Task
from perfquarry.data.records.task import TaskWorkload

PATCH = "diff --git a/{0} b/{0}\n--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-a\n+b\n"


@pytest.mark.parametrize(
    ("changed", "node", "why"),
    [
        ("lib/core.py", "tests/test_core.py::test_it", ""),
        ("lib/core.py", "lib/core.py::lib.core.work", "docstrings of the files to be changed"),
        ("lib/core.py", "lib/more.py::lib.more.work", ""),
        ("testing/core.py", "checks/test_core.py::test_it", "testing/core.py for a test"),
    ],
)
def test_what_a_solver_could_edit_or_the_grader_would_restore(changed: str, node: str, why: str) -> None:
    workload = TaskWorkload.model_construct(code=node, source="unit-test")
    task = Task.model_construct(patch=PATCH.format(changed), workloads=[workload])
    assert why in not_gradable(task) and bool(why) == bool(not_gradable(task))
