"""Tasks as the screening gets them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from perfquarry.data.records import Stamp, Task, workload_id_of
from perfquarry.data.records.task import TaskWorkload

STAMP = Stamp(repo="sample", stage_version="1", config_hash="c")
DAY = datetime(2020, 1, 1, tzinfo=UTC)
PATCH = """\
diff --git a/pkg/core.py b/pkg/core.py
--- a/pkg/core.py
+++ b/pkg/core.py
@@ -1,5 +1,5 @@
 def total(items):
-    result = 0
-    for item in items:
-        result += item
-    return result
+    table = fast_table(items)
+    for key in table:
+        table.consume(key)
+    return table.answer
"""


def workload(code: str = "tests/test_core.py::test_total", **fields: Any) -> TaskWorkload:
    values = {
        "workload_id": workload_id_of("c", "unit-test", code),
        "source": "unit-test",
        "code": code,
        "base_seconds": 0.02,
        "head_seconds": 0.01,
        "speedup": 2.0,
        "low": 1.9,
        "high": 2.1,
        "delta": 0.4,
        "p_value": 0.001,
        "q_value": 0.001,
    }
    return TaskWorkload.model_validate(values | fields)


def task(name: str = "a", day: int = 0, **fields: Any) -> Task:
    head = name * 40 if len(name) == 1 else name
    values = {
        **STAMP.fields(),
        "task_id": f"owner__sample-{head[:10]}",
        "change_id": f"change-{name}",
        "codebase": "owner/sample",
        "base_sha": "0" * 40,
        "head_sha": head,
        "created_at_commit": DAY + timedelta(days=day),
        "title": f"Sum {name} with a table",
        "message": f"Sum {name} with a table",
        "patch": PATCH,
        "python": "3.11.7",
        "licence": "MIT",
        "oracle_targets": ["pkg/core.py::total"],
        "realistic_targets": ["pkg/core.py::total"],
        "problem_oracle": "Make `total` in `pkg/core.py` faster.",
        "problem_realistic": "Calls of `total` in `pkg/core.py` are slow.",
        "workloads": [workload(), workload("tests/test_core.py::test_large", speedup=2.2)],
        "speedup": 2.1,
        "delta": 0.4,
        "lines_changed": 8,
        "files_changed": 1,
    }
    return Task.model_validate(values | fields)
