"""The tables of a home or a release as pandas frames, and the acceptance rule for anybody's timings.

import perfquarry

home = perfquarry.open_home("var")
home.frame("tasks")                          # every table by its name: home.tables
home.samples("perfquarry__demo-23b2933d37")  # one row per timed call

release = perfquarry.open_release("release-1.0")
release.task("perfquarry__demo-23b2933d37").patch

perfquarry.decide(base=[1.02, 1.00, 1.01, 1.03, 1.00, 1.02], head=[0.51, 0.50, 0.50, 0.52, 0.50, 0.51]).verdict
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from perfquarry.curation.blocks import Block, Session
from perfquarry.curation.in_force import accepted_tasks, made_of
from perfquarry.curation.names import find_task
from perfquarry.curation.release import folder as release_folder
from perfquarry.curation.settings import SelectSettings
from perfquarry.curation.summary import excluded, gains, lasting, slower, summarise
from perfquarry.data import records
from perfquarry.data.errors import InputError
from perfquarry.data.home import Home
from perfquarry.data.records import ReleasedTask, ReleasedTiming, Task, Timing
from perfquarry.data.schema import row_models
from perfquarry.data.store import TableStore

Verdict = Literal["gain", "no_gain", "slower", "undecided"]
SAMPLE_COLUMNS = ("workload_id", "session", "block", "attempt", "side", "aa", "call", "seconds")
"""Columns of a frame of samples; `call` counts from 0 within its process."""


@dataclass(frozen=True)
class Decision:
    """What paired timings show."""

    verdict: Verdict
    """'undecided': more pairs are needed."""
    speedup: float
    """Base time over head time: Hodges-Lehmann estimate over the pairs' ratios."""
    low: float
    """Lower end of the 95 % interval of the speedup, on any occasion (docs/statistics.md)."""
    high: float
    """Upper end of the same."""
    delta: float
    """δ: the largest gain that is still significant (SWE-Perf, Algorithm 1, for pairs)."""
    p_value: float
    """One-sided, of "the head is not faster"."""
    hold: float
    """Predicted probability that a second look, with as many pairs, shows the gain."""


