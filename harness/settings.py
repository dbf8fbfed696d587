"""Settings of builds, measurements, counts and sandboxes."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, field_validator

from perfquarry.data.records.row import Record
from perfquarry.data.settings import StageSettings


class BuildSettings(StageSettings):
    """Limits of a build."""

    timeout: float = Field(default=1800.0, description="Wall seconds of one build command.")
    memory_bytes: int = Field(default=8 * 1024**3, description="Memory of one process, bytes.")
    attempts: int = Field(default=6, description="Times a change is tried at most, each after another repair.")
    attempts_seconds: float = Field(default=3600.0, description="No further attempt is begun after so many seconds.")
    system_packages: bool = Field(default=False, description="Whether root may install missing Debian packages.")
    collected_files: int = Field(default=5, description="Test files near the change that should be collectable.")
    repair_model: str = Field(
        default="", description="Asked when no rule of repair fits: 'openai:MODEL', 'exchange:DIR', … Empty: nobody."
    )
    jobs: int = Field(default=2, ge=1, description="Processes of one build at once.")
    UNHASHED: ClassVar[frozenset[str]] = frozenset({"jobs"})
    ADDED: ClassVar[frozenset[str]] = frozenset({"repair_model"})


class MeasureSettings(StageSettings):
    """The schedule of a session (docs/statistics.md)."""

    pairs: int = Field(default=6, ge=6, description="Pairs of processes of a session, at least.")
    max_pairs: int = Field(default=24, ge=6, description="Pairs of processes of a session, at most.")
    aa_every: int = Field(default=2, ge=1, description="Every so manieth pair has a second process of the base.")
    warmups: int = Field(default=3, ge=1, description="Untimed calls first in each process; one of slow workloads.")
    turn_seconds: float = Field(
        default=0.25, gt=0, description="Seconds that the turns of one side last in a pair, fixtures included."
    )
    fewest_turns: int = Field(default=5, ge=1, description="Timed calls of a side in a pair, at least.")
    slow_turns: int = Field(
        default=3, ge=1, description="The same of a workload whose call takes 50 ms or more, with its fixtures."
    )
    most_turns: int = Field(default=320, ge=1, description="Timed calls of a side in a pair, at most.")
    pair_seconds: float = Field(
        default=8.0, gt=0, description="Seconds of a pair's turns; slow workloads beyond that are not timed."
    )
    turn_error: float = Field(
        default=0.008, ge=0, description="Standard error (log) of a pair's ratio at which it takes no more turns."
    )
    call_seconds: float = Field(default=60.0, gt=0, description="Limit of one call.")
    max_process_seconds: float = Field(
        default=60.0, gt=0, description="Seconds to load the workloads, and for each of them as many again."
    )
    memory_bytes: int = Field(default=4 * 1024**3, description="Memory of one process, bytes.")
    copy_bytes: int = Field(
        default=1024**3, description="Largest tree of which a second copy is made for base against base."
    )
    fresh_seconds: float = Field(
        default=0.05, description="Seconds of timed calls in a process of its own, for what cannot live beside others."
    )
    seed: int = Field(default=20261121, description="Seed of the orders and hash seeds.")
    max_workloads: int = Field(
        default=12, ge=1, description="Workloads of a change that are timed: of each source and role in turn."
    )
    ADDED: ClassVar[frozenset[str]] = frozenset({"pair_seconds", "slow_turns"})


class CountSettings(StageSettings):
    """How instructions are counted (docs/counts.md)."""

    seeds: tuple[int, ...] = Field(
        default=(1, 2, 3), min_length=1, max_length=32, description="Hash seeds; for each, one process a side."
    )
    warmups: int = Field(default=3, ge=1, description="Uncounted calls first.")
    calls: int = Field(default=4, ge=1, description="Counted calls of a process; their median counts.")
    touched: float = Field(default=0.005, gt=0, description="From this |log ratio| on, functions are counted, too.")
    functions: int = Field(default=24, ge=0, description="Functions that are kept of a workload.")
    explained: int = Field(
        default=200_000_000,
        gt=0,
        description="Instructions of a call of those workloads, together, that are counted by function; one always is.",
    )
    workload_seconds: float = Field(
        default=8.0, gt=0, description="A workload is called no more after so long, but counted once at least."
    )
    change_seconds: float = Field(
        default=60.0,
        gt=0,
        description="No further seed is begun that would end later; the calls of a process have a third of it.",
    )
    process_seconds: float = Field(default=600.0, gt=0, description="Wall limit of one process.")
    memory_bytes: int = Field(default=8 * 1024**3, description="Memory of one process, bytes.")
    UNHASHED: ClassVar[frozenset[str]] = frozenset(
        {"explained", "workload_seconds", "change_seconds", "process_seconds", "memory_bytes"}
    )

    @field_validator("seeds")
    @classmethod
    def _seeds(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(seeds)) < len(seeds) or not all(0 <= seed < 2**32 for seed in seeds):
            raise ValueError("hash seeds are different numbers from 0 to 4294967295")
        return seeds


class SandboxSettings(Record):
    """Where strangers' code runs. It decides no row, so it is in no hash; timings name their sandbox themselves."""

    name: Literal["bubblewrap", "docker", "process"] | None = Field(
        default=None, description="Null: the strongest that works on this machine."
    )
    image: str = Field(default="", description="docker: a local image with a shell; empty: our own base image.")
