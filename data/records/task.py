"""Table `tasks`: one finished task, or the reason why a measured change is none."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from pydantic import Field

from perfquarry.data.records.row import Record, Row
from perfquarry.data.records.workload import Role, node_of


class TaskWorkload(Record):
    """One workload of a task with its published figures."""

    workload_id: str = Field(description="Content address of the change and the code.")
    source: str = Field(description="unit-test, asv, generated or replay.")
    code: str = Field(description="Node id of a unit test, or the text of a script.")
    base_seconds: float = Field(description="Median of the base in the confirming session, seconds.")
    head_seconds: float = Field(description="Median of the head in the confirming session, seconds.")
    speedup: float = Field(description="Base time over head time, confirming session.")
    low: float = Field(description="Lower end of the 95 % interval of `speedup`, on any occasion.")
    high: float = Field(description="Upper end of the same.")
    delta: float = Field(description="δ: smallest statistically significant gain (SWE-Perf, Algorithm 1).")
    p_value: float = Field(description="One-sided Mann-Whitney U of the selecting session.")
    q_value: float = Field(description="Benjamini-Hochberg over all workloads of the repository.")
    aa_delta: float | None = Field(default=None, description="δ of base against base, the larger direction.")
    margin: float | None = Field(default=None, description="Effect over the spread of base against base.")
    calls: list[str] = Field(default_factory=list, description="Realistic targets of this workload.")
    role: Role = Field(default="visible", description="visible: may be shown to the solver; hidden: only grades.")

    @property
    def node(self) -> str:
        """What timings and reports call it (`Workload.node`)."""
        return node_of(self.source, self.code, self.workload_id)


class Task(Row):
    """A change that is a verified improvement: what an agent gets, what grades it, what the expert reached.

    The columns of GSO's and SWE-Perf's datasets are derived from these
    (`curation.formats`); none of them needs another source.
    """

    TABLE: ClassVar[str] = "tasks"
    KEY: ClassVar[tuple[str, ...]] = ("task_id",)

    task_id: str = Field(description="'owner__name-<first 10 digits of the head>'; stable across machines.")
    change_id: str
    codebase: str = Field(description="'owner/name' or the name of the repository.")
    url: str = Field(default="", description="Where the repository can be cloned from; empty for the demo.")
    base_sha: str
    head_sha: str
    created_at_commit: datetime = Field(description="When the change reached the branch.")
    version: str = Field(default="", description="Version of the package at the base, where the tree names it.")
    title: str
    message: str
    pull_number: int | None = None
    issues: list[int] = Field(default_factory=list)
    patch: str = Field(description="The expert's patch without test files; applies to the base with git apply.")
    test_patch: str = Field(default="", description="The part of the diff that touches test files.")
    python: str
    requirements: list[str] = Field(default_factory=list, description="'name==version', installed as of the date.")
    setup_commands: list[str] = Field(default_factory=list)
    install_commands: list[str] = Field(default_factory=list)
    writable_tree: bool = Field(default=False, description="Its tests write into the tree: each process has a copy.")
    apis: list[str] = Field(default_factory=list)
    oracle_targets: list[str] = Field(default_factory=list, description="'path::Class.method' the patch changes.")
    realistic_targets: list[str] = Field(default_factory=list, description="'path::Class.method' the workloads call.")
    problem_oracle: str = ""
    problem_realistic: str = ""
    workloads: list[TaskWorkload] = Field(default_factory=list)
    durations: str = Field(
        default="[]",
        description="JSON: a list with one element a session, {node: {'base': [s…], 'head': [s…]}}, block values.",
    )
    speedup: float | None = Field(default=None, description="Harmonic mean over the accepted workloads.")
    low: float | None = Field(default=None, description="95 % interval of `speedup`.")
    high: float | None = None
    delta: float | None = Field(default=None, description="Mean δ over the accepted workloads (human_performance).")
    q_value: float | None = Field(default=None, description="Smallest q-value of its workloads.")
    margin: float | None = Field(
        default=None, description="Effect over the spread of base against base: the smallest of its workloads."
    )
    overall_speedup: float | None = Field(
        default=None, description="Harmonic mean over all workloads that were timed to a decision, accepted or not."
    )
    overall_low: float | None = Field(default=None, description="95 % interval of `overall_speedup`.")
    overall_high: float | None = None
    timed_workloads: int = Field(default=0, description="Number of workloads in `overall_speedup`.")
    machine_id: str = ""
    measured_at: datetime | None = Field(default=None, description="When its newest timing was written.")
    licence: str = ""
    image_digest: str = Field(
        default="", description="Of the OCI image of the base ('sha256:…'); empty until `perfquarry image` wrote one."
    )
    lines_changed: int = Field(default=0, description="Lines added and deleted outside tests.")
    files_changed: int = 0
    detail: str = ""