class HomeTables:
    """The tables of a home (`open_home`)."""

    tables: tuple[str, ...] = tuple(row_models())
    """Their names."""

    def __init__(self, home: Home) -> None:
        self._home, self._store = home, TableStore(home.tables)

    def repositories(self) -> list[str]:
        """Names of the repositories that have changes, in alphabetical order."""
        return sorted(self._store.repositories(records.Change))

    def frame(self, table: str, repo: str | None = None, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Rows of a table, of one repository or of all; of rows with the same key the newest of each configuration.

        Args:
            table: one of `tables`.
            repo: name of a repository; None: all of them.
            columns: what is read; None: all columns.

        Raises:
            InputError: there is no such table or column.
        """
        model = row_models().get(table)
        if model is None:
            raise InputError(f"there is no table {table!r}: the tables are {', '.join(self.tables)}")
        names = [repo] if repo is not None else self._store.repositories(model)
        frames = [self._store.scan(model, name, columns=columns).to_pandas() for name in names]
        empty = pd.DataFrame(columns=list(columns if columns is not None else model.model_fields))
        return pd.concat(frames, ignore_index=True) if frames else empty

    def tasks(self, repo: str) -> list[Task]:
        """The accepted tasks of a repository, by the decisions that are in force."""
        return accepted_tasks(self._store, repo)

    def task(self, task_id: str) -> Task:
        """The task whose id or head begins so, accepted or not.

        Raises:
            InputError: none or several do.
        """
        return find_task(self._home, task_id)[1]

    def samples(self, task_id: str) -> pd.DataFrame:
        """The timed calls of a task's workloads, one row per call, as the decision saw them: `SAMPLE_COLUMNS`.

        Raises:
            InputError: as `task`.
        """
        task = self.task(task_id)
        known = {one.workload_id for one in task.workloads}
        return _samples(row for row in made_of(self._store, Timing, task.repo, [task]) if row.workload_id in known)


class ReleaseTables:
    """The tables of a release's folder (`open_release`)."""

    tables: tuple[str, ...]
    """Names of its configurations."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.tables = tuple(release_folder.configurations_of(folder))

    def frame(self, configuration: str = "default") -> pd.DataFrame:
        """A configuration as it was published; one without rows has no file, and an empty frame here.

        Raises:
            InputError: no release has such a configuration, or its file cannot be read.
        """
        if configuration not in release_folder.CONFIGURATIONS:
            known = ", ".join(release_folder.CONFIGURATIONS)
            raise InputError(f"there is no configuration {configuration!r}: there are {known}")
        if configuration not in self.tables:
            empty: pd.DataFrame = release_folder.CONFIGURATIONS[configuration].empty_table().to_pandas()
            return empty
        file = release_folder.plain(release_folder.parquet_of(self._folder, configuration))
        try:
            return pd.read_parquet(file)
        except (OSError, ValueError) as error:
            raise InputError(f"cannot read {file}: {error}") from error

    def tasks(self) -> list[ReleasedTask]:
        """All tasks, checked field by field: a release may be a stranger's.

        Raises:
            InputError: a file cannot be read, or holds what no release may hold.
        """
        return release_folder.read_tasks(self._folder)

    def task(self, task_id: str) -> ReleasedTask:
        """One task.

        Raises:
            InputError: it is not in the release; or as `tasks`.
        """
        for task in self.tasks():
            if task.task_id == task_id:
                return task
        raise InputError(f"{self._folder} has no task {task_id!r}")

    def samples(self, task_id: str) -> pd.DataFrame:
        """The timed calls of a task's workloads, one row per call: `SAMPLE_COLUMNS`.

        Raises:
            InputError: as `task`.
        """
        self.task(task_id)
        rows = release_folder.read(self._folder, ReleasedTiming, "timings")
        return _samples(row for row in rows if row.task_id == task_id)


def open_home(root: Path | str | None = None) -> HomeTables:
    """The tables of a home; None: `PERFQUARRY_HOME`, or `./var`.

    Raises:
        InputError: there is no such folder.
    """
    home = Home.default() if root is None else Home(Path(root).expanduser().resolve())
    if not home.root.is_dir():
        raise InputError(f"there is no home {home.root}: give the folder that `perfquarry curate --home` was given")
    return HomeTables(home)


def open_release(folder: Path | str) -> ReleaseTables:
    """The tables of a release's folder.

    Raises:
        InputError: it is none.
    """
    path = Path(folder).expanduser().resolve()
    if not release_folder.parquet_of(path, "default").is_file():
        raise InputError(f"{path} is no release: give the folder that `perfquarry release --to` wrote, or a download")
    return ReleaseTables(path)


def decide(
    base: Sequence[float],
    head: Sequence[float],
    *,
    base_again: Sequence[tuple[float, float]] = (),
    settings: SelectSettings | None = None,
) -> Decision:
    """What one session of paired timings shows, by the rule that accepts workloads.

    Args:
        base: seconds of the base, one value per pair; shape (n,), n ≥ 6.
        head: seconds of the head in the same pairs; shape (n,).
        base_again: pairs in which both sides ran the base (A/A), seconds; shape (k, 2).
        settings: thresholds; None: the defaults.

    Raises:
        InputError: the shapes differ, there are fewer than 6 pairs, or a value is no positive number.
    """
    if len(base) != len(head):
        raise InputError(f"{len(base)} values of the base and {len(head)} of the head: give one of each per pair")
    plain, again = _blocks(zip(base, head, strict=True)), _blocks(base_again)
    settings = settings or SelectSettings()
    statistics = summarise(Session(1, plain, again), settings)
    if statistics is None or statistics.hold is None:
        raise InputError(f"{len(base)} pairs are too few for an interval: give at least 6")
    low, high = lasting(statistics, settings)
    verdict: Verdict = "undecided"
    if gains(statistics, settings):
        verdict = "gain"
    elif slower(statistics, settings):
        verdict = "slower"
    elif excluded(statistics, settings):
        verdict = "no_gain"
    return Decision(verdict, statistics.speedup, low, high, statistics.delta, statistics.p_value, statistics.hold)


def _blocks(pairs: Iterable[tuple[float, float]]) -> tuple[Block, ...]:
    values = np.asarray(list(pairs), dtype=np.float64).reshape(-1, 2)
    if not np.all(np.isfinite(values) & (values > 0)):
        raise InputError("timings are seconds: positive, finite numbers")
    return tuple(Block(float(one), float(other), float(np.log(one / other))) for one, other in values)


def _samples(timings: Iterable[Timing | ReleasedTiming]) -> pd.DataFrame:
    rows = [
        (one.workload_id, one.session, one.block, one.attempt, one.side, one.aa, call, seconds)
        for one in timings
        for call, seconds in enumerate(one.samples)
    ]
    return pd.DataFrame(rows, columns=list(SAMPLE_COLUMNS))
