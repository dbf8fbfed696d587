"""Table `workloads`: one thing to time, or the reason why a change has none."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from perfquarry.data.records.row import Record, Row, Stamp, content_id

Source = Literal["unit-test", "asv", "generated", "replay"]
Role = Literal["visible", "hidden"]
"""visible: may be shown to who solves the task; hidden: only grades."""
DETAIL_CHARACTERS = 4096


class Hit(Record):
    """Changed lines of one file that a workload executes."""

    path: str
    side: Literal["base", "head"]
    lines: list[int]


class Workload(Row):
    """A workload of one change. A source without any for a change may have one rejected row with an empty `code`.

    Code of sources other than unit tests is a script: a text that defines the six functions of GSO's
    tests (`testgen.scripts`).
    """

    TABLE: ClassVar[str] = "workloads"
    KEY: ClassVar[tuple[str, ...]] = ("workload_id",)

    workload_id: str = Field(description="Content address of the change and the code (`workload_id_of`).")
    change_id: str
    source: Source
    code: str = Field(default="", description="Node id of a unit test, or the text of a script for other sources.")
    hits: list[Hit] = Field(default_factory=list)
    seconds: float | None = Field(default=None, description="One call on the base while it was selected, seconds.")
    share: float | None = Field(
        default=None, description="Largest share of a unit test's time on the base that a changed function took."
    )
    calls: list[str] = Field(
        default_factory=list,
        description="Realistic targets: 'path::Class.method' of the package that the workload calls directly.",
    )
    apis: list[str] = Field(
        default_factory=list,
        description="Public APIs that reach what the change touches, best first; equal in all kept rows of a change.",
    )
    detail: str = Field(default="", description="End of the output that explains a rejection, at most 4 KiB.")
    role: Role = "visible"
    tries: int = Field(default=1, description="Times it was tried; above 1 where a time limit ended the ones before.")
    round: int = Field(default=0, description="Round in which a model wrote it, from 1; 0: no model did.")

    @classmethod
    def of(
        cls, stamp: Stamp, change_id: str, source: Source, code: str = "", *,
        reason: str | None = None, detail: str = "", **columns: Any,
    ) -> Workload:  # fmt: skip
        """The row of a piece of code, rejected when there is a reason; `detail` is cut."""
        return cls(
            **stamp.fields(),
            workload_id=workload_id_of(change_id, source, code),
            change_id=change_id,
            source=source,
            code=code,
            status="kept" if reason is None else "rejected",
            reason=reason,
            detail=detail[:DETAIL_CHARACTERS],
            **columns,
        )

    @property
    def is_script(self) -> bool:
        """Whether `code` is the text of a script, not the node id of a unit test."""
        return self.source != "unit-test"

    @property
    def node(self) -> str:
        """What the probe, the schedule and reports call it: a unit test's node id, 'script-…' for scripts."""
        return node_of(self.source, self.code, self.workload_id)


def node_of(source: str, code: str, workload_id: str) -> str:
    """Name of a workload: the node id of a unit test, else 'script-' and the start of its `workload_id`."""
    return code if source == "unit-test" else f"script-{workload_id[:12]}"


def workload_id_of(change_id: str, source: str, code: str) -> str:
    """The `workload_id` of a piece of code for a change."""
    return content_id("workload", change_id, source, code)
