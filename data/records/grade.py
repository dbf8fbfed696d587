"""Table `grades`: one patch of a model, graded against one task."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from perfquarry.data.records.row import Record, Row
from perfquarry.data.records.timing import Machine

Comparison = Literal["better", "equal", "worse", "undecided"]


class GradedWorkload(Record):
    """One workload of a grading, over all pairs of processes."""

    node: str = Field(description="Node id of a unit test, or the name of a script.")
    hidden: bool = Field(description="Whether no solver saw it.")
    clock: str = Field(
        description="outside: the grader's clock decides; in-process: the candidate's own process reports its time."
    )
    data: str = Field(description="drawn: inputs that nobody knows before; fixed: always the same.")
    speedup: float = Field(description="Base time over the candidate's: median of the pairs.")
    expert_speedup: float = Field(description="Base time over the expert's: median of the same pairs.")
    delta: float = Field(description="δ of the candidate over the base: smallest significant gain (SWE-Perf).")
    expert_delta: float = Field(description="δ of the expert over the base, from the same pairs.")


class Grade(Row):
    """`kept`: rewarded (correct, faster than the base, and at least 95 % of the expert's speedup); else `reason`."""

    TABLE: ClassVar[str] = "grades"
    KEY: ClassVar[tuple[str, ...]] = ("task_id", "model", "attempt")

    dataset: str = Field(description="Name and version of the dataset, and the content address of its tasks.")
    task_id: str = Field(description="The task (`instance_id` of the prediction).")
    model: str = Field(description="`model_name_or_path` of the prediction.")
    attempt: int = Field(description="Number of the model's attempt at the task, from 1.")
    patch: str = Field(description="The model's patch as it was given.")
    patch_id: str = Field(description="Content address of the patch.")
    applied: bool = Field(description="Whether the patch applies to the base and changes the package (tier Apply).")
    correct: bool | None = Field(
        description="Whether tests pass and results equal the base's (tier Correctness); null: not graded."
    )
    against_expert: Comparison = Field(
        description="better: the whole interval of `of_expert` is above 1; equal: above 0.95; worse: below 0.95, or "
        "not correct, or contradicted by the clocks outside; undecided: none of these."
    )
    speedup: float | None = Field(default=None, description="Harmonic mean over workloads of base over candidate time.")
    low: float | None = Field(default=None, description="95 % interval of `speedup`, over pairs.")
    high: float | None = Field(default=None, description="Its other end.")
    expert_speedup: float | None = Field(default=None, description="The expert's in the same pairs.")
    expert_low: float | None = Field(default=None, description="95 % interval of `expert_speedup`.")
    expert_high: float | None = Field(default=None, description="Its other end.")
    of_expert: float | None = Field(default=None, description="The candidate's speedup over the expert's (GSO's Opt).")
    of_expert_low: float | None = Field(default=None, description="95 % interval of `of_expert`.")
    of_expert_high: float | None = Field(default=None, description="Its other end.")
    of_expert_hidden: float | None = Field(default=None, description="The same of the hidden workloads alone.")
    delta: float = Field(default=0.0, description="Mean δ over the workloads; 0 where it is not correct (SWE-Perf).")
    expert_delta: float | None = Field(default=None, description="The same of the expert, from the same pairs.")
    workloads: list[GradedWorkload] = Field(default_factory=list, description="What was timed.")
    pairs: str = Field(default="[]", description="JSON: the values of each pair of processes, as in `grading.json`.")
    undecided_at_95: bool = Field(default=False, description="The middle of an interval decided, not its end.")
    noisy: bool = Field(default=False, description="The base differs from its own copy by more than 2 %.")
    why: str = Field(default="", description="The verdict in words.")
    reasons_to_look: list[str] = Field(
        default_factory=list, description="'path: name' that cheats need, and honest code uses, too: never a verdict."
    )
    left_out: list[str] = Field(default_factory=list, description="'path: why' of changed files that were not taken.")
    tries: int = Field(default=1, description="Gradings that were begun; more than 1 after faults of the machine.")
    seconds: float = Field(default=0.0, description="Wall time of the grading.")
    python: str = Field(default="", description="Version of the interpreter.")
    machine: Machine | None = Field(default=None, description="The machine; null where nothing was run.")
