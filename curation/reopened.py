"""A task of a home made runnable again, from the rows that say how its sides were built."""

from __future__ import annotations

from perfquarry.curation.in_force import made_of
from perfquarry.curation.names import repository_of
from perfquarry.data.errors import InputError
from perfquarry.data.home import Home
from perfquarry.data.records import Build, Stamp, Task
from perfquarry.data.registry import names
from perfquarry.data.store import TableStore
from perfquarry.harness.building.builder import Builder
from perfquarry.harness.contracts import BuiltSide
from perfquarry.harness.runtime import Runtime
from perfquarry.harness.settings import BuildSettings, SandboxSettings


def reopen(home: Home, store: TableStore, task: Task) -> tuple[BuiltSide, BuiltSide]:
    """Base and head of a task of this home, made again where they were removed.

    Raises:
        InputError: what the task was built from is no longer in this home.
        EnvironmentFailed: a side cannot be made again here.
    """
    clone = home.clone(task.repo)
    builds = {row.side: row for row in made_of(store, Build, task.repo, [task])}
    if not builds or not clone.is_dir():
        raise InputError(f"the builds or the clone of {task.task_id} are not in {home.root}: curate it here first")
    repository = repository_of(home, task.repo if task.repo in names() or not task.url else task.url)
    stamp = Stamp.model_validate(builds["base"].model_dump(include=set(Stamp.model_fields)))
    sandbox = Runtime(home, SandboxSettings()).sandbox
    builder = Builder(home, clone, repository, sandbox, BuildSettings(), stamp)
    return builder.reopen(list(builds.values()))
