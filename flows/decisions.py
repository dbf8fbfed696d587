"""Decisions over a repository, made anew whenever timings were added, and what was said of their tasks."""

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


def in_force(store: TableStore, repo: str) -> dict[str, str]:
    """By change the configuration hash of the decision on its newest timings, the newest first (decision 0031)."""
    rows = store.scan(Task, repo, columns=["change_id", "config_hash", "measured_at", "created_at"]).to_pylist()
    rows.sort(key=lambda row: (row["measured_at"] or row["created_at"], row["created_at"]), reverse=True)
    found: dict[str, str] = {}
    for row in rows:
        found.setdefault(row["change_id"], row["config_hash"])
    return found


def newest_tasks(store: TableStore, repo: str) -> list[Task]:
    """Rows of the decisions in force, accepted and rejected: one of each change."""
    decisions = in_force(store, repo)
    rows = store.records(Task, repo, where=pc.field("config_hash").isin(sorted(set(decisions.values()))))
    return [row for row in rows if decisions[row.change_id] == row.config_hash]


def newest_findings(store: TableStore, repo: str) -> list[Finding]:
    """Rows of the newest screening; none before the first."""
    made = store.scan(Finding, repo, columns=["config_hash", "created_at"], where=pc.field("check") == "screened")
    if not made.num_rows:
        return []
    newest = str(made.sort_by([("created_at", "descending")])["config_hash"][0].as_py())
    return list(store.records(Finding, repo, config_hash=newest))


def newest_problems(store: TableStore, repo: str) -> list[Problem]:
    """Problem texts and plans of the tasks in force; of equal setting and author the newest."""
    tasks = {task.task_id for task in newest_tasks(store, repo) if task.status == "kept"}
    rows = {(row.task_id, row.setting, row.author): row for row in store.records(Problem, repo)}
    return [row for key, row in rows.items() if key[0] in tasks]
