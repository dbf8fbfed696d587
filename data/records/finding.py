"""Table `findings`: what screening has to say about one task."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from perfquarry.data.records.row import Row

Severity = Literal["info", "warning", "blocking"]


class Finding(Row):
    """One look of one check at one task. A check that found nothing leaves no row but that of `check` "screened"."""

    TABLE: ClassVar[str] = "findings"
    KEY: ClassVar[tuple[str, ...]] = ("task_id", "check", "subject")

    task_id: str
    change_id: str
    check: str = Field(description="Which check: 'near-duplicate', 'memo-survives', …; 'screened' when all were run.")
    subject: str = Field(default="", description="What it is about within the task: a workload, a file, another task.")
    severity: Severity = Field(default="info", description="blocking: no task until a curator says otherwise.")
    evidence: str = Field(description="In words, with figures and quotes, for a curator.")
    details: str = Field(default="{}", description="JSON: the same for machines.")
