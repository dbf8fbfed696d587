"""One partition's folder of immutable parts: how a part appears, is listed, is replaced and is removed.

A part appears whole (`places.appearing`). Its name orders it in time. A part that a
compaction wrote carries the names of the parts it replaces; those are ignored from the
moment it appears, whether or not they are removed already.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from perfquarry.data.errors import StoreError, StoreUnreachable
from perfquarry.data.files import is_locked
from perfquarry.data.store.places import appearing

ROW_GROUP_BYTES = 16 * 1024 * 1024
"""Size of a row group in memory: the unit in which parts are written and read."""
_YOUNG_SECONDS = 60.0
_ABANDONED_SECONDS = 24 * 3600.0
_TABLE, _VERSION, _REPLACES = b"perfquarry.table", b"perfquarry.schema_version", b"perfquarry.replaces"


@dataclass(frozen=True)
class Part:
    """What a part's footer says."""

    name: str
    path: str
    table: str
    version: int
    """The record's SCHEMA_VERSION when it was written."""
    replaces: frozenset[str]
    schema: pa.Schema


class _Clock:
    """Ticks of 1/4096 ms since 1970, strictly increasing within the process."""

    def __init__(self) -> None:
        self._last = 0
        self._lock = threading.Lock()

    def tick(self) -> int:
        with self._lock:
            self._last = max(time.time_ns() * 4096 // 1_000_000, self._last + 1)
            return self._last


_clock = _Clock()


def part_name(after: str | None = None) -> str:
    """A new part's name, with a version 7 UUID (RFC 9562, method 3) of now, or of just after another part."""
    tick = _clock.tick() if after is None else _tick_of(after) + 1
    bits = (tick >> 12) << 80 | 7 << 76 | (tick & 0xFFF) << 64 | 0b10 << 62 | secrets.randbits(62)
    return f"part-{uuid.UUID(int=bits)}.parquet"


def _tick_of(name: str) -> int:
    bits = uuid.UUID(name.removeprefix("part-").removesuffix(".parquet")).int
    return (bits >> 80) << 12 | (bits >> 64) & 0xFFF


class Partition:
    """The parts of one table and one repository.

    Args:
        filesystem: where the folder lies.
        folder: path within the file system.
    """

    def __init__(self, filesystem: fs.FileSystem, folder: str) -> None:
        self._filesystem = filesystem
        self._folder = folder
        self._local = isinstance(filesystem, fs.LocalFileSystem)
        self._footers: dict[str, Part] = {}

    def names(self) -> list[str]:
        """Names of all parts, oldest first.

        A listing may miss a file that appears and one that goes while it is made. Two equal
        ones in a row cannot have missed a compaction's part and a part it replaced. On an
        object store, where a listing takes long, it is enough that nothing has gone in between:
        what was there before a listing began is in it.
        """
        before, names = self._listed(), self._listed()
        while not (before == names if self._local else before <= names):
            before, names = names, self._listed()
        return sorted(names)

    def _listed(self) -> set[str]:
        names = (info.base_name for info in self._files())
        return {name for name in names if name.startswith("part-") and name.endswith(".parquet")}

    def _files(self) -> list[fs.FileInfo]:
        selector = fs.FileSelector(self._folder, allow_not_found=True)
        try:
            try:
                found = self._filesystem.get_file_info(selector)
            except FileNotFoundError:  # the first writer made it between pyarrow's look at it and its look for it
                found = self._filesystem.get_file_info(selector)
        except OSError as error:
            raise self._broken(f"cannot list the parts in {self._folder}: {error}") from error
        return [info for info in found if info.type == fs.FileType.File]

    def _broken(self, text: str) -> StoreError:
        return StoreError(text) if self._local else StoreUnreachable(text)

    def live(self) -> list[Part]:
        """The parts that no other part replaces, oldest first.

        Raises:
            FileNotFoundError: a part was compacted away meanwhile; list again.
            StoreError: a part is damaged.
        """
        parts = [self._part(name) for name in self.names()]
        replaced = frozenset[str]().union(*(part.replaces for part in parts))
        return [part for part in parts if part.name not in replaced]

    def _part(self, name: str) -> Part:
        if name not in self._footers:
            path = f"{self._folder}/{name}"
            with self.open(path) as file:
                metadata = file.schema_arrow.metadata or {}
                self._footers[name] = Part(
                    name=name,
                    path=path,
                    table=metadata.get(_TABLE, b"?").decode(),
                    version=int(metadata.get(_VERSION, b"1")),
                    replaces=frozenset(json.loads(metadata.get(_REPLACES, b"[]"))),
                    schema=file.schema_arrow,
                )
        return self._footers[name]

    @contextmanager
    def open(self, path: str) -> Iterator[pq.ParquetFile]:
        """A part, for reading.

        Raises:
            FileNotFoundError: it was compacted away.
            StoreError: it is damaged, or a read within the block failed.
        """
        try:
            with self._filesystem.open_input_file(path) as source:
                yield pq.ParquetFile(source, pre_buffer=False)
        except (FileNotFoundError, StoreError):
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            if not self._local and self._gone(path):  # an object store forgets what is being read
                raise FileNotFoundError(path) from error
            raise self._broken(
                f"cannot read the part {path}: {error}. If the file is damaged, move it out of the table's folder "
                "and run the stage again: the rows it held are then made again."
            ) from error

    def _gone(self, path: str) -> bool:
        try:
            return bool(self._filesystem.get_file_info(path).type == fs.FileType.NotFound)
        except OSError:
            return False

    def write(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema, part: PartHead) -> str:
        """Writes a part, visible only when whole; memory holds one row group.

        Returns:
            Its name.
        """
        metadata = {_TABLE: part.table, _VERSION: str(part.version), _REPLACES: json.dumps(sorted(part.replaces))}
        try:
            with appearing(self._filesystem, self._folder, part.name) as sink:
                _write_parquet(sink, batches, schema.with_metadata(metadata))
        except FileNotFoundError:
            raise
        except OSError as error:
            raise self._broken(f"cannot write a part of the table {part.table} into {self._folder}: {error}") from error
        return part.name

    def remove(self, names: Iterable[str]) -> None:
        """Removes parts; those already gone are passed over."""
        for name in names:
            try:
                self._filesystem.delete_file(f"{self._folder}/{name}")
            except FileNotFoundError:
                continue
            except OSError as error:
                raise self._broken(f"cannot remove {self._folder}/{name}: {error}") from error
            self._footers.pop(name, None)

    def clean(self) -> int:
        """Removes what writers that died left behind; the number of files removed."""
        left = [info for info in self._files() if info.base_name.startswith(".part-") and self._abandoned(info)]
        self.remove(info.base_name for info in left)
        return len(left)

    def _abandoned(self, info: fs.FileInfo) -> bool:
        age = time.time() - info.mtime_ns / 1e9
        if not self._local or age < _YOUNG_SECONDS:  # a young file may not be locked yet
            return bool(age > _ABANDONED_SECONDS)
        return not is_locked(Path(info.path))


@dataclass(frozen=True)
class PartHead:
    """What a new part says of itself."""

    name: str
    table: str
    version: int
    replaces: frozenset[str] = frozenset()


def _write_parquet(sink: IO[bytes] | Any, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
    with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        for group in _row_groups(batches):
            writer.write_table(group.replace_schema_metadata(schema.metadata), row_group_size=len(group))


def _row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The batches in tables of about ROW_GROUP_BYTES."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        rows = max(1, int(len(batch) * ROW_GROUP_BYTES / max(1, batch.nbytes)))
        for start in range(0, len(batch), rows):
            piece = batch.slice(start, rows)
            waiting.append(piece)
            size += piece.nbytes
            if size >= ROW_GROUP_BYTES:
                yield pa.Table.from_batches(waiting)
                waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)
