"""Table `problems`: the texts that ask a solver to make something faster."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from perfquarry.data.records.row import Row

Setting = Literal["gso", "oracle", "realistic", "fuzzy", "plan"]


class Problem(Row):
    """One text of one task; rejected when it gives the answer away."""

    TABLE: ClassVar[str] = "problems"
    KEY: ClassVar[tuple[str, ...]] = ("task_id", "setting", "author")

    task_id: str
    change_id: str
    setting: Setting = Field(
        description="gso: a performance test as the target (GSO §3); oracle: the functions, realistic: the end-to-end "
        "tests (SWE-Perf §3); fuzzy: as a user would report it, no function named; "
        "plan: how the expert did it (GSO appendix H), for analysis, never shown to a solver."
    )
    author: str = Field(default="template", description="'template', or the model that wrote it.")
    text: str
    leaks: list[str] = Field(default_factory=list, description="Words and lines of the fix that the text contains.")
