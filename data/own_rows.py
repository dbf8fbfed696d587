"""The rows of one configuration in the tables of a repository: what the stages of one run read and write."""

from __future__ import annotations

import gc
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, TypeVar

import pyarrow.compute as pc

from perfquarry.data.errors import InputError
from perfquarry.data.home import Home
from perfquarry.data.records import Build, Change, Row, Stamp, Task, Timing, Verdict, Workload, content_id
from perfquarry.data.store import TableStore

R = TypeVar("R", bound=Row)
PART_ROWS = 1000
"""Rows of a part of the cheap stages: what a kill can lose."""
PART_SECONDS = 20.0
"""A part is written at least this often (seconds)."""
VERSIONS = {
    "mine": "2",
    "pulls": "1",
    "pulls-git": "1",
    "judge": "2",
    "build": "3",
    "generate": "2",
    "measure": "3",
    "select": "4",
    "screen": "2",
    "screen-run": "1",
    "intent": "1",
    "count": "1",
}
"""Version of the code of each stage: raised when its rows would come out differently (judge: new weights, prompts)."""
TABLES: dict[str, type[Row]] = {
    "mine": Change,
    "judge": Verdict,
    "build": Build,
    "generate": Workload,
    "measure": Timing,
}
"""Tables of the stages that take changes, in their order: each takes what the one before it kept."""


class OwnRows(ABC):
    """Reads the rows that the stages wrote with these settings."""

    @property
    @abstractmethod
    def home(self) -> Home:
        """The folder of the whole state."""

    @property
    @abstractmethod
    def store(self) -> TableStore:
        """The tables."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the repository in the tables."""

    @property
    @abstractmethod
    def hashes(self) -> dict[str, str]:
        """Configuration hash of each stage; a stage's includes those whose rows decide its own."""

    def scope(self, stage: str) -> str:
        """What claims of a stage are about: its rows of this repository and configuration in these tables."""
        return content_id(str(self.home.tables), self.name, stage, VERSIONS[stage], self.hashes[stage])

    def stamp(self, stage: str) -> Stamp:
        """What every row of the stage carries."""
        return Stamp(repo=self.name, stage_version=VERSIONS[stage], config_hash=self.hashes[stage])

    def where(self, stage: str) -> dict[str, str]:
        """Arguments that restrict a reader to the rows of this run's configuration."""
        return {"stage_version": VERSIONS[stage], "config_hash": self.hashes[stage]}

    def column(self, stage: str, name: str = "change_id", where: pc.Expression | None = None) -> set[Any]:
        """The values of a column in the rows of a stage: which changes it has looked at, if no other is named."""
        table = self.store.scan(TABLES[stage], self.name, columns=[name], where=where, **self.where(stage))
        return set(table[name].to_pylist())

    def kept(self, stage: str) -> set[str]:
        """Changes of which a stage has kept rows: of `build` those of which both sides are built."""
        if stage == "build":
            return self.column(stage) - self.column(stage, where=pc.field("status") != "kept")
        return self.column(stage, where=pc.field("status") == "kept")

    def rows_of(self, model: type[R], stage: str, change_id: str) -> list[R]:
        """Rows of a stage about one change."""
        where = pc.field("change_id") == change_id
        return list(self.store.records(model, self.name, where=where, **self.where(stage)))

    def change(self, change_id: str) -> Change:
        """The change of an id.

        Raises:
            InputError: no such change in the tables.
        """
        found = self.store.get(Change, self.name, {"change_id": change_id}, **self.where("mine"))
        if found is None:
            raise InputError(f"no change {change_id} in {self.home.tables}: run `perfquarry mine {self.name}`")
        return found

    def change_of(self, task: Task) -> Change:
        """The change of a task, whatever settings it was mined with.

        Raises:
            InputError: it is not in the tables.
        """
        found = self.store.get(Change, self.name, {"change_id": task.change_id})
        if found is None:
            raise InputError(f"no change {task.change_id} of {task.task_id} in {self.home.tables}")
        return found

    def builds_of(self, task: Task) -> list[Build]:
        """The newest builds of both sides of a task, whatever settings they were made with."""
        rows = list(self.store.records(Build, self.name, where=pc.field("change_id") == task.change_id))
        newest = {build.side: build for build in rows if build.status == "kept"}
        return [newest[side] for side in ("base", "head") if side in newest]


def append_in_parts(own: OwnRows, rows: Iterable[Row]) -> int:
    """Writes a stream in parts of `PART_ROWS`, or what came within `PART_SECONDS`; returns how many rows it had."""
    part: list[Row] = []
    written, count = time.monotonic(), 0
    gc.freeze()  # or each collection looks at all that was imported: a third of the time
    try:
        for row in rows:
            part.append(row)
            count += 1
            if len(part) >= PART_ROWS or time.monotonic() - written > PART_SECONDS:
                own.store.append(part)
                part, written = [], time.monotonic()
    finally:  # rows that came before an error are final
        gc.unfreeze()
        own.store.append(part)
    return count
