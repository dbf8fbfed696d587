"""What a check found, and the row of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow.compute as pc

from perfquarry.data.records import Finding, Severity, Stamp, Task
from perfquarry.data.store import TableStore

SCREENED = "screened"
"""The check of the row that says which checks were made: 'static' or 'run' as its subject."""
_EVIDENCE = 2000


@dataclass(frozen=True)
class FoundProblem:
    """A finding before it is a row."""

    check: str
    evidence: str
    subject: str = ""
    severity: Severity = "warning"
    details: Mapping[str, Any] = field(default_factory=dict)


def rows_of(task: Task, found: Iterable[FoundProblem], stamp: Stamp) -> list[Finding]:
    """Rows of what was found of a task, in order; of equal check and subject the first."""
    rows: dict[tuple[str, str], Finding] = {}
    for one in found:
        row = Finding(
            **stamp.fields(),
            task_id=task.task_id,
            change_id=task.change_id,
            check=one.check,
            subject=one.subject,
            severity=one.severity,
            evidence=one.evidence[:_EVIDENCE],
            details=json.dumps(one.details, sort_keys=True, ensure_ascii=False, default=str),
        )
        rows.setdefault((one.check, one.subject), row)
    return list(rows.values())


def screened(kind: str, checks: Iterable[str], **details: Any) -> FoundProblem:
    """The row that says that a task was screened: what is not found and was looked for."""
    names = list(checks)
    return FoundProblem(SCREENED, f"{kind} checks made: {', '.join(names)}", kind, "info", {"checks": names, **details})


def carried(rows: Iterable[Finding], of: str, stamp: Stamp) -> list[Finding]:
    """What the checks that run code found of a task, once more under a new stamp.

    `of` is what those checks looked at (`details["of"]` of their row 'screened'): findings on anything else are left
    out.
    """
    known = list(rows)
    ran = [(row, json.loads(row.details)) for row in known if (row.check, row.subject) == (SCREENED, "run")]
    same = [(row, facts) for row, facts in ran if facts.get("of") == of]
    if not same:
        return []
    newest, facts = max(same, key=lambda one: one[0].created_at)
    found = {(SCREENED, "run"), *map(tuple, facts["found"])}
    origin = (newest.stage_version, newest.config_hash)
    return [
        row.model_copy(update=stamp.fields())
        for row in known
        if (row.stage_version, row.config_hash) == origin and (row.check, row.subject) in found
    ]


def newest_screening(store: TableStore, repo: str) -> str | None:
    """Configuration hash that the findings of the newest screening share; None before the first."""
    made = store.scan(Finding, repo, columns=["config_hash", "created_at"], where=pc.field("check") == SCREENED)
    if not made.num_rows:
        return None
    return str(made.sort_by([("created_at", "descending")])["config_hash"][0].as_py())
