"""Table `notices`: accepted tasks that were told to the webhook."""

from __future__ import annotations

from typing import ClassVar

from perfquarry.data.records.row import Row


class Notice(Row):
    """One task, told once: whatever accepts it again tells nobody."""

    TABLE: ClassVar[str] = "notices"
    KEY: ClassVar[tuple[str, ...]] = ("task_id",)

    task_id: str
