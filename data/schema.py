"""Arrow schemas derived from the records, and rows to Arrow and back. The records are the only source."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Any, Literal, TypeVar, cast

import pyarrow as pa
from pydantic import ValidationError

from perfquarry.data import records
from perfquarry.data.errors import InputError, StoreError
from perfquarry.data.records import Record, Row

R = TypeVar("R", bound=Record)

TIMESTAMP = pa.timestamp("us", tz="UTC")
_PRIMITIVES: dict[Any, pa.DataType] = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    bytes: pa.binary(),
    datetime: TIMESTAMP,
}


class UnsupportedType(InputError, TypeError):
    """A record has a field whose type has no Arrow counterpart here."""


@cache
def row_models() -> dict[str, type[Row]]:
    """The models of all tables, by the table's name."""
    found = [getattr(records, name) for name in records.__all__]
    models = [one for one in found if isinstance(one, type) and issubclass(one, Row) and one is not Row]
    return {model.TABLE: model for model in sorted(models, key=lambda one: one.TABLE)}


@cache
def arrow_schema(model: type[Record]) -> pa.Schema:
    """The Arrow schema of a record: one field each, its description as the field's metadata.

    Optional fields are nullable, all others are not. Literals and enumerations take the
    type of their values, nested records are structs, `dict[str, X]` is a map.

    Raises:
        UnsupportedType: a field's type has no Arrow counterpart; names the record and the field.
    """
    return pa.schema([_field(model, name) for name in model.model_fields])


def _field(model: type[Record], name: str) -> pa.Field:
    info = model.model_fields[name]
    kind, nullable = _arrow_type(info.annotation, f"{model.__name__}.{name}")
    metadata = {"description": info.description} if info.description else None
    return pa.field(name, kind, nullable=nullable, metadata=metadata)


def _arrow_type(annotation: Any, where: str) -> tuple[pa.DataType, bool]:
    """The Arrow type of an annotation, and whether it may be null."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation in _PRIMITIVES:
        return _PRIMITIVES[annotation], False
    if origin is typing.Annotated:
        return _arrow_type(arguments[0], where)
    if origin in (typing.Union, types.UnionType):
        return _optional(arguments, where), True
    if origin is Literal:
        return _values_type(arguments, where), False
    if origin is list:
        return pa.list_(_element("element", arguments[0], where)), False
    if origin is dict and arguments[0] is str:
        return pa.map_(pa.string(), _element("value", arguments[1], where)), False
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _values_type([member.value for member in annotation], where), False
    if isinstance(annotation, type) and issubclass(annotation, Record) and annotation.model_fields:
        return pa.struct(list(arrow_schema(annotation))), False
    raise UnsupportedType(
        f"{where} has the type {annotation!r}, which tables cannot hold. Use str, int, float, bool, bytes, datetime, "
        "a Literal or enumeration of these, a Record with fields, or list, dict[str, …] or Optional of them."
    )


def _optional(arguments: tuple[Any, ...], where: str) -> pa.DataType:
    others = [argument for argument in arguments if argument is not type(None)]
    if len(others) != 1 or len(arguments) != 2:
        raise UnsupportedType(f"{where} is a union of several types; a column has one. Use 'X | None' or a Record.")
    return _arrow_type(others[0], where)[0]


def _values_type(values: Sequence[Any], where: str) -> pa.DataType:
    kinds = {type(value) for value in values}
    kind = kinds.pop()
    if kinds or kind not in _PRIMITIVES:
        raise UnsupportedType(f"{where} allows the values {list(values)!r}; they must be of one plain type.")
    return _PRIMITIVES[kind]


def _element(name: str, annotation: Any, where: str) -> pa.Field:
    kind, nullable = _arrow_type(annotation, where)
    return pa.field(name, kind, nullable=nullable)


def to_table(rows: Sequence[R], model: type[R] | None = None) -> pa.Table:
    """Rows of one record type as an Arrow table with its schema; `model` is needed for no rows only.

    Datetimes without a zone are taken as UTC.

    Raises:
        InputError: rows of different types, none at all and no `model`, or a value that does
            not fit its column (an integer beyond 64 bits, a lone surrogate in a text).
    """
    kind: type[Record] | None = model or (type(rows[0]) if rows else None)
    if kind is None:
        raise InputError("an empty sequence has no schema: pass the model")
    if wrong := {type(row).__name__ for row in rows if type(row) is not kind}:
        raise InputError(f"rows of {', '.join(sorted(wrong))} do not belong into a table of {kind.__name__}")
    try:
        return pa.Table.from_pylist([row.model_dump() for row in rows], schema=arrow_schema(kind))
    except (pa.ArrowException, OverflowError, UnicodeError) as error:
        raise InputError(f"rows of {kind.__name__} do not fit their columns: {error}") from error


def from_table(model: type[R], table: pa.Table) -> Iterator[R]:
    """The rows of a table as records, validated; columns that are missing take their defaults.

    Raises:
        StoreError: a row is no valid record.
    """
    for batch in table.to_batches(max_chunksize=2048):
        for values in _plain(batch):
            try:
                yield model.model_validate(values)
            except ValidationError as error:
                raise StoreError(f"a row is no valid {model.__name__}: {error}") from error


def _plain(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    if any(map(_has_map, batch.schema.types)):
        return cast("list[dict[str, Any]]", batch.to_pylist(maps_as_pydicts="strict"))
    return cast("list[dict[str, Any]]", batch.to_pylist())  # five times as fast


def _has_map(kind: pa.DataType) -> bool:
    inside = [kind.field(at).type for at in range(kind.num_fields)]
    return pa.types.is_map(kind) or any(map(_has_map, inside))
