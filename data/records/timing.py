"""Table `timings`: one process that ran one workload on one side."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from perfquarry.data.records.row import Record, Row


class Machine(Record):
    """Facts of the machine a timing was taken on; timings of different machines are never pooled."""

    machine_id: str = Field(description="Content address of the facts that do not change between runs.")
    system: str = Field(description="Operating system.")
    kernel: str = Field(description="Its release.")
    cpu: str = Field(description="Model name of the processor.")
    cores: int = Field(description="Logical cores.")
    memory_bytes: int = Field(description="Bytes of memory.")
    governor: str | None = Field(default=None, description="Frequency governor of the first core; null: unknown.")
    clock_resolution: float = Field(description="Resolution of the timer, seconds.")
    sandbox: str = Field(description="Name of the sandbox: bubblewrap, docker, process.")


class Timing(Row):
    """`samples` are all timed calls of one process.

    A block is a pair of processes, base and head, under one hash seed. By the schedule 'turns' both are alive
    together: call i of the one and call i of the other follow each other, and the block's value is the
    Hodges-Lehmann estimate of their log ratios. By 'fresh' one runs after the other: the value is the ratio of
    medians. Some blocks run the base once more: that row has `aa=True` and the side 'head', the role it has
    against the block's base. (Older homes have A/A blocks of their own, of two rows with `aa=True` and another
    hash seed.)
    """

    TABLE: ClassVar[str] = "timings"
    KEY: ClassVar[tuple[str, ...]] = ("workload_id", "session", "aa", "block", "attempt", "side")

    workload_id: str
    change_id: str
    session: int = Field(description="Odd: it selects; the even one after it confirms; the last pair decides.")
    block: int = Field(description="Number of the block within the session, from 0.")
    attempt: int = Field(default=0, description="0, or the number of times the block was repeated before.")
    position: int = Field(description="Place of the process in its block, from 0.")
    side: Literal["base", "head"]
    aa: bool = Field(default=False, description="The base once more, in the role of the head.")
    schedule: Literal["turns", "fresh"] = Field(
        default="fresh", description="turns: alive together, taking turns; fresh: one process after the other."
    )
    samples: list[float] = Field(default_factory=list, description="Seconds of each timed call.")
    outside: list[float] = Field(
        default_factory=list,
        description="turns: of the same calls the share of the turn, seconds seen from outside of the process.",
    )
    untimed: int = Field(default=0, description="turns: untimed calls before each timed one.")
    stopped: bool = Field(default=False, description="turns: it was stopped while others were on turn.")
    order_seed: int | None = Field(
        default=None, description="turns: of the generator that drew the block's order and the collector's phases."
    )
    copied: bool = Field(default=False, description="It ran on a second copy of the tree.")
    cold: float | None = Field(default=None, description="Seconds of the first call of the process.")
    outcome: str = Field(description="'passed', 'failed', 'timeout', 'crashed'.")
    digest: str | None = Field(default=None, description="Digest of the result, where the workload has one.")
    wall_seconds: float = Field(default=0.0, description="Wall time of the process seen from outside.")
    hash_seed: int = Field(description="PYTHONHASHSEED, shared by the block.")
    core: int | None = Field(default=None, description="The core the process was pinned to.")
    foreign_load: float = Field(
        default=0.0, description="CPU seconds per second used by others, on the core during the block."
    )
    disturbed: bool = Field(default=False, description="Foreign load was over the limit; the block was repeated.")
    machine: Machine
