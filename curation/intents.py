"""What is said of tasks' intent in the tables: of several authors a model goes before the heuristic."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from perfquarry.data.records import Intent, Task
from perfquarry.data.records.intent import HEURISTIC
from perfquarry.data.store import TableStore


def intents_of(store: TableStore, repo: str, tasks: Iterable[Task]) -> dict[str, Intent]:
    """By task_id what is said of it: the newest of a model, else of the heuristic; tasks without a row are left out."""
    names = pa.array([task.task_id for task in tasks], pa.string())
    rows = store.records(Intent, repo, where=pc.field("task_id").isin(names))
    return {row.task_id: row for row in sorted(rows, key=lambda one: (one.author != HEURISTIC, one.created_at))}
