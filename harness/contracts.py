"""The vocabulary of the harness: sandboxes, built sides, probes. Start reading here.

Paths are the host's own, inside a sandbox too (folders are bound to themselves), and the
trees of the two sides of a change have names of equal length, so that nothing about a
path differs between the sides but its digits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, Protocol

from pydantic import ConfigDict, Field

from perfquarry.data.records import Record, Side
from perfquarry.harness.probing.recording import Recorded, RecordRequest, Unrecorded


@dataclass(frozen=True)
class Limits:
    """What one command may use; beyond any of them it is killed with all its descendants."""

    wall_seconds: float = 60.0
    """Seconds for which it was ready but had no processor do not count (`harness.alternation.waiting`)."""
    memory_bytes: int = 4 * 1024**3
    processes: int = 256
    file_bytes: int = 1024**3
    """Size of one file, and of each of its private folders in memory (/tmp)."""
    disk_bytes: int = 8 * 1024**3
    """What its writable folders may hold in all, deleted files it keeps open included."""
    output_bytes: int = 1024**2
    """Bytes kept of each output stream, from its beginning and its end; what lies between is read and thrown away."""


@dataclass(frozen=True)
class Command:
    """One command: nothing of the parent's environment reaches it but `env`."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)
    writable: tuple[Path, ...] = ()
    """Folders it may write to; everything else of the host is read-only, /tmp is its own."""
    readable: tuple[Path, ...] = ()
    """Paths that stay visible, read-only, where the sandbox hides what surrounds them (/tmp, dot files of homes)."""
    limits: Limits = Limits()
    core: int | None = None
    """Core to pin it to."""
    started: Callable[[int], None] | None = field(default=None, compare=False)
    """Called once with the id of its first process; 0 where this machine does not see it."""
    ending: threading.Event | None = field(default=None, compare=False)
    """Once this is set, the command is killed as at a limit."""


Exceeded = Literal["", "time", "memory", "processes", "disk", "asked"]
"""The limit for which a command was killed ('asked': `Command.ending`); empty when it ended by itself."""


@dataclass(frozen=True)
class Completed:
    """How a command ended. A failing command is a value, never an exception."""

    exit_code: int | None
    """None when a signal ended it."""
    signal: int | None
    stdout: bytes
    stderr: bytes
    truncated: bool
    wall_seconds: float
    cpu_seconds: float
    """Of the command and its waited-for descendants; 0 when the sandbox was killed before it could report it."""
    exceeded: Exceeded = ""

    @property
    def timed_out(self) -> bool:
        """Whether it was killed at its time limit."""
        return self.exceeded == "time"

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with exit code 0."""
        return self.exit_code == 0 and not self.timed_out


@dataclass(frozen=True)
class Isolation:
    """What a sandbox promises to keep from hostile code; the conformance suite asserts it both ways."""

    network: bool
    """No connection leaves it."""
    files: bool
    """The host is read-only but for `Command.writable`, keys are hidden, /tmp is its own."""
    processes: bool
    """Other processes are invisible, and no capability of the kernel is left."""
    crash: bool
    """All of its processes end when ours is killed, those in sessions of their own, too."""


class Sandbox(Protocol):
    """Runs commands isolated from the host."""

    @property
    def name(self) -> str:
        """Short name, stored with every timing."""

    @property
    def isolation(self) -> Isolation:
        """What it promises."""

    def run(self, command: Command) -> Completed:
        """Runs it to its end or its limit.

        Raises:
            SandboxUnavailable: the sandbox itself could not start.
        """


@dataclass(frozen=True)
class BuiltSide:
    """One side of a change, ready to run."""

    side: Side
    sha: str
    tree: Path
    """The checked-out tree with what the build added."""
    python: Path
    """The environment's interpreter."""
    environment_id: str
    source_roots: tuple[Path, ...]
    """Folders put first on sys.path."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of its tests, beside those of every probe."""
    test_arguments: tuple[str, ...] = ()
    """Options of pytest."""
    writable_tree: bool = False
    """Processes run in a copy of the tree, into which they may write; it ends with them."""
    test_paths: tuple[str, ...] = ()
    """Folders and globs that hold test files whatever their names, relative to the tree."""
    held: object = field(default=None, compare=False, repr=False)
    """Keeps tree and environment from being evicted while anything refers to it (`harness.leases.leases.Leases`)."""


