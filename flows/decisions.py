"""Decisions over a repository, made anew whenever timings were added, and what was said of their tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from perfquarry.curation.screening.found import newest_screening
from perfquarry.data.records import Build, Finding, Problem, Task, Timing, Workload
from perfquarry.data.store import TableStore

R = TypeVar("R", Build, Finding, Timing, Workload)


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


def accepted_tasks(store: TableStore, repo: str) -> list[Task]:
    """Those that are accepted by the decisions in force."""
    return [task for task in newest_tasks(store, repo) if task.status == "kept"]


def made_of(store: TableStore, model: type[R], repo: str, tasks: Sequence[Task]) -> list[R]:
    """Rows of a table that tasks were decided on: a later run, with other settings say, may have written newer ones.

    Of each change the rows of that configuration which wrote the newest row before the change's last timing.
    """
    until = {task.change_id: task.measured_at or task.created_at for task in tasks}
    groups: dict[str, list[R]] = {}
    for row in store.records(model, repo, where=pc.field("change_id").isin(pa.array(until, pa.string()))):
        if row.created_at <= until[row.change_id]:
            groups.setdefault(row.change_id, []).append(row)
    return [row for group in groups.values() for row in _of_newest_origin(group)]


def _of_newest_origin(rows: Sequence[R]) -> list[R]:
    newest = max(rows, key=lambda row: row.created_at)
    origin = (newest.stage_version, newest.config_hash)
    return [row for row in rows if (row.stage_version, row.config_hash) == origin]


def newest_findings(store: TableStore, repo: str) -> list[Finding]:
    """Rows of the newest screening; none before the first."""
    screening = newest_screening(store, repo)
    return list(store.records(Finding, repo, config_hash=screening)) if screening else []


def newest_findings_of(store: TableStore, repo: str, tasks: Sequence[Task]) -> list[Finding]:
    """Of each of the tasks the rows of its newest screening, whether the newest of all looked at it or not."""
    groups: dict[str, list[Finding]] = {}
    names = pa.array([task.task_id for task in tasks], pa.string())
    for row in store.records(Finding, repo, where=pc.field("task_id").isin(names)):
        groups.setdefault(row.task_id, []).append(row)
    return [row for group in groups.values() for row in _of_newest_origin(group)]


def newest_problems(store: TableStore, repo: str) -> list[Problem]:
    """Problem texts and plans of the tasks in force; of equal setting and author the newest."""
    tasks = {task.task_id for task in newest_tasks(store, repo) if task.status == "kept"}
    rows = {(row.task_id, row.setting, row.author): row for row in store.records(Problem, repo)}
    return [row for key, row in rows.items() if key[0] in tasks]
