"""Table `counts`: instructions that one workload executes on both sides."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from perfquarry.data.records.row import Record, Row


class SeedCount(Record):
    """Instructions of one warm call with one hash seed."""

    seed: int = Field(description="PYTHONHASHSEED, shared by both sides.")
    ir_base: int = Field(description="Instructions; the median of the counted calls of one process.")
    ir_head: int = Field(description="Instructions.")


class FunctionCount(Record):
    """One function that executes fewer or more instructions at the head; null: it was not executed there."""

    name: str = Field(description="'path::Class.method' of a Python function, 'library:name' of a native one.")
    ir_base: int | None = Field(default=None, description="Of one call of the workload; see `native`.")
    ir_head: int | None = Field(default=None, description="The same at the head.")
    native: bool = Field(description="true: its own instructions; false: with those of all that it calls.")
    in_patch: bool = Field(description="Whether the change edits it.")
    called_from_patch: bool = Field(description="Whether it runs, perhaps among others, on behalf of edited functions.")


class Count(Row):
    """Counts of one workload. They are no times, and are never converted to seconds."""

    TABLE: ClassVar[str] = "counts"
    KEY: ClassVar[tuple[str, ...]] = ("workload_id",)

    workload_id: str
    change_id: str
    ir_base: int | None = Field(default=None, description="Instructions of one warm call, median over the seeds.")
    ir_head: int | None = Field(default=None, description="The same at the head.")
    ratio: float | None = Field(
        default=None, description="Median over the seeds of base over head: above 1, the head executes fewer."
    )
    low: float | None = Field(default=None, description="Smallest of the ratios of the seeds.")
    high: float | None = Field(default=None, description="Largest of the same.")
    seeds: list[SeedCount] = Field(default_factory=list)
    functions: list[FunctionCount] = Field(
        default_factory=list, description="Those of the patch first, then by how much they differ."
    )
    valgrind: str = Field(default="", description="Its version; counts of other versions may differ.")
    cpu: str = Field(default="", description="Model name of the processor; libraries choose their code by it.")
    libc: str = Field(default="", description="Name and version of the C library.")
    detail: str = Field(default="", description="Why it could not be counted.")