ProbeMode = Literal["check", "coverage", "profile", "time", "turns", "record", "count"]
Phase = Literal["", "load", "setup", "experiment", "store", "compare", "doubt", "run_test"]
Files = dict[str, bytes]
"""Contents by name, in one folder."""


class Alteration(Record):
    """Functions of the tree that are altered in the process, as a cheat or a bug would."""

    kind: Literal["count", "memo", "damage", "skip"] = Field(
        description="count: nothing; memo: results kept by arguments; damage: results changed; skip: not executed."
    )
    functions: list[str] = Field(description="'path::Class.method' of Python functions; others stay as they are.")
    forget: bool = Field(default=False, description="memo: begin anew with each call of a test or script.")


class ProbeRequest(Record):
    """What the probe is asked to do in one process; sent to it as JSON."""

    mode: ProbeMode = Field(
        description="check: run once; coverage: lines per test; profile: calls; time: samples; turns: on request; "
        "count: instructions."
    )
    arguments: list[str] = Field(
        default_factory=list, description="Test files or pytest node ids, relative to the tree."
    )
    left_out: list[str] = Field(default_factory=list, description="pytest node ids of the arguments that are not run.")
    scripts: dict[str, str] = Field(
        default_factory=dict,
        description="Texts of script workloads by name (`Workload.node`); they run after the tests.",
    )
    store: bool = Field(default=False, description="Store the first result of each script, and try its `run_test`.")
    keep: Literal["first", "last"] = Field(
        default="first", description="Which result of a script stays stored; of 'last', `run_test` is not tried."
    )
    references: dict[str, Files] = Field(
        default_factory=dict, description="Stored results by script, with which all of its results are compared."
    )
    result_bytes: int = Field(default=16 * 1024**2, description="Largest stored result of a script.")
    include: list[str] = Field(default_factory=list, description="coverage: files to trace, relative to the tree.")
    warmups: int = 3
    calls: dict[str, int] = Field(default_factory=dict, description="Timed calls by node id; missing: calibrate.")
    min_timed_seconds: float = 0.05
    max_calls: int = 200
    max_seconds: float = Field(
        default=30.0, description="time: seconds after which no further call is begun (each test gets one at least)."
    )
    files_seconds: float = Field(
        default=0.0,
        description="CPU seconds, shared evenly by test files; of one whose share is used up no further test is begun. "
        "Two seconds of sleeping, or of waiting for processes of its own, count as one. 0: as many as they take.",
    )
    test_timeout: float = Field(
        default=0.0,
        description="Seconds after which one test is given up, without those it waited for a processor; 0: never.",
    )
    record: RecordRequest | None = Field(default=None, description="Only for mode 'record'.")
    functions: list[str] = Field(
        default_factory=list,
        description="count: only what happens inside these Python functions ('path::Class.method'), and by function.",
    )
    alteration: Alteration | None = Field(default=None, description="Not for mode 'record'.")
    extra_paths: list[str] = Field(
        default_factory=list, description="Folders that hold coverage or yappi for the target's interpreter."
    )


Instructions = Annotated[int, Field(ge=0, lt=2**62)]
"""A number of instructions; a table can hold it."""


class Inside(Record):
    """How calls of Python functions appear in a file of callgrind: as calls out of machine code."""

    addresses: dict[str, list[tuple[int, int]]] = Field(description="By function: where its machine code lies.")
    nested: dict[str, Instructions] = Field(description="By function: detours through machine code while it ran.")
    overhead: Instructions = Field(description="Instructions of such a detour.")


