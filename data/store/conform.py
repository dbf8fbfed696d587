"""Parts of any version as today's columns.

The rule: a new field has a default, and parts without it take the default. Anything else
raises the record's SCHEMA_VERSION and registers a migration here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import TypeAdapter, ValidationError

from perfquarry.data.errors import SchemaTooNew, StoreError
from perfquarry.data.records import Row
from perfquarry.data.schema import arrow_schema, to_table
from perfquarry.data.store.parts import Part

Migration = Callable[[dict[str, Any]], dict[str, Any]]
"""One row's values of a version as those of the next."""

MIGRATIONS: dict[tuple[str, int], Migration] = {}
"""By (table, version it starts from). Rows are migrated while they are read; compaction makes it last."""

BATCH_ROWS = 1024


def check(model: type[Row], part: Part) -> None:
    """Whether this program can read the part.

    Raises:
        SchemaTooNew: a newer program wrote it.
        StoreError: it belongs to another table, or a migration is missing.
    """
    if part.table != model.TABLE:
        raise StoreError(f"{part.path} is a part of the table {part.table!r}, not of {model.TABLE!r}: move it there")
    if part.version > model.SCHEMA_VERSION:
        raise SchemaTooNew(
            f"{part.path} was written with version {part.version} of the table {model.TABLE}; this perfquarry knows "
            f"versions up to {model.SCHEMA_VERSION}. Update perfquarry, or use another home."
        )
    for version in range(part.version, model.SCHEMA_VERSION):
        if (model.TABLE, version) not in MIGRATIONS:
            raise StoreError(f"{part.path}: no migration from version {version} of the table {model.TABLE}")


def read(
    model: type[Row], part: Part, file: pq.ParquetFile, columns: Sequence[str], row_groups: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    """Batches of some row groups with these columns in this order, as the record has them today."""
    if part.version < model.SCHEMA_VERSION:
        for batch in file.iter_batches(BATCH_ROWS, row_groups=row_groups):
            yield from _migrated(model, part, batch.to_pylist(maps_as_pydicts="strict")).select(columns).to_batches()
        return
    present = [name for name in columns if name in part.schema.names]
    for batch in file.iter_batches(BATCH_ROWS, row_groups=row_groups, columns=present):
        yield _conformed(model, part, batch, columns)


def _migrated(model: type[Row], part: Part, rows: Iterable[dict[str, Any]]) -> pa.Table:
    for version in range(part.version, model.SCHEMA_VERSION):
        rows = map(MIGRATIONS[model.TABLE, version], rows)
    try:
        return to_table([model.model_validate(row) for row in rows], model)
    except ValidationError as error:
        raise StoreError(f"{part.path}: a row is no valid {model.__name__} after its migration: {error}") from error


def _conformed(model: type[Row], part: Part, batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    schema = pa.schema([arrow_schema(model).field(name) for name in columns])
    if batch.schema.equals(schema):
        return batch
    arrays = [_column(model, part, batch, name, schema.field(name).type) for name in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(model: type[Row], part: Part, batch: pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array:
    field = model.model_fields[name]
    if name not in batch.schema.names:
        if field.is_required():
            raise StoreError(f"{part.path} has no column {name!r}, which has no default")
        values = [field.get_default(call_default_factory=True)] * len(batch)
    elif batch.column(name).type.equals(kind):
        return batch.column(name)
    else:  # a nested record has gained a field with a default
        values = batch.column(name).to_pylist(maps_as_pydicts="strict")
    adapter = TypeAdapter[Any](list[field.annotation])  # type: ignore[name-defined]
    try:
        return pa.array(adapter.dump_python(adapter.validate_python(values)), type=kind)
    except ValidationError as error:
        raise StoreError(f"{part.path}: the column {name!r} does not fit today's {model.__name__}: {error}") from error
