"""A release as the gate reads it: its manifest can be read, the rest may be damaged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from perfquarry.curation.release import folder as files
from perfquarry.curation.release import task_folders
from perfquarry.curation.release.manifest import Manifest
from perfquarry.data.records import ReleasedFolder, ReleasedTask


class NotRun(Exception):
    """A check that could not be done, and why; it is neither passed nor failed."""


@dataclass(frozen=True)
class Opened:
    """What was read of it is kept."""

    folder: Path

    @cached_property
    def manifest(self) -> Manifest:
        """`release.json`."""
        return Manifest.read(self.folder)

    @cached_property
    def tables(self) -> dict[str, pa.Table]:
        """By configuration; empty where it has no file."""
        return {
            name: files.read_table(self.folder, name) if files.is_there(self.folder, name) else schema.empty_table()
            for name, schema in files.CONFIGURATIONS.items()
        }

    @cached_property
    def tasks(self) -> list[ReleasedTask]:
        """Of all classes."""
        return files.read_every_task(self.folder)

    @cached_property
    def folders(self) -> list[ReleasedFolder]:
        """Of all tasks.

        Raises:
            NotRun: the release has none.
        """
        rows = files.read(self.folder, ReleasedFolder, "tasks")
        if not rows and not (self.folder / task_folders.FOLDER).exists():
            raise NotRun("the release has no task folders: it was made without --images-to")
        return rows