class ProbeItem(Record):
    """What the probe saw of one test."""

    node: str = Field(description="pytest node id, relative to the tree; the name of a script.")
    outcome: Literal["passed", "failed", "error", "skipped", "xfailed", "timeout", "crashed"] = Field(
        description="crashed: the process ended while it ran, by itself or at a limit other than time."
    )
    message: str = Field(default="", description="End of the failure's text, at most 2 KiB.")
    seconds: float = Field(default=0.0, description="First call, seconds (the test method without fixtures).")
    samples: list[float] = Field(default_factory=list, description="time: seconds of each timed call.")
    calls: int = Field(default=0, description="time: number of timed calls; equals len(samples).")
    lines: dict[str, list[int]] = Field(default_factory=dict, description="coverage: lines by file, relative paths.")
    again: dict[str, list[int]] = Field(
        default_factory=dict, description="coverage: of a script, the lines of its second call in the process."
    )
    phase: Phase = Field(default="", description="What a script was doing when it failed; doubt: its check is vacuous.")
    setup_seconds: float = Field(
        default=0.0, description="Least seconds of a script's `setup`; with a `test_timeout`, without those it waited."
    )
    call_seconds: float = Field(default=0.0, description="The same of its `experiment`.")
    first_seconds: float = Field(default=0.0, description="The same of the first call of `experiment`.")
    functions: list[str] = Field(
        default_factory=list, description="profile: 'path::qualified.name' called inside the tree, most time first."
    )
    callers: dict[str, list[str]] = Field(
        default_factory=dict, description="profile: for each of `functions`, those that called it, where known."
    )
    statistics: dict[str, tuple[int, float, float]] = Field(
        default_factory=dict, description="profile: by function: calls, own seconds, seconds with what it calls."
    )
    altered: dict[str, tuple[int, int]] = Field(
        default_factory=dict, description="With an alteration: calls by function, and how many were altered."
    )
    instructions: list[Instructions] = Field(
        default_factory=list, description="count: instructions of each counted call."
    )
    counted: str = Field(default="", description="count: name of callgrind's file of the last counted call.")
    inside: Inside | None = Field(default=None, description="count, with `functions`: how to read that file.")
    native: dict[str, Instructions] = Field(
        default_factory=dict, description="count: instructions of functions of libraries themselves, 'library:name'."
    )
    python: dict[str, Instructions] = Field(
        default_factory=dict, description="count: of Python functions with all that they call, 'path::Class.method'."
    )


class ProbeReport(Record):
    """What one probe process did, as the host sees it."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    outcome: Literal["finished", "timeout", "crashed"]
    items: list[ProbeItem] = Field(default_factory=list)
    collect_errors: dict[str, str] = Field(default_factory=dict, description="Message by test file.")
    collect_skips: dict[str, str] = Field(
        default_factory=dict, description="Message by test file that was skipped as a whole."
    )
    not_begun: dict[str, int] = Field(
        default_factory=dict, description="Tests not begun, by file: its share of `files_seconds` was used up."
    )
    recorded: list[Recorded] = Field(default_factory=list)
    unrecorded: list[Unrecorded] = Field(default_factory=list)
    python: str = ""
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    waited_seconds: float = Field(default=0.0, description="Of these, without a processor; known where it finished.")
    output: str = Field(default="", description="End of the process's output, at most 4 KiB.")
    results: dict[str, Files] = Field(default_factory=dict, description="Stored results by script, never interpreted.")


class PartnerFailed(Exception):
    """A workload did not pass in a process that stays loaded. A value of measuring, never shown to users."""

    def __init__(self, outcome: str, message: str, *, gone: bool = False) -> None:
        super().__init__(f"{outcome}: {message}")
        self.outcome = outcome
        """'failed', 'timeout' or 'crashed'."""
        self.message = message
        self.gone = gone
        """Whether the process is lost with it."""
