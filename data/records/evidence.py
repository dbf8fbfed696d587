"""Table `evidence`: what the timings of one workload show."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from perfquarry.data.records.row import Record, Row


class SessionStatistics(Record):
    """Statistics of one session of one workload; a block's value is the median of its samples."""

    session: int
    n_base: int = Field(description="Values of the base: pairs of processes (older homes: after an outlier filter).")
    n_head: int
    base_median: float = Field(description="Seconds.")
    head_median: float = Field(description="Seconds.")
    speedup: float = Field(description="Base time over head time.")
    low: float = Field(description="Lower end of the 95 % interval of the speedup.")
    high: float = Field(description="Upper end of the 95 % interval of the speedup.")
    delta: float = Field(description="δ: smallest statistically significant gain (SWE-Perf, Algorithm 1).")
    p_value: float = Field(description="One-sided, base greater than head: Student's t of the pairs' log ratios.")
    aa_delta: float | None = Field(default=None, description="δ of base against base, the larger direction.")
    aa_spread: float | None = Field(default=None, description="Typical relative difference of two runs of the base.")
    pair_spread: float | None = Field(default=None, description="Standard deviation of a pair's log ratio.")
    hold: float | None = Field(default=None, description="Predicted probability that a second look shows the gain.")
    margin: float | None = Field(default=None, description="Effect over the spread of base against base.")
    alone: bool = Field(default=False, description="Measured in fresh processes, one after the other.")


class Evidence(Row):
    """The decision on one workload. The published figures are those of the confirming session."""

    TABLE: ClassVar[str] = "evidence"
    KEY: ClassVar[tuple[str, ...]] = ("workload_id",)

    workload_id: str
    change_id: str
    sessions: list[SessionStatistics] = Field(default_factory=list)
    speedup: float | None = Field(default=None, description="Of the confirming session where there is one.")
    low: float | None = None
    high: float | None = None
    delta: float | None = None
    p_value: float | None = Field(default=None, description="Of the first session: the one that selected.")
    q_value: float | None = Field(default=None, description="Benjamini-Hochberg over all workloads of the repository.")
    cold_speedup: float | None = Field(default=None, description="Ratio of the medians of first calls.")
    margin: float | None = Field(default=None, description="Effect over the spread of base against base.")
    detail: str = Field(default="", description="The decision in words.")
