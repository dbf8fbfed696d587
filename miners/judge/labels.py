"""Changes with labels, by which judges are evaluated."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BeforeValidator, TypeAdapter, ValidationError

from perfquarry.data.errors import InputError
from perfquarry.data.records import Record


class LabelRow(Record):
    """One row of a file of labels; further columns are passed over."""

    repo: str
    """Registry name, URL or path."""
    sha: str
    label: Annotated[bool | None, BeforeValidator(lambda label: None if label == "unsure" else label)]
    """Also 'yes' and 'no'; null and 'unsure' count nowhere."""
    source: str | None = None
    """Where to clone from instead."""
    weight: float = 1.0
    """Changes of the history that the label stands for."""


def read_labels(file: Path) -> list[LabelRow]:
    """The rows of a file.

    Raises:
        InputError: it cannot be read, or a row is no label.
    """
    try:
        rows = pq.read_table(file).to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"cannot read the labels {file}: {error}") from error
    known = [{name: value for name, value in row.items() if name in LabelRow.model_fields} for row in rows]
    try:
        return TypeAdapter(list[LabelRow]).validate_python(known)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        raise InputError(f"{file}, row {int(first['loc'][0]) + 1}: {first['loc'][1:]}: {first['msg']}") from None
