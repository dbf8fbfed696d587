"""Table `renewals`: wishes to do a stage once more for one change."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from perfquarry.data.records.row import Row


class Renewal(Row):
    """From `created_at` on the stage has the change to do again; the newest wish counts.

    Rows that the stage wrote for the change before stay in their table. Timings from before stop to
    count when newer ones are there; workloads from before go on counting beside the newer ones.
    """

    TABLE: ClassVar[str] = "renewals"
    KEY: ClassVar[tuple[str, ...]] = ("change_id", "stage", "wished_by")

    change_id: str
    stage: Literal["generate", "measure"]
    wished_by: str = Field(description="Event of the review log (`uid`), or who else wished it.")
    sources: list[str] = Field(default_factory=list, description="generate: sources to ask beside the settings'.")
