"""What the home's tables say about one candidate, read when its page is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow.compute as pc

from perfquarry.curation.blocks import Session, runs_of
from perfquarry.curation.counts import counts_of
from perfquarry.curation.in_force import renewed, without_replaced
from perfquarry.curation.intents import intents_of
from perfquarry.curation.review.witness import decided, doubts
from perfquarry.curation.screening.found import SCREENED, newest_screening
from perfquarry.curation.screening.sources import test_source
from perfquarry.data.errors import GitFailed
from perfquarry.data.home import Home
from perfquarry.data.records import (
    Count,
    Evidence,
    Finding,
    Intent,
    Issue,
    Problem,
    Pull,
    Task,
    Timing,
    Verdict,
    Workload,
)
from perfquarry.data.store import TableStore
from perfquarry.harness.trees.clone_git import MissingObjects, git

CODE_BYTES = 64 * 1024
"""Longest code of a workload that is shown."""
_FILE_BYTES = 2 * 1024 * 1024
_KEPT = 64
"""Candidates whose timings are kept."""


@dataclass(frozen=True)
class Tried:
    """A workload of a candidate: what it is and what its timings show."""

    workload_id: str
    name: str
    source: str
    code: str
    role: str
    evidence: Evidence


@dataclass(frozen=True)
class Details:
    """A candidate in full, without its timings."""

    task: Task
    verdicts: list[Verdict]
    findings: list[Finding]
    workloads: list[Tried]
    """Those that were kept first."""
    pull: Pull | None
    issues: list[Issue]
    problems: list[Problem]
    counts: dict[str, Count]
    """The newest by workload_id."""
    intent: Intent | None = None
    """Whether its gain was meant, as it was found."""

    @property
    def doubts(self) -> list[str]:
        """Where clock and count disagree."""
        return doubts(self.counts.values(), decided(one.evidence for one in self.workloads))


class Tables:
    """Reads candidates; safe for several threads."""

    def __init__(self, home: Home, store: TableStore) -> None:
        self.home, self.store = home, store
        self._timings: dict[tuple[str, str, str], dict[str, tuple[Session, ...]]] = {}

    def details(self, repo: str, task_id: str, config_hash: str) -> Details | None:
        """A candidate of a decision; None where the tables no longer have it."""
        task = self.store.get(Task, repo, {"task_id": task_id}, config_hash=config_hash)
        if task is None:
            return None
        of_change = pc.field("change_id") == task.change_id
        verdicts = list(self.store.records(Verdict, repo, where=of_change))
        of_task = pc.field("task_id") == task_id
        screening = newest_screening(self.store, repo)
        findings = list(self.store.records(Finding, repo, config_hash=screening, where=of_task))
        numbers = [task.pull_number] if task.pull_number else []
        pulls = self._numbered(Pull, repo, numbers)
        return Details(
            task=task,
            verdicts=sorted(verdicts, key=lambda one: one.created_at, reverse=True),
            findings=sorted(
                (one for one in findings if one.check != SCREENED),
                key=lambda one: (_SEVERITY.index(one.severity), one.check, one.subject),
            ),
            workloads=self._workloads(task),
            pull=next(iter(pulls), None),
            issues=self._numbered(Issue, repo, task.issues),
            intent=intents_of(self.store, repo, [task]).get(task_id),
            problems=list(self.store.records(Problem, repo, where=of_task)),
            counts={name: row for name, row in counts_of(self.store, repo).items() if row.change_id == task.change_id},
        )

    def sessions(self, task: Task) -> dict[str, tuple[Session, ...]]:
        """Sessions of a candidate's workloads by workload_id: those of the machine its figures come from."""
        key = (task.repo, task.change_id, task.config_hash)
        known = self._timings.pop(key, None)
        if known is None:
            where = pc.field("change_id") == task.change_id
            rows = without_replaced(
                self.store.records(Timing, task.repo, where=where), renewed(self.store, task.repo, "measure")
            )
            known = {}
            for run in sorted(runs_of(rows), key=lambda run: (run.machine_id == task.machine_id, run.newest)):
                known[run.workload_id] = run.sessions
        self._timings[key] = known  # the one used last is the last
        for oldest in list(self._timings)[:-_KEPT]:
            self._timings.pop(oldest, None)
        return known

    def has_sessions(self, task: Task) -> bool:
        """Whether `sessions` answers at once."""
        return (task.repo, task.change_id, task.config_hash) in self._timings

    def forget(self) -> None:
        """Reads everything again from now on."""
        self._timings = {}

    def test_code(self, task: Task, node: str) -> str:
        """Text of a unit test at the base, decorators included; '' where the clone does not have it."""
        path, _, name = node.partition("::")
        clone = self.home.clone(task.repo)
        if not name or not clone.is_dir():
            return ""
        try:
            text = git(clone, "cat-file", "blob", f"{task.base_sha}:{path}")
        except (GitFailed, MissingObjects):
            return ""
        if len(text) > _FILE_BYTES:
            return ""
        source = text.decode("utf-8", "backslashreplace")
        inherited = f"::{name.partition('[')[0].rpartition('::')[2]}"
        return (test_source(source, node) or test_source(source, inherited))[:CODE_BYTES]

    def _workloads(self, task: Task) -> list[Tried]:
        of_change = pc.field("change_id") == task.change_id
        evidence = self.store.records(Evidence, task.repo, config_hash=task.config_hash, where=of_change)
        known = {row.workload_id: row for row in self.store.records(Workload, task.repo, where=of_change)}
        roles: dict[str, Literal["visible", "hidden"]] = {one.workload_id: one.role for one in task.workloads}
        tried = []
        for row in evidence:
            workload = known.get(row.workload_id)
            node = workload.node if workload else row.workload_id
            code = workload.code if workload else ""
            source = workload.source if workload else "unknown"
            role = roles.get(row.workload_id, workload.role if workload else "visible")
            tried.append(Tried(row.workload_id, node, source, code, role, row))
        return sorted(tried, key=lambda one: (one.evidence.status != "kept", -(one.evidence.speedup or 0), one.name))

    def _numbered(self, model: Any, repo: str, numbers: Sequence[int]) -> list[Any]:
        if not numbers or repo not in self.store.repositories(model):
            return []
        return list(self.store.records(model, repo, where=pc.field("number").isin(list(numbers))))


_SEVERITY = ("blocking", "warning", "info")
