"""The newest decision over a repository: it is made anew over all timings whenever some were added."""

from __future__ import annotations

from data.records import Task
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
