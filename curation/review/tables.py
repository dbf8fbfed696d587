"""What the home's tables say about one candidate, read when its page is asked for."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

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
from perfquarry.data.records import Count, Evidence, Finding, Intent, Problem, Row, Task, Timing, Verdict, Workload
from perfquarry.data.store import TableStore
from perfquarry.harness.trees.clone_git import MissingObjects, git

CODE_BYTES = 64 * 1024
"""Longest code of a workload that is shown."""
_FILE_BYTES = 2 * 1024 * 1024


class PullText(Row):
    """The columns of table `pulls` that the page shows."""

    TABLE: ClassVar[str] = "pulls"
    KEY: ClassVar[tuple[str, ...]] = ("number",)

    number: int
    title: str = ""
    body: str = ""
    state: str = ""
    author: str = ""


class IssueText(Row):
    """The columns of table `issues` that the page shows."""

    TABLE: ClassVar[str] = "issues"
    KEY: ClassVar[tuple[str, ...]] = ("number",)

    number: int
    title: str = ""
    body: str = ""
    state: str = ""


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
    pull: PullText | None
    issues: list[IssueText]
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
        self._timings = _Kept(64)

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
        pulls = self._numbered(PullText, repo, numbers)
        return Details(
            task=task,
            verdicts=sorted(verdicts, key=lambda one: one.created_at, reverse=True),
            findings=sorted(
                (one for one in findings if one.check != SCREENED),
                key=lambda one: (_SEVERITY.index(one.severity), one.check, one.subject),
            ),
            workloads=self._workloads(task),
            pull=next(iter(pulls), None),
            issues=self._numbered(IssueText, repo, task.issues),
            intent=intents_of(self.store, repo, [task]).get(task_id),
            problems=list(self.store.records(Problem, repo, where=of_task)),
            counts={name: row for name, row in counts_of(self.store, repo).items() if row.change_id == task.change_id},
        )

    def sessions(self, task: Task) -> dict[str, tuple[Session, ...]]:
        """Sessions of a candidate's workloads by workload_id: those of the machine its figures come from."""
        key = (task.repo, task.change_id, task.config_hash)
        known: dict[str, tuple[Session, ...]] | None = self._timings.get(key)
        if known is None:
            where = pc.field("change_id") == task.change_id
            rows = without_replaced(
                self.store.records(Timing, task.repo, where=where), renewed(self.store, task.repo, "measure")
            )
            known = {}
            for run in sorted(runs_of(rows), key=lambda run: (run.machine_id == task.machine_id, run.newest)):
                known[run.workload_id] = run.sessions
            self._timings.put(key, known)
        return known

    def has_sessions(self, task: Task) -> bool:
        """Whether `sessions` answers at once."""
        return self._timings.get((task.repo, task.change_id, task.config_hash)) is not None

    def forget(self) -> None:
        """Reads everything again from now on."""
        self._timings = _Kept(64)

    def test_code(self, task: Task, node: str) -> str:
        """Text of a unit test at the base, decorators included; '' where the clone cannot tell."""
        path, _, name = node.partition("::")
        clone = self.home.repositories / f"{task.repo}.git"
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


class _Kept:
    """The values used last, of any number of threads."""

    def __init__(self, size: int) -> None:
        self._size, self._lock = size, threading.Lock()
        self._values: OrderedDict[Any, Any] = OrderedDict()

    def get(self, key: Any) -> Any:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: Any, value: Any) -> None:
        with self._lock:
            self._values[key] = value
            while len(self._values) > self._size:
                self._values.popitem(last=False)
