"""One run: the options with everything that is opened once and used by all stages."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, reduce
from operator import or_
from pathlib import Path

import pyarrow.compute as pc

from perfquarry.curation.again import open_changes
from perfquarry.curation.layouts import places_of
from perfquarry.curation.names import repository_of
from perfquarry.curation.repair_model import ModelProposer
from perfquarry.data.claims import Claims
from perfquarry.data.errors import GitFailed, InputError, PerfquarryError
from perfquarry.data.git import commit_of
from perfquarry.data.home import Home
from perfquarry.data.own_rows import OwnRows
from perfquarry.data.records import Attempt, Build, Side, Stamp, Verdict
from perfquarry.data.registry import Repository
from perfquarry.data.store import TableStore
from perfquarry.flows.options import Options, as_given
from perfquarry.harness.building.builder import Builder
from perfquarry.harness.building.known_good import KnownGood
from perfquarry.harness.environments.environment import Environments
from perfquarry.harness.environments.interpreters import find_interpreters
from perfquarry.harness.runtime import Runtime
from perfquarry.llm.client import Client, open_client
from perfquarry.miners.clone import clone_into, source_of
from perfquarry.miners.judge import Judge
from perfquarry.miners.judge.verdicts import judging
from perfquarry.testgen.generated import Generated
from perfquarry.testgen.traced import candidate_files

READ_SHARE = 1 / 6
"""Of a run's time, what goes into reading the history at most, and as much into judging what was read."""
GRACE, LEAST_GRACE, MOST_GRACE = 0.5, 60.0, 300.0
"""Share of a run's time by which timings and counts may outlast it, at least and at most (seconds): so much work is in
them."""


class TimeIsOver(PerfquarryError):
    """The run was over (`Run.is_over`) before a piece of its work began, or was done."""


class OthersWait(PerfquarryError):
    """A piece of work was set aside for others that wait for its core; it goes on where it was."""


