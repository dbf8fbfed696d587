"""What a release is made of: `default` (ReleasedTask), `tasks` (ReleasedFolder), `timings`, `withdrawn`.

These are the canonical columns; `curation.release` writes them, and its page SCHEMA.md is made of their descriptions.
A new field has a default that says 'not known': releases without it are read as well.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from perfquarry.data.records.count import FunctionCount, SeedCount
from perfquarry.data.records.inputs import (
    Address,
    BuildVersion,
    Codebase,
    CodePlace,
    DebianPackage,
    Folder,
    ImageDigest,
    ImageReference,
    Interpreter,
    Name,
    ObjectId,
    Pinned,
    Sha256,
)
from perfquarry.data.records.intent import IntentClass
from perfquarry.data.records.row import Record
from perfquarry.data.records.task import Task, TaskWorkload
from perfquarry.data.records.timing import Machine
from perfquarry.data.records.workload import Source

_NODE = TypeAdapter(CodePlace)


class ReleasedRecipe(Record):
    """How the base is made runnable again from the release alone."""

    tree: ObjectId = Field(description="Git id of the base's tree, in `sources/<repo>.pack`.")
    python: Interpreter = Field(description="Version of the interpreter, 'X.Y.Z'.")
    requirements: list[Pinned] = Field(description="Everything that was installed, 'name==version'.")
    system_packages: list[DebianPackage] = Field(description="Debian packages beside compiler and interpreter.")
    setup_commands: list[str] = Field(description="Shell commands that fetch the base from upstream.")
    install_commands: list[str] = Field(description="Shell commands that make the environment and the native parts.")
    build_version: BuildVersion = Field(
        default="", description="Version that a native build gets when it asks git: that of the nearest tag."
    )
    source_roots: list[Folder] = Field(description="Folders put on sys.path, relative to the tree.")
    writable_tree: bool = Field(default=False, description="Its tests write into the tree: each process has a copy.")
    environment_id: Name = Field(description="Content address of interpreter and dependencies.")
    image_digest: ImageDigest = Field(
        description="Of the OCI image of the base ('sha256:…'); empty: only the recipe exists."
    )


class InputWorkload(TaskWorkload):
    """One workload of a task that was read from a file."""

    workload_id: Name = Field(description="Content address of the change and the code.")
    source: Source = Field(description="unit-test, asv, generated or replay.")

    @model_validator(mode="after")
    def _node(self) -> Self:
        if self.source == "unit-test":
            _NODE.validate_python(self.code)
        return self


class ReleasedCount(Record):
    """Instructions that one workload executes on both sides (table `counts`)."""

    ir_base: int = Field(description="Instructions of one warm call at the base, median over the seeds.")
    ir_head: int = Field(description="The same at the head.")
    ratio: float = Field(description="Median over the seeds of base over head: above 1, the head executes fewer.")
    low: float = Field(description="Smallest of the ratios of the seeds.")
    high: float = Field(description="Largest of the same.")
    seeds: list[SeedCount] = Field(description="Counts by hash seed.")
    functions: list[FunctionCount] = Field(
        description="Functions that execute fewer or more instructions at the head: those of the patch first, then by "
        "how much they differ."
    )


class ReleasedWorkload(InputWorkload):
    """One workload of a released task."""

    count_label: Literal["agree", "not_fewer"] | None = Field(
        default=None,
        description="Beside the clock, which shows a gain: agree (fewer instructions, too) or not_fewer (look closely: "
        "locality, SIMD, waiting, or noise). Null: not counted.",
    )
    count: ReleasedCount | None = Field(default=None, description="What was counted. Null: not counted, or not known.")


class InputTask(Task):
    """A row of the table `tasks` that was read from a file, which may be a stranger's."""

    task_id: Name
    repo: Name
    codebase: Codebase
    url: Address = ""
    base_sha: ObjectId
    head_sha: ObjectId
    python: Interpreter
    requirements: list[Pinned] = Field(default_factory=list)
    workloads: list[InputWorkload] = Field(default_factory=list)  # type: ignore[assignment]


