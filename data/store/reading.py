"""Reads the rows a query means from the parts of a partition, while others append and compact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from perfquarry.data.errors import StoreError
from perfquarry.data.schema import arrow_schema
from perfquarry.data.store import conform
from perfquarry.data.store.parts import Part, Partition
from perfquarry.data.store.select import Query

if TYPE_CHECKING:
    from perfquarry.data.store.select import Rows

_ATTEMPTS = 100


@dataclass(frozen=True)
class _Chosen:
    """Rows of one part."""

    part: Part
    rows: Rows
    """Row numbers within the part, ascending."""
    narrow: pa.Table
    """The columns the choice was made on, of these rows."""


def batches(partition: Partition, query: Query, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows with these columns, in the order of the parts.

    A compaction may take a part away at any time. What is left is then looked up anew,
    without the rows that were already returned: every row comes exactly once.

    Raises:
        InputError: the query's expression does not fit the table.
        StoreError: a part is damaged.
        SchemaTooNew: a newer program wrote a part.
    """
    returned = arrow_schema(query.model).empty_table().select(query.identity)
    for _ in range(_ATTEMPTS):
        try:
            for chosen in _choose(partition, query, columns, returned):
                start = 0
                for batch in _read(partition, query, chosen, columns):
                    done = chosen.narrow.select(query.identity).slice(start, len(batch))
                    start += len(batch)
                    returned = pa.concat_tables([returned, done])
                    yield batch
            return
        except FileNotFoundError:
            continue
    raise StoreError(f"the parts of {query.model.TABLE} kept vanishing while they were read: is a compaction looping?")


def _choose(partition: Partition, query: Query, columns: Sequence[str], returned: pa.Table) -> list[_Chosen]:
    parts = partition.live()
    for part in parts:
        conform.check(query.model, part)
    if not parts:
        return []
    names = query.columns()
    pieces = [_narrow(partition, query, part, names) for part in parts]
    table = pa.concat_tables(pieces)
    rows = query.select(table, returned)
    ends = np.cumsum([len(piece) for piece in pieces])
    shares = np.split(rows, np.searchsorted(rows, ends[:-1]))
    starts = ends - [len(piece) for piece in pieces]
    return [
        _Chosen(part, share - start, piece if len(share) == len(piece) else piece.take(share - start))
        for part, share, start, piece in zip(parts, shares, starts, pieces, strict=True)
        if len(share)
    ]


def _narrow(partition: Partition, query: Query, part: Part, names: Sequence[str]) -> pa.Table:
    schema = pa.schema([arrow_schema(query.model).field(name) for name in names])
    with partition.open(part.path) as file:
        groups = range(file.num_row_groups)
        return pa.Table.from_batches(list(conform.read(query.model, part, file, names, groups)), schema)


def _read(partition: Partition, query: Query, chosen: _Chosen, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The chosen rows; only row groups that hold some are read, and no file if all columns are known already."""
    if set(columns) <= set(chosen.narrow.schema.names):
        yield from chosen.narrow.select(columns).combine_chunks().to_batches()
        return
    with partition.open(chosen.part.path) as file:
        start = 0
        for group in range(file.num_row_groups):
            end = start + file.metadata.row_group(group).num_rows
            if len(rows := _within(chosen.rows, start, end)):
                yield from _taken(conform.read(query.model, chosen.part, file, columns, [group]), rows - start)
            start = end


def _taken(pieces: Iterator[pa.RecordBatch], rows: Rows) -> Iterator[pa.RecordBatch]:
    start = 0
    for piece in pieces:
        wanted = _within(rows, start, start + len(piece))
        if len(wanted):
            yield piece if len(wanted) == len(piece) else piece.take(pa.array(wanted - start))
        start += len(piece)


def _within(rows: Rows, start: int, end: int) -> Rows:
    return rows[slice(*np.searchsorted(rows, [start, end]))]
