"""Table `notices`: accepted tasks that were reported to the webhook."""

from __future__ import annotations

from typing import ClassVar

from perfquarry.data.records.row import Row


class Notice(Row):
    """One task, reported once: when it is accepted again, nothing is sent."""

    TABLE: ClassVar[str] = "notices"
    KEY: ClassVar[tuple[str, ...]] = ("task_id",)

    task_id: str
