"""Candidates of all repositories of a home, in the database: what the queue searches and sorts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow.compute as pc
from sqlalchemy import Engine, delete, insert, select, text

from perfquarry.curation.counts import counts_of
from perfquarry.curation.in_force import decisions_in_force
from perfquarry.curation.review.database import candidates
from perfquarry.curation.review.witness import decided, doubts
from perfquarry.curation.screening.found import SCREENED, newest_screening
from perfquarry.data.records import Count, Evidence, Finding, Reason, Task, content_id
from perfquarry.data.store import TableStore

NEAR = frozenset({
    Reason.NOT_SIGNIFICANT, Reason.NOT_CONFIRMED, Reason.UNSTABLE, Reason.UNDECIDED, Reason.MIXED,
    Reason.TOO_FEW_SAMPLES,
})  # fmt: skip
"""Reasons of candidates that show a gain and break one rule."""

_MESSAGE = 4000
"""Characters of a message that are searched."""
_SHOWN = (
    "task_id", "change_id", "config_hash", "status", "reason", "title", "pull_number", "speedup", "low", "high",
    "overall_speedup", "overall_low", "overall_high",
)  # fmt: skip
_COLUMNS = (
    *_SHOWN, "message", "created_at_commit", "head_sha", "base_sha", "patch", "oracle_targets", "workloads",
)  # fmt: skip


class Index:
    """Keeps table `candidates` in step with the home's tables.

    Args:
        engine: of `open_database`.
        store: the tables.
        near: whether rejected candidates near the threshold belong to the queue, and from which δ on those without
            an accepted gain do; None: only accepted ones.
    """

    def __init__(self, engine: Engine, store: TableStore, *, near: float | None = None) -> None:
        self.engine, self.store, self.near = engine, store, near

    def refresh(self, repo: str | None = None) -> int:
        """Reads the tables of one repository, or of all, again; returns the number of its candidates."""
        names = [repo] if repo else self.store.repositories(Task)
        rows = {name: list(self._rows(name)) for name in names}
        with self.engine.begin() as connection:
            if self.engine.dialect.name == "postgresql":  # another server may do the same
                connection.execute(text("LOCK TABLE candidates IN SHARE ROW EXCLUSIVE MODE"))
            older = delete(candidates)
            connection.execute(older.where(candidates.c.repo == repo) if repo else older)
            unique = {row["task_id"]: row for name in names for row in rows[name]}
            if unique:
                connection.execute(insert(candidates), list(unique.values()))
        return len(unique)

    def repositories(self) -> list[str]:
        """Names of the repositories with candidates."""
        with self.engine.connect() as connection:
            return list(connection.scalars(select(candidates.c.repo).distinct().order_by(candidates.c.repo)))

    def _rows(self, repo: str) -> Iterator[dict[str, Any]]:
        decisions = decisions_in_force(self.store, repo)
        found = self._findings(repo)
        counts: dict[str, list[Count]] = defaultdict(list)
        for row in counts_of(self.store, repo).values():
            counts[row.change_id].append(row)
        for decision in sorted(set(decisions.values())):
            changes = [change for change, its in decisions.items() if its == decision]
            faster = decided(self.store.records(Evidence, repo, config_hash=decision)) if counts else {}
            doubted = {change: len(doubts(counts[change], faster)) for change in changes if change in counts}
            yield from self._of_decision(repo, decision, changes, found, doubted)

    def _of_decision(
        self,
        repo: str,
        decision: str,
        changes: list[str],
        found: dict[str, Counter[str]],
        doubted: dict[str, int],
    ) -> Iterator[dict[str, Any]]:
        wanted = pc.field("status").isin(["kept"] if self.near is None else ["kept", "rejected"])
        wanted &= pc.field("change_id").isin(changes)
        best = self._best(repo, decision) if self.near is not None else {}
        table = self.store.scan(Task, repo, columns=_COLUMNS, config_hash=decision, where=wanted)
        for batch in table.to_batches(max_chunksize=500):
            for task in batch.to_pylist():
                figures = best.get(task["change_id"])
                if task["status"] == "rejected":
                    if figures is None or not self._is_near(task["reason"], figures["delta"]):
                        continue
                    task |= {name: figures[name] for name in ("speedup", "low", "high")}
                yield _row(repo, task, found[task["task_id"]], doubted.get(task["change_id"], 0))

    def _best(self, repo: str, decision: str) -> dict[str, dict[str, Any]]:
        """Of each change the figures of the workload that gains most."""
        columns = ["change_id", "speedup", "low", "high", "delta"]
        table = self.store.scan(Evidence, repo, columns=columns, config_hash=decision).sort_by("delta")
        return {row["change_id"]: row for row in table.to_pylist() if row["delta"] is not None}

    def _is_near(self, reason: str, delta: float) -> bool:
        return reason in NEAR or (reason == Reason.NO_GAIN and self.near is not None and delta >= self.near)

    def _findings(self, repo: str) -> dict[str, Counter[str]]:
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        screening = newest_screening(self.store, repo)
        table = self.store.scan(Finding, repo, columns=["task_id", "check", "severity"], config_hash=screening)
        for row in table.to_pylist():
            counts[row["task_id"]][row["severity"]] += row["check"] != SCREENED
        return counts


def _row(repo: str, task: dict[str, Any], found: Counter[str], doubted: int) -> dict[str, Any]:
    merged: datetime = task["created_at_commit"].astimezone(UTC)
    return {name: task[name] for name in _SHOWN} | {
        "repo": repo,
        "fingerprint": fingerprint_of(task),
        "workloads": len(task["workloads"]),
        "merged_at": merged.isoformat(),
        "blocking": found["blocking"],
        "warnings": found["warning"],
        "doubts": doubted,
        "search": _searched(repo, task),
        "by_speedup": -(task["speedup"] or 0.0),
        "by_date": -merged.timestamp(),
    }


def fingerprint_of(task: dict[str, Any]) -> str:
    """Content address of what a reviewer judges: the patch, the workloads and their times."""
    figures = [(one["workload_id"], one["base_seconds"], one["head_seconds"]) for one in task["workloads"]]
    return content_id(task["patch"], figures, task["status"], task["reason"], task["speedup"])


def _searched(repo: str, task: dict[str, Any]) -> str:
    words: Iterable[str] = (
        task["task_id"],
        repo,
        task["title"],
        task["message"][:_MESSAGE],
        task["head_sha"],
        task["base_sha"],
        f"#{task['pull_number']}" if task["pull_number"] else "",
        *task["oracle_targets"],
        *(one["code"][:200] for one in task["workloads"]),
    )
    return "\n".join(words).casefold().replace("\x00", "")
