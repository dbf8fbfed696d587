"""Table `revalidations`: a published task measured again, here and now."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from perfquarry.data.records.row import Record, Row
from perfquarry.data.records.timing import Machine


class RevalidatedWorkload(Record):
    """One published workload, measured again by the rules that accepted it."""

    workload_id: str = Field(description="As in `tasks.workloads`.")
    node: str = Field(description="Node id of a unit test, or the name of a script.")
    held: bool = Field(description="Whether the gain is certain here, and its interval meets the published one.")
    reason: str | None = Field(default=None, description="Why it does not hold; undecided: too wide an interval.")
    published: float = Field(description="Published speedup.")
    speedup: float | None = Field(default=None, description="Base time over the expert's time, here.")
    low: float | None = Field(default=None, description="95 % interval of `speedup`, on any occasion.")
    high: float | None = Field(default=None, description="Its other end.")
    delta: float | None = Field(default=None, description="Smallest gain that is still significant, here.")


class Revalidation(Row):
    """`kept`: every published workload holds; else `reason` is that of the first that does not."""

    TABLE: ClassVar[str] = "revalidations"
    KEY: ClassVar[tuple[str, ...]] = ("task_id", "run_id")

    task_id: str = Field(description="The published task.")
    change_id: str = Field(description="The change it was made from.")
    run_id: str = Field(description="Equal for the tasks of one revalidation.")
    published_speedup: float | None = Field(
        default=None, description="Harmonic mean over the workloads, with interval."
    )
    published_low: float | None = Field(default=None, description="95 % interval of `published_speedup`.")
    published_high: float | None = Field(default=None, description="95 % interval of `published_speedup`.")
    speedup: float | None = Field(default=None, description="The same here; null where a workload has no figure.")
    low: float | None = Field(default=None, description="95 % interval of `speedup`.")
    high: float | None = Field(default=None, description="95 % interval of `speedup`.")
    workloads: list[RevalidatedWorkload] = Field(default_factory=list, description="The published workloads.")
    durations: str = Field(default="[]", description="JSON, as `tasks.durations`: block values, a session an element.")
    foreign_load: float = Field(
        default=0.0, description="Median over the blocks: CPU seconds per second of others on the core."
    )
    disturbed: float = Field(default=0.0, description="Share of the processes in blocks that others disturbed.")
    python: str = Field(description="Version of the interpreter used here.")
    machine: Machine = Field(description="The machine it was measured on.")
    seconds: float = Field(description="Wall time of the measurement.")