@dataclass(frozen=True)
class Run(OwnRows):
    """A run of one repository in one home."""

    options: Options
    stages: list[str] = field(default_factory=list, compare=False)
    """Names of the stages it is to do; none: all."""
    others_wait: threading.Event = field(default_factory=threading.Event, compare=False)
    """Set while changes that have not been timed at all wait for a core."""
    has_enough: threading.Event = field(default_factory=threading.Event, compare=False)
    """Set while its changes come to their end because it has as many accepted tasks as the options ask for."""

    @classmethod
    @functools.lru_cache(maxsize=8)
    def open(cls, options_json: str) -> Run:
        """The run of these options; one object a process, so that a worker opens everything once."""
        return cls(Options.model_validate_json(options_json))

    @cached_property
    def home(self) -> Home:
        """The folder of the whole state."""
        return self.options.place

    @cached_property
    def repository(self) -> Repository:
        """The registry's entry, or one made from the URL or path."""
        return repository_of(self.home, self.options.repo, self.options.source)

    @property
    def name(self) -> str:
        """Name of the repository in the tables."""
        return self.repository.name

    @cached_property
    def store(self) -> TableStore:
        """The tables."""
        return TableStore(self.home.tables)

    @cached_property
    def claims(self) -> Claims:
        """Which worker does what; this process holds claims until `close`, or until it ends."""
        return Claims(self.home.database, self.home.signs, self.options.settings.resources.lease_seconds)

    @cached_property
    def begun(self) -> datetime:
        """When it first asked: what a time limit rejected before is tried again, what it rejects later is not."""
        return datetime.now(UTC)

    @cached_property
    def _deadline(self) -> float:
        return time.monotonic() + (self.options.seconds or float("inf"))

    def begin(self) -> None:
        """Its time begins."""
        _ = self.begun, self._deadline

    @property
    def seconds_left(self) -> float:
        """Of the time that the options give it."""
        return self._deadline - time.monotonic()

    @property
    def time_is_over(self) -> bool:
        """Whether the time is over that the options give it."""
        return self.seconds_left <= 0

    def check_time(self, *, patient: bool) -> None:
        """Raises TimeIsOver where what is at work is to be ended: it outlasts the time.

        Args:
            patient: whether it may, by `GRACE`.
        """
        grace = min(MOST_GRACE, max(LEAST_GRACE, GRACE * (self.options.seconds or 0.0))) if patient else 0.0
        if self.seconds_left < -grace:
            raise TimeIsOver

    @cached_property
    def _reads_since(self) -> float:
        return time.monotonic()

    def may_read(self, shares: int) -> bool:
        """Whether it has been reading and judging the history for less than so many times `READ_SHARE` of its time."""
        since = self._reads_since  # the first to ask begins it
        return self.options.seconds is None or time.monotonic() - since < shares * READ_SHARE * self.options.seconds

    @property
    def is_over(self) -> bool:
        """Whether no further change is to be begun: the time is over, or the accepted tasks are enough."""
        return self.time_is_over or self.has_enough.is_set()

    def close(self) -> None:
        """Ends it: frees what this process has claimed. What is done with it from now on is another run."""
        self.stages.clear()
        self.judged()
        for name in (
            "begun",
            "_deadline",
            "_reads_since",
            "builder",
            "places",
        ):  # a builder remembers what could not be made
            self.__dict__.pop(name, None)
        if "claims" in self.__dict__:
            self.claims.close()
            del self.__dict__["claims"]

    @cached_property
    def source(self) -> str:
        """Where the repository is cloned from: its clone in this home itself, where nothing else says where it is.

        Raises:
            InputError: nothing does, and there is no clone.
        """
        return self.options.source or source_of(self.home, self.repository)

    @property
    def is_cloned(self) -> bool:
        """Whether there is a clone, brought up to date or not."""
        return self.home.clone(self.name).exists()

    @cached_property
    def clone(self) -> Path:
        """The bare clone, brought up to date once a run."""
        return clone_into(self.home, self.repository, as_given(self.source))

    def newest_commit(self) -> str:
        """Id of the newest commit of the branch.

        Raises:
            InputError: there is none.
        """
        clone = self.clone
        try:
            return commit_of(clone, self.repository.branch or "HEAD")
        except GitFailed as error:
            raise InputError(f"{self.source} has no commit: there is no history to read") from error

    @cached_property
    def places(self) -> tuple[str, ...]:
        """Folders and modules that are the package, as the branch's newest commit has them."""
        return places_of(self.clone, self.repository)

    @cached_property
    def runtime(self) -> Runtime:
        """Runs the repository's programs."""
        return Runtime(self.home, self.options.settings.sandbox)

    @cached_property
    def builder(self) -> Builder:
        """Makes sides of changes runnable."""
        settings, model = self.options.settings, self.options.settings.build.repair_model
        return Builder(
            self.home,
            self.clone,
            self.repository,
            self.runtime.sandbox,
            settings.build,
            self.stamp("build"),
            tests_near=lambda change, sides: [
                test.path for test in candidate_files(change, sides, settings.build.collected_files)
            ],
            known_good=KnownGood(self.store.records(Attempt, self.name, **self.where("build"))),
            proposer=ModelProposer(self.client(model, self.stamp("build"))) if model else None,
        )

    @cached_property
    def generated(self) -> Generated:
        """Asks the settings' model for performance tests.

        Raises:
            InputError: none is named, or it cannot be asked (no key, no folder).
        """
        model = self.options.settings.generate.generated.model
        if not model:
            raise InputError("generated workloads need a model: --llm openai:MODEL, exchange:DIR, cassette:DIR, …")
        return Generated(self.client(model, self.stamp("generate")).ask)

    def client(self, model: str, stamp: Stamp) -> Client:
        """Asks a model; its costs are the repository's.

        Raises:
            InputError: it cannot be asked at all (no key, no folder).
        """
        return open_client(model, self.home, self.store, stamp, self.options.settings.llm)

    def judging(self) -> AbstractContextManager[Judge]:
        """The judge that the settings name.

        Raises:
            InputError: no such judge or model, no key, no folder of cassettes.
        """
        settings = self.options.settings
        return judging(self, self.clone, settings.judge, settings.pulls, settings.llm)

    def tools(self, builds: Sequence[Build]) -> dict[Side, Path]:
        """Folders with coverage and yappi for the interpreters of both sides."""
        environments = Environments(self.home, self.runtime.sandbox)
        interpreters = {str(one.version): one for one in find_interpreters()}
        return {build.side: environments.tool_overlay(interpreters[build.python]) for build in builds}

    @cached_property
    def hashes(self) -> dict[str, str]:
        """Configuration hash of each stage; a stage's includes those whose rows decide its own."""
        settings = self.options.settings
        build = settings.build.config_hash(self.repository.recipe_hash())
        generate = settings.generate.config_hash(build)
        measure = settings.measure.config_hash(generate, settings.select.config_hash())
        return {
            "mine": settings.mine.config_hash(*settings.pulls.selection()),
            "pulls": settings.pulls.config_hash("github"),
            "pulls-git": settings.pulls.config_hash("git"),
            "judge": settings.judge.config_hash(*settings.pulls.selection()),
            "build": build,
            "generate": generate,
            "measure": measure,
            "select": settings.select.config_hash(measure),
            "screen": settings.screen.config_hash(),
            "screen-run": settings.screen.config_hash(),
            "count": settings.count.config_hash(),
        }

    def judged(self) -> None:
        """The ranking is another one: what a limit chooses is to be chosen anew."""
        self.__dict__.pop("_chosen", None)

    def asked_for(self) -> set[str]:
        """Ids of the mined changes that the options name by date or hash: all without these options."""
        merged_at, where = pc.field("merged_at"), pc.scalar(True)
        if self.options.since:
            where &= merged_at >= self.options.since
        if self.options.until:
            where &= merged_at < self.options.until
        if self.options.changes:
            where &= reduce(or_, (pc.starts_with(pc.field("head_sha"), one) for one in self.options.changes))
        return self.column("mine", where=where)

    def in_scope(self) -> list[str]:
        """Ids of the changes this run is about, most probable first.

        With a limit, those that were still open when this was first asked.
        """
        ranked = self.ranked()
        if self.options.limit is None:
            return ranked
        return [one for one in ranked if one in self._chosen]

    @cached_property
    def _chosen(self) -> frozenset[str]:
        """With a limit: the changes it is about, once the judge is done."""
        return frozenset(open_changes(self, self.stages, self.ranked())[: self.options.limit])

    def ranked(self) -> list[str]:
        """Ids of the changes the options ask for that the judge kept, most probable first."""
        wanted = self.asked_for()
        verdicts = self.store.scan(
            Verdict,
            self.name,
            columns=["change_id", "probability", "status"],
            where=pc.field("status") == "kept",
            **self.where("judge"),
        ).sort_by([("probability", "descending"), ("change_id", "ascending")])
        return [one for one in verdicts["change_id"].to_pylist() if one in wanted]
