"""Table `verdicts`: one judge's view of one change."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from perfquarry.data.records.row import Record, Row


class Signal(Record):
    """One thing a judge noticed."""

    name: str
    weight: float = Field(description="What it adds to the log-odds.")
    evidence: str = Field(default="", description="The words or lines it was seen in, shortened.")


class TouchedFunction(Record):
    """A function whose lines a change touches, found by parsing both sides."""

    path: str = Field(description="Path at the head (at the base for deleted files).")
    name: str = Field(description="Qualified name within the file: 'Class.method', 'function'; '<module>' outside.")
    change: Literal["modified", "added", "deleted"]


class Verdict(Row):
    """`probability` ranks the history; `is_performance` is its class at the judge's thresholds."""

    TABLE: ClassVar[str] = "verdicts"
    KEY: ClassVar[tuple[str, ...]] = ("change_id", "judge")

    change_id: str
    judge: str = Field(description="'heuristic', or provider:model.")
    is_performance: Literal["yes", "no", "unsure"]
    probability: float = Field(ge=0, le=1, description="Probability that the change improves performance.")
    why: str = Field(default="", description="The reasons in words.")
    apis: list[str] = Field(default_factory=list, description="Public APIs that show the change.")
    signals: list[Signal] = Field(default_factory=list)
    functions: list[TouchedFunction] = Field(
        default_factory=list, description="Exact functions touched; found when workloads for the change are looked for."
    )
    tokens: int = Field(default=0, description="Of all questions and answers, those from a cache included.")
    cost_usd: float | None = Field(default=0.0, description="Spent this time; null where no price is known.")
    cached: bool = Field(default=False, description="No model was called for it.")
