"""Table `workloads`: one thing to time, or the reason why a change has none."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from data.records.row import Record, Row, content_id

Source = Literal["unit-test", "asv", "generated", "replay"]


class Hit(Record):
    """Changed lines of one file that a workload executes."""

    path: str
    side: Literal["base", "head"]
    lines: list[int]


class Workload(Row):
    """A workload of one change. A change without any has one rejected row with an empty `code`."""

    TABLE: ClassVar[str] = "workloads"
    KEY: ClassVar[tuple[str, ...]] = ("workload_id",)

    workload_id: str = Field(description="Content address of the change and the code (`workload_id_of`).")
    change_id: str
    source: Source
    code: str = Field(default="", description="Node id of a unit test, or the code itself for other sources.")
    hits: list[Hit] = Field(default_factory=list)
    seconds: float | None = Field(default=None, description="One call on the base while it was selected, seconds.")
    calls: list[str] = Field(
        default_factory=list,
        description="Realistic targets: 'path::Class.method' of the package that the workload calls directly.",
    )
    detail: str = Field(default="", description="End of the output that explains a rejection, at most 4 KiB.")


def workload_id_of(change_id: str, source: str, code: str) -> str:
    """The `workload_id` of a piece of code for a change."""
    return content_id("workload", change_id, source, code)
