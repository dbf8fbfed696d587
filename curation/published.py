"""Published tasks, of a release, a Parquet file or a home, and how each is made runnable here."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from perfquarry.curation.in_force import accepted_tasks
from perfquarry.curation.names import repository_of
from perfquarry.curation.patch import files_of
from perfquarry.curation.release.expert_runs import ExpertRuns
from perfquarry.curation.release.folder import read_tasks as read_released
from perfquarry.curation.release.manifest import FILE
from perfquarry.curation.release.selection import as_task
from perfquarry.curation.revalidation import read_tasks
from perfquarry.curation.settings import MakingSettings
from perfquarry.data.errors import GitFailed, InputError, UnknownRepository
from perfquarry.data.git import commit_of
from perfquarry.data.home import Home
from perfquarry.data.records import Build, ReleasedTask, Stamp, Task
from perfquarry.data.registry import names
from perfquarry.data.store import TableStore
from perfquarry.harness.building.builder import STAGE_VERSION, Builder
from perfquarry.harness.building.from_recipe import builds_of_recipe
from perfquarry.harness.contracts import BuiltSide
from perfquarry.harness.runtime import Runtime
from perfquarry.miners.clone import clone_into, source_of


@dataclass(frozen=True)
class MadeTask:
    """A task that can be run here."""

    base: BuiltSide
    head: BuiltSide
    builder: Builder
    build: Build
    """The base's row, from which the builder makes it."""
    runtime: Runtime
    python: str


@dataclass(frozen=True)
class PublishedTasks:
    """The chosen tasks of one source."""

    tasks: list[Task]
    _released: dict[str, ReleasedTask]
    _home: Home
    _clone_from: str | None
    _settings: MakingSettings
    _experts: ExpertRuns

    @classmethod
    def open(
        cls, home: Home, source: str, clone_from: str | None, only: Sequence[str], settings: MakingSettings
    ) -> PublishedTasks:
        """Reads them.

        Args:
            home: where environments and trees are made; may be empty.
            source: folder of a release, Parquet file of tasks, or a home's repository.
            clone_from: path or URL of a clone, where the source is no release.
            only: starts of task ids; none: all.
            settings: sandbox, schedule and thresholds.

        Raises:
            InputError: no such tasks, or one clone for several repositories.
        """
        folder = Path(source).expanduser()
        released = {row.task_id: row for row in read_released(folder)} if (folder / FILE).is_file() else {}
        every = [as_task(row) for row in released.values()] or _tasks(home, source)
        tasks = [task for task in every if not only or task.task_id.startswith(tuple(only))]
        if not tasks:
            raise InputError(f"no task of {source} begins with {', '.join(only)}")
        if clone_from and released:
            raise InputError("--source is of no use: a release holds the files of its tasks")
        if clone_from and len({task.repo for task in tasks}) > 1:
            raise InputError("--source is one repository, and these tasks are of several: give --tasks of one of them")
        return cls(tasks, released, home, clone_from, settings, ExpertRuns(folder, home, settings))

    def make(self, task: Task) -> MadeTask:
        """Both sides of a task, in an environment made from its recipe.

        Raises:
            EnvironmentFailed: one cannot be made here.
            InputError: the release's sources are damaged, or nothing says where the repository is.
        """
        row = self._released.get(task.task_id)
        return self._of_release(row) if row else self._of_recipe(task)

    def _of_release(self, row: ReleasedTask) -> MadeTask:
        """From the release alone, as its gate makes it."""
        builder, rows = self._experts.builds(row)
        return MadeTask(*builder.reopen(rows), builder, rows[0], self._experts.runtime, row.recipe.python)

    def _of_recipe(self, task: Task) -> MadeTask:
        """From a clone of the repository and the recipe in the task."""
        clone_from = self._clone_from or clone_of(task, self._home)
        repository = repository_of(self._home, place_of(task, clone_from), clone_from)
        clone = clone_into(self._home, repository, clone_from or source_of(self._home, repository))
        stamp = Stamp(repo=task.repo, stage_version=STAGE_VERSION, config_hash=self._settings.build.config_hash())
        builds = builds_of_recipe(
            self._home,
            clone,
            repository,
            stamp,
            task.change_id,
            (task.base_sha, task.head_sha),
            task.python,
            task.requirements,
            task.install_commands,
            [file.path for file in files_of(task.patch)],
            writable_tree=task.writable_tree,
        )
        runtime = self._experts.runtime
        builder = Builder(self._home, clone, repository, runtime.sandbox, self._settings.build, stamp)
        return MadeTask(*builder.reopen(builds), builder, builds[0], runtime, builds[0].python)


def clone_of(task: Task, home: Home) -> str | None:
    """The home's clone, where it holds both sides of the task, or nothing else says where the repository is.

    So nothing is fetched that is there already: a task is measured again without a network.
    """
    clone = home.clone(task.repo)
    if not clone.is_dir():
        return None
    return str(clone) if not (task.url or task.repo in names()) or _holds(clone, task) else None


def _holds(clone: Path, task: Task) -> bool:
    try:
        return all(commit_of(clone, one) == one for one in (task.base_sha, task.head_sha))
    except GitFailed:
        return False


def place_of(task: Task, clone_from: str | None) -> str:
    """What names the task's repository: a name of the user's own is enough where its clone is given.

    Raises:
        InputError: nothing says where it is.
    """
    if clone_from or task.repo in names():
        return task.repo
    if not task.url:
        raise InputError(f"nothing says where the repository {task.repo!r} is: give its clone, --source PATH|URL")
    return task.url


def _tasks(home: Home, source: str) -> list[Task]:
    path = Path(source).expanduser()
    if path.is_file() or (path.is_dir() and next(path.rglob("*.parquet"), None)):
        return read_tasks(path)
    kept: list[Task] = []
    with suppress(UnknownRepository):
        kept = accepted_tasks(TableStore(home.tables), repository_of(home, source).name)
    if not kept:
        raise InputError(f"{source!r} is no release's folder, and {home.tables} has no tasks of such a repository")
    return kept
