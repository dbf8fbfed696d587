"""The store: append rows, read them back, ask what is still to do, compact."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from perfquarry.data.errors import InputError, StoreError
from perfquarry.data.records import Row, content_id
from perfquarry.data.schema import arrow_schema, from_table, to_table
from perfquarry.data.store import reading
from perfquarry.data.store.compaction import compact
from perfquarry.data.store.parts import PartHead, Partition, part_name
from perfquarry.data.store.places import place_of
from perfquarry.data.store.select import Query

R = TypeVar("R", bound=Row)


class TableStore:
    """Tables of rows as Parquet parts: `<root>/<table>/repo=<name>/part-<uuid7>.parquet`.

    Parts are immutable and appear whole, so any number of processes may read and append at
    once, and a kill at any moment loses at most the append it interrupts. Rows that agree
    in their KEY, stage version and configuration are one row: readers return the newest.
    Rows come in the order of their parts, which is the order in which they were appended.

    Every method that reads raises StoreError for a part that is damaged (it names the
    file), SchemaTooNew for one of a newer perfquarry, and InputError for columns or
    expressions that do not fit the table.

    Args:
        root: the folder of the tables (`Home.tables`), or a URI such as `s3://bucket/tables`
            (`data.store.places.place_of`).
        filesystem: where `root` lies, if not where it says.
    """

    def __init__(self, root: Path | str, filesystem: fs.FileSystem | None = None) -> None:
        self._filesystem, path = (filesystem, str(root)) if filesystem else place_of(root)
        self._root = path.rstrip("/")
        self._partitions: dict[tuple[str, str], Partition] = {}

    def append(self, rows: Sequence[Row]) -> int:
        """Adds rows; the rows of one table and repository appear together, as one part.

        Returns:
            The number of rows.

        Raises:
            InputError: a value does not fit its column.
            StoreError: a part cannot be written.
        """
        groups: dict[tuple[type[Row], str], list[Row]] = {}
        for row in rows:
            groups.setdefault((type(row), row.repo), []).append(row)
        for (model, repo), members in groups.items():
            table = to_table(members)
            head = PartHead(part_name(), model.TABLE, model.SCHEMA_VERSION)
            self._partition(model, repo).write(table.to_batches(), table.schema, head)
            del table
        pa.default_memory_pool().release_unused()  # or a long crawl keeps what its largest part took
        return len(rows)

    def scan(
        self,
        model: type[Row],
        repo: str,
        *,
        columns: Sequence[str] | None = None,
        stage_version: str | None = None,
        config_hash: str | None = None,
        where: pc.Expression | None = None,
    ) -> pa.Table:
        """Rows as one Arrow table; only `columns`, the key and what `where` names are read from the disk."""
        names = _checked(model, columns if columns is not None else list(model.model_fields))
        query = Query(model, stage_version, config_hash, where)
        schema = pa.schema([arrow_schema(model).field(name) for name in names])
        return pa.Table.from_batches(list(reading.batches(self._partition(model, repo), query, names)), schema)

    def records(
        self,
        model: type[R],
        repo: str,
        *,
        stage_version: str | None = None,
        config_hash: str | None = None,
        where: pc.Expression | None = None,
    ) -> Iterator[R]:
        """Rows as records, streamed: memory holds the table's keys and one row group, whatever the table's size."""
        query = Query(model, stage_version, config_hash, where)
        for batch in reading.batches(self._partition(model, repo), query, list(model.model_fields)):
            yield from from_table(model, pa.Table.from_batches([batch]))

    def get(
        self,
        model: type[R],
        repo: str,
        key: Mapping[str, Any],
        *,
        stage_version: str | None = None,
        config_hash: str | None = None,
    ) -> R | None:
        """The newest row whose columns have the values of `key`, or None."""
        if not _checked(model, list(key)):
            raise InputError(f"an empty key names no row of the table {model.TABLE}")
        where = pc.scalar(True)
        for name, value in key.items():
            where = where & (pc.field(name) == pc.scalar(value))
        found = None
        for row in self.records(model, repo, stage_version=stage_version, config_hash=config_hash, where=where):
            found = row
        return found

    def count(
        self,
        model: type[Row],
        repo: str,
        *,
        stage_version: str | None = None,
        config_hash: str | None = None,
        where: pc.Expression | None = None,
    ) -> int:
        """Number of rows; reads keys only."""
        query = Query(model, stage_version, config_hash, where)
        return sum(len(batch) for batch in reading.batches(self._partition(model, repo), query, model.KEY))

    def missing(
        self,
        input_table: type[Row],
        output_table: type[Row],
        repo: str,
        *,
        on: str = "change_id",
        source: Mapping[str, str] | None = None,
        target: Mapping[str, str] | None = None,
        at_least: int = 1,
        where: pc.Expression | None = None,
    ) -> list[str]:
        """What is still to do: keys of kept input rows of which the output has no row, kept or rejected.

        Args:
            input_table: the table a stage reads.
            output_table: the table it writes.
            repo: the repository's name.
            on: the column both have.
            source: `stage_version` and `config_hash` of the input rows that count; all by default.
            target: the same of the output rows.
            at_least: number of kept input rows a key needs (2: both sides of a build).
            where: a further condition on the input rows.

        Returns:
            The keys, each once, in the order in which the input has them first.
        """
        kept = pc.field("status") == "kept"
        condition = kept if where is None else kept & where
        keys = self.scan(input_table, repo, columns=[on], where=condition, **(source or {}))[on]
        done = self.scan(output_table, repo, columns=[on], **(target or {}))[on]
        counts = pc.value_counts(keys.filter(pc.invert(pc.is_in(keys, value_set=done.combine_chunks()))))
        enough = counts.filter(pc.greater_equal(counts.field("counts"), at_least))
        missing: list[str] = enough.field("values").to_pylist()
        return missing

    def repositories(self, model: type[Row]) -> list[str]:
        """Names of the repositories the table has rows of, sorted."""
        folders = self._filesystem.get_file_info(fs.FileSelector(f"{self._root}/{model.TABLE}", allow_not_found=True))
        names = [unquote(folder.base_name[5:]) for folder in folders if folder.base_name.startswith("repo=")]
        return sorted(name for name in names if self._partition(model, name).names())

    def state(self, repo: str) -> str:
        """Digest of the names of all parts of a repository: equal ones mean equal rows in all tables."""
        found = self._filesystem.get_file_info(fs.FileSelector(self._root, allow_not_found=True))
        folders = sorted(info.base_name for info in found if info.type == fs.FileType.Directory)
        name = quote(repo, safe="")
        parts = {table: Partition(self._filesystem, f"{self._root}/{table}/repo={name}").names() for table in folders}
        return content_id(parts)

    def parts(self, model: type[Row], repo: str) -> int:
        """Number of parts: what compaction is for."""
        return len(self._partition(model, repo).names())

    def compact(self, model: type[Row], repo: str) -> int:
        """Makes one part of many, in today's schema, without duplicates; readers and writers may go on meanwhile.

        Returns:
            The number of parts that were replaced; 0 when there was nothing to do.
        """
        return compact(self._partition(model, repo), model)

    def _partition(self, model: type[Row], repo: str) -> Partition:
        name = quote(repo, safe="")
        if not name or len(name) > 200:
            raise StoreError(f"{repo[:80]!r} cannot be a folder's name: use 1 to 200 letters and digits")
        key = (model.TABLE, repo)
        if key not in self._partitions:
            partition = Partition(self._filesystem, f"{self._root}/{model.TABLE}/repo={name}")
            partition.clean()
            self._partitions[key] = partition
        return self._partitions[key]


def _checked(model: type[Row], columns: Sequence[str]) -> list[str]:
    if unknown := [name for name in columns if name not in model.model_fields]:
        raise InputError(f"the table {model.TABLE} has no column {', '.join(unknown)}: {', '.join(model.model_fields)}")
    return list(columns)
