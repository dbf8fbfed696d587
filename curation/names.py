"""Which repository or task a name of the command line means, in a home."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

import pyarrow as pa

from perfquarry.curation.in_force import newest_tasks
from perfquarry.data.errors import InputError, UnknownRepository, UnknownTask
from perfquarry.data.home import Home
from perfquarry.data.records import Change, Task
from perfquarry.data.registry import Repository, named, resolve
from perfquarry.data.store import TableStore


class _NoPandas(MetaPathFinder):
    """pyarrow's first array imports pandas, half of the time of a short command, to know its types when it meets them.

    Whoever asks pyarrow for frames afterwards gets them: it tries again then.
    """

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError("not needed to read rows", name=name)
        return None


def tables_of(home: Home) -> TableStore:
    """The tables, to look something up in them."""
    if "pandas" not in sys.modules:
        finder = _NoPandas()
        sys.meta_path.insert(0, finder)
        try:
            pa.array([0])
        finally:
            sys.meta_path.remove(finder)
    return TableStore(home.tables)


def repository_of(home: Home, text: str, source: str | None = None) -> Repository:
    """What `data.registry.resolve` says with the recipes of the home, else a name of the user's own.

    Args:
        home: its recipes count, and what was cloned into it under a name is known by it.
        text: name, URL or folder.
        source: where the repository is cloned from, if that was said: then any name will do.

    Raises:
        UnknownRepository: none of these.
        InputError: the recipe has an unknown key or a wrong value.
    """
    try:
        return resolve(text, home.recipes)
    except UnknownRepository:
        own = named(text)
        if own is None or not (source or home.clone(own.name).is_dir()):
            raise
        return own


def known(home: Home, repo: str) -> tuple[TableStore, str]:
    """The tables and the repository's name in them.

    Raises:
        InputError: the tables hold nothing of it.
    """
    store, name = tables_of(home), repository_of(home, repo).name
    if name not in store.repositories(Change):
        raise InputError(f"nothing of {name} in {home.tables}: run `perfquarry curate {repo}` first")
    return store, name


def find_task(home: Home, task_id: str) -> tuple[TableStore, Task]:
    """The tables, and the task whose id or head begins so.

    Raises:
        UnknownTask: none or several do.
    """
    store = tables_of(home)
    found = [
        task
        for repo in store.repositories(Task)
        for task in newest_tasks(store, repo)
        if task.task_id.startswith(task_id) or task.head_sha.startswith(task_id)
    ]
    exact = [task for task in found if task.task_id == task_id]
    if len(exact or found) != 1:
        near = ", ".join(task.task_id for task in found[:5])
        raise UnknownTask(
            f"{len(found)} tasks begin with {task_id!r}: {near}"
            if found
            else f"no task {task_id!r} in {home.tables}: `perfquarry tasks REPO` lists them"
        )
    return store, (exact or found)[0]
