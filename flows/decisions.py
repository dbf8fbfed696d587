"""The newest decision over a repository, made anew whenever timings were added, and what was said of its tasks."""

from __future__ import annotations

import pyarrow.compute as pc

from data.records import Finding, Problem, Task
from data.store import TableStore


def newest_decision(store: TableStore, repo: str) -> str | None:
    """Configuration hash that the rows of the newest decision share; None before the first."""
    table = store.scan(Task, repo, columns=["config_hash", "created_at"])
    if not table.num_rows:
        return None
    return str(table.sort_by([("created_at", "descending")])["config_hash"][0].as_py())


def newest_tasks(store: TableStore, repo: str) -> list[Task]:
    """Rows of the newest decision, accepted and rejected."""
    newest = newest_decision(store, repo)
    return list(store.records(Task, repo, config_hash=newest)) if newest else []


def newest_findings(store: TableStore, repo: str) -> list[Finding]:
    """Rows of the newest screening; none before the first."""
    made = store.scan(Finding, repo, columns=["config_hash", "created_at"], where=pc.field("check") == "screened")
    if not made.num_rows:
        return []
    newest = str(made.sort_by([("created_at", "descending")])["config_hash"][0].as_py())
    return list(store.records(Finding, repo, config_hash=newest))


def newest_problems(store: TableStore, repo: str) -> list[Problem]:
    """Problem texts and plans of the tasks of the newest decision; of equal setting and author the newest."""
    tasks = {task.task_id for task in newest_tasks(store, repo) if task.status == "kept"}
    rows = {(row.task_id, row.setting, row.author): row for row in store.records(Problem, repo)}
    return [row for key, row in rows.items() if key[0] in tasks]