class ReleasedTask(Record):
    """One task: what a solver gets, what grades it, what the expert reached."""

    task_id: Name = Field(description="'owner__name-<first 10 digits of the head>'; stable across releases.")
    repo: Name = Field(description="Short name of the repository.")
    codebase: Codebase = Field(description="'owner/name' of the repository.")
    url: Address = Field(description="Where the repository can be cloned from; empty for the demo.")
    base_commit: ObjectId = Field(description="Commit the solver starts from.")
    head_commit: ObjectId = Field(description="Commit of the expert.")
    created_at: datetime = Field(description="When the fix became public: compare with a model's training data.")
    version: str = Field(description="Version of the package at the base, where the tree states it.")
    title: str = Field(description="First line of the expert's message, without addresses. Reveals the fix.")
    message: str = Field(description="The expert's message, without e-mail addresses. Reveals the fix.")
    pull_number: int | None = Field(description="Number of the pull request, where there was one.")
    issues: list[int] = Field(description="Issues the message refers to.")
    patch: str = Field(description="The expert's patch without test files; applies to the base with git apply.")
    test_patch: str = Field(description="The part of the expert's diff that touches test files.")
    problem_gso: str = Field(description="Problem text, setting 'gso': a performance test is the target; may be empty.")
    problem_oracle: str = Field(description="Problem text, setting 'oracle': names the functions to make faster.")
    problem_realistic: str = Field(description="Problem text, setting 'realistic': names only what end users call.")
    problem_fuzzy: str = Field(
        default="",
        description="Problem text, setting 'fuzzy': as a user would report it; names no function. May be empty.",
    )
    apis: list[str] = Field(description="Public APIs that reach what the patch changes.")
    oracle_targets: list[CodePlace] = Field(description="'path::Class.method' that the patch changes.")
    realistic_targets: list[CodePlace] = Field(description="'path::Class.method' that the workloads call.")
    tests: list[CodePlace] = Field(
        description="Node ids of unit tests that execute changed lines, are not changed themselves and passed three "
        "times on both sides: a solver's version must pass them."
    )
    workloads: list[ReleasedWorkload] = Field(description="What is timed, with the expert's figures.")
    speedup: float = Field(description="The expert's: harmonic mean over the workloads of base time over head time.")
    low: float = Field(description="Lower end of the 95 % interval of `speedup`, on any occasion.")
    high: float = Field(description="Upper end of the same.")
    delta: float = Field(description="Mean δ over the workloads (SWE-Perf's human_performance).")
    q_value: float = Field(description="Smallest q-value of the workloads.")
    overall_speedup: float | None = Field(
        default=None,
        description="The same mean over all workloads that were timed to a decision, those too that were not accepted: "
        "smaller, and steadier where a workload's gain is near the smallest that is accepted. Null: not known.",
    )
    overall_low: float | None = Field(default=None, description="Lower end of the 95 % interval of `overall_speedup`.")
    overall_high: float | None = Field(default=None, description="Upper end of the same.")
    timed_workloads: int = Field(default=0, description="Number of workloads in `overall_speedup`; 0: not known.")
    margin: float | None = Field(
        default=None,
        description="Effect over the spread of base against base: the smallest of the workloads. Below 3, do not trust "
        "the task on another machine. Null: not known.",
    )
    instructions_ratio: float | None = Field(
        default=None,
        description="Instructions of base over head: geometric mean over the workloads that the change touches, those "
        "too that were not accepted; 1 where it touches none. Null: not counted. No time.",
    )
    lines_changed: int = Field(description="Lines added and deleted outside tests.")
    files_changed: int = Field(description="Files changed outside tests.")
    licence: str = Field(description="SPDX identifier of the repository's licence; it covers patches, tests, sources.")
    licence_url: Address = Field(
        default="",
        description="The licence's text, or the metadata naming it, at the base; empty where it has no address.",
    )
    recipe: ReleasedRecipe = Field(description="How the base is made runnable again.")
    machine_id: str = Field(description="The machine of the timings: see the configuration `timings`.")
    review: Literal["accepted", "unreviewed"] = Field(description="Whether a curator accepted it.")
    intent: IntentClass | None = Field(
        default=None,
        description="intended: meant as an improvement, callers see the same; side_effect: the gain came with a fix, a "
        "feature or a refactoring; behaviour_changed: callers see something else. Null: not known.",
    )
    intent_by: str = Field(default="", description="Who said so: 'heuristic', a model, or a curator.")
    intent_evidence: list[str] = Field(default_factory=list, description="Why, in words. Reveals the fix.")
    warnings: list[str] = Field(description="What screening noted, 'check: evidence'; blocking findings stay out.")


