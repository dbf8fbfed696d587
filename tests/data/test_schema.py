"""Records to Arrow and back: nothing is lost, and what cannot be held is refused by name."""

from __future__ import annotations

import importlib
import pkgutil
import types
import typing
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum, StrEnum
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import Field
from pydantic.fields import FieldInfo

from perfquarry.data import records as all_records
from perfquarry.data.errors import InputError, StoreError
from perfquarry.data.records import Change, Record, Row, Timing, Verdict, inputs
from perfquarry.data.records.release import InputWorkload
from perfquarry.data.schema import UnsupportedType, arrow_schema, from_table, row_models, to_table


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Inner(Record):
    number: int | None = None
    names: list[str | None] = Field(default_factory=list)


class Everything(Record):
    """All that a column can be."""

    text: str = Field(description="Some text.")
    number: int
    real: float
    flag: bool
    at: datetime
    raw: bytes
    colour: Colour
    choice: Literal["a", "b"]
    level: Literal[1, 2]
    maybe_raw: bytes | None
    maybe_at: datetime | None
    maybe_flag: bool | None
    maybe_list: list[int] | None
    maybe_colour: Colour | None
    inner: Inner
    maybe_inner: Inner | None
    inners: list[Inner]
    deep: list[list[Inner]]
    counts: dict[str, int]
    by_name: dict[str, Inner]
    maybe_map: dict[str, list[float]] | None
    lists: dict[str, list[Inner | None]]


SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(st.characters(exclude_categories=["Cs"]), max_size=20),  # lone surrogates are no text in UTF-8
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
    bytes: st.binary(max_size=20),
    datetime: st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=5))])).filter(
        lambda value: 1 < value.year < 9999
    ),
}


EXAMPLES: dict[Any, st.SearchStrategy[str]] = {
    inputs.Name: st.from_regex(r"[a-z0-9]{1,9}(__|-|\.)[a-z0-9]{1,9}", fullmatch=True),
    inputs.Codebase: st.just("owner/name"),
    inputs.ObjectId: st.from_regex(r"[0-9a-f]{40}", fullmatch=True),
    inputs.Pinned: st.from_regex(r"[a-z]{1,9}(\[[a-z]{1,3}\])?==[0-9]{1,2}\.[0-9]{1,2}", fullmatch=True),
    inputs.Interpreter: st.from_regex(r"3\.[0-9]{1,2}\.[0-9]{1,2}(rc1)?", fullmatch=True),
    inputs.BuildVersion: st.sampled_from(["", "1.2.dev0", "1!2.0+local.1"]),
    inputs.Folder: st.sampled_from([".", "src", "lib/python", "src/"]),
    inputs.CodePlace: st.sampled_from(["a.py::t", "tests/test a.py::Test::test_b[-x /..:é]"]),
    inputs.Address: st.sampled_from(["", "https://example.org/a/b.git", "git@example.org:a/b", "ssh://git@h:22/a"]),
    inputs.DebianPackage: st.sampled_from(["g++", "libxml2-dev"]),
    inputs.Sha256: st.from_regex(r"[0-9a-f]{64}", fullmatch=True),
    inputs.ImageReference: st.just(f"registry.example.org/a/b@sha256:{'0' * 64}"),
    inputs.ImageDigest: st.sampled_from(["", f"sha256:{'0' * 64}"]),
}
"""Values of the types that refuse others."""


def of_field(info: FieldInfo) -> st.SearchStrategy[Any]:
    found = [strategy for kind, strategy in EXAMPLES.items() if typing.get_args(kind)[1] in info.metadata]
    return found[0] if found else values(info.annotation)


def values(annotation: Any) -> st.SearchStrategy[Any]:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation in EXAMPLES:
        return EXAMPLES[annotation]
    if annotation in SCALARS:
        return SCALARS[annotation]
    if annotation is type(None):
        return st.none()
    if origin in (typing.Union, types.UnionType):
        return st.one_of([values(argument) for argument in arguments])
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is list:
        return st.lists(values(arguments[0]), max_size=3)
    if origin is dict:
        return st.dictionaries(values(arguments[0]), values(arguments[1]), max_size=3)
    if issubclass(annotation, Enum):
        return st.sampled_from(annotation)
    return records(annotation)