FolderStatus = Literal["verified", "unverified", "needs_repair"]


class ReleasedFolder(Record):
    """One task as a folder for Harbor, and whatever reads its format."""

    task_id: Name = Field(description="The task in the configuration `default`.")
    name: str = Field(description="'org/task_id': the task's name for Harbor.")
    path: Folder = Field(description="Of the folder within the release.")
    sha256: Sha256 = Field(
        description="Of the folder: SHA-256 over the output of `find . -type f | LC_ALL=C sort | xargs -d '\\n' "
        "sha256sum` run within it."
    )
    status: FolderStatus = Field(
        description="verified: with the expert's patch it passes, with none it fails, seen by `release check` for this "
        "very folder; needs_repair: it did not; unverified: this folder was not tried."
    )
    image: ImageReference = Field(description="Image of solver and verifier, by digest.")
    repo: Name = Field(description="Short name of the repository.")
    licence: str = Field(description="SPDX identifier, as at the base commit.")
    licence_url: Address = Field(description="The licence's text at the base commit, or the metadata that name it.")
    created_at: datetime = Field(description="When the fix became public.")
    speedup: float = Field(description="The expert's, as in `default`.")
    workloads: int = Field(description="Workloads that are timed.")
    hidden_workloads: int = Field(description="Those of them that the solver is not shown.")
    machine_id: str = Field(description="Where it was timed.")


class Withdrawn(Record):
    """A task that was taken back, or replaced by another folder of the same name, and why."""

    task_id: Name = Field(description="The task.")
    version: str = Field(description="Version of the dataset that took it back or replaced it.")
    action: Literal["withdrawn", "replaced"] = Field(description="What was done.")
    reason: str = Field(description="Why.")
    sha256: str = Field(description="Of the folder that is not to be used any more; empty where it had none.")


class Runnable(Record):
    """The part of a recipe that the builder needs to make a side again, whichever table or file it comes from."""

    sha: ObjectId
    python: Interpreter
    requirements: list[Pinned]
    source_roots: list[Folder]
    environment_id: Name


class ReleasedTiming(Record):
    """One process that ran one workload on one side."""

    task_id: Name = Field(description="The task it belongs to.")
    workload_id: Name = Field(description="The workload within `workloads` of the task.")
    session: int = Field(
        description="Odd: it selects; the even one after it confirms. Where noise hides what a workload shows, further "
        "pairs (3 and 4, 5 and 6) follow. Published figures are of the workload's last pair."
    )
    block: int = Field(description="Number of the block within the session, from 0; it runs base and head once.")
    attempt: int = Field(description="0, or the number of times the block was repeated before.")
    position: int = Field(description="Place of the process in its block, from 0.")
    side: Literal["base", "head"] = Field(description="Role of the process in its block: which code ran, unless `aa`.")
    aa: bool = Field(description="A/A: the base's code ran, where `side` is 'head', too.")
    samples: list[float] = Field(description="Seconds of each timed call.")
    cold: float | None = Field(description="Seconds of the first call of the process.")
    outcome: str = Field(description="'passed', 'failed', 'timeout', 'crashed'.")
    wall_seconds: float = Field(description="Wall time of the process seen from outside.")
    schedule: Literal["turns", "fresh", ""] = Field(
        default="",
        description="turns: base and head were alive together and took turns, call by call; fresh: one process ran "
        "after the other. Empty: not known.",
    )
    hash_seed: int = Field(description="PYTHONHASHSEED, shared by the block.")
    core: int | None = Field(description="The core the process was pinned to.")
    foreign_load: float = Field(description="CPU seconds per second used by others on that core during the block.")
    disturbed: bool = Field(description="Foreign load was over the limit; the block was repeated.")
    machine: Machine = Field(description="Facts of the machine.")