def records(model: type[Record]) -> st.SearchStrategy[Any]:
    fields = {name: of_field(info) for name, info in model.model_fields.items()}
    if issubclass(model, InputWorkload):
        fields["code"] = EXAMPLES[inputs.CodePlace]
    if model is Verdict:
        fields["probability"] = st.floats(0, 1)
    return st.builds(model, **fields)


MODELS = [
    model
    for name in all_records.__all__
    if isinstance(model := getattr(all_records, name), type) and issubclass(model, Record) and model.model_fields
]


@pytest.mark.parametrize("model", [*MODELS, Everything], ids=lambda model: model.__name__)
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(source=st.data())
def test_rows_come_back_as_they_were(model: type[Record], source: st.DataObject) -> None:
    rows = source.draw(st.lists(records(model), max_size=4))
    table = to_table(rows, model)
    table.validate(full=True)
    assert table.schema.equals(arrow_schema(model), check_metadata=True)
    assert list(from_table(model, table)) == rows
    assert list(from_table(model, table.slice(1))) == rows[1:]


def test_all_tables_are_among_the_records_tested() -> None:
    for module in pkgutil.iter_modules(all_records.__path__):  # the package imports them when they are needed
        importlib.import_module(f"perfquarry.data.records.{module.name}")
    tables = {model.TABLE for model in MODELS if issubclass(model, Row) and model is not Row}
    assert tables == {
        model.TABLE for model in Row.__subclasses__() if model.__module__.startswith("perfquarry.data.records.")
    }
    assert tables == set(row_models())
    for model in MODELS:
        if issubclass(model, Row) and model is not Row:
            assert set(model.KEY) <= set(model.model_fields)


def test_types_and_descriptions_follow_the_record() -> None:
    schema = arrow_schema(Everything)
    assert schema.field("text").metadata == {b"description": b"Some text."}
    assert schema.field("number").metadata is None
    assert schema.field("at").type == pa.timestamp("us", tz="UTC")
    assert schema.field("level").type == pa.int64()
    assert not schema.field("choice").nullable
    assert schema.field("maybe_inner").nullable
    assert schema.field("deep").type.value_type.value_type == schema.field("inner").type
    assert arrow_schema(Change).field("title").type == pa.string()


def test_a_table_with_fewer_columns_takes_the_defaults() -> None:
    table = pa.table({"names": [["a"]]})
    assert list(from_table(Inner, table)) == [Inner(number=None, names=["a"])]
    with pytest.raises(StoreError, match="no valid Timing"):
        list(from_table(Timing, pa.table({"workload_id": ["w"]})))


@pytest.mark.parametrize(
    ("annotation", "complaint"),
    [
        (set[str], r"Odd\.field has the type set\[str\]"),
        (int | str, r"Odd\.field is a union"),
        (int | str | None, r"Odd\.field is a union"),
        (dict[int, str], r"Odd\.field has the type dict"),
        (Literal["a", 1], r"Odd\.field allows the values"),
        (list[object], r"Odd\.field has the type <class 'object'>"),
        (Record, r"Odd\.field has the type"),
    ],
)
def test_a_type_without_a_counterpart_is_refused_by_name(annotation: Any, complaint: str) -> None:
    odd = type("Odd", (Record,), {"__annotations__": {"field": annotation}})
    with pytest.raises(UnsupportedType, match=complaint):
        arrow_schema(odd)


def test_rows_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="pass the model"):
        to_table([])
    with pytest.raises(InputError, match="rows of Inner do not fit"):
        to_table([Inner(number=2**63)])
    with pytest.raises(InputError, match="surrogates"):
        to_table([Inner(names=["\ud800"])])
    with pytest.raises(InputError, match="do not belong into a table of Inner"):
        to_table([Inner(), Record()])
