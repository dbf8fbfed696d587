"""Which rows of which parts a query means, decided on narrow columns only."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from perfquarry.data.errors import InputError
from perfquarry.data.records import Row

if TYPE_CHECKING:  # numpy.typing takes a share of the command's start
    import numpy.typing as npt

    Rows = npt.NDArray[np.int64]
STAMP = ("stage_version", "config_hash")


@dataclass(frozen=True)
class Query:
    """Rows of one table and repository: those of a stage's version and configuration, and of an expression."""

    model: type[Row]
    stage_version: str | None = None
    config_hash: str | None = None
    where: Any = None
    """A `pyarrow.compute.Expression`, or None."""

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns that tell rows apart: two rows that agree in them are one, and the newer counts."""
        return (*self.model.KEY, *STAMP)

    def columns(self, wanted: Sequence[str] = ()) -> list[str]:
        """The identity, what the conditions look at, and `wanted`."""
        # An expression names its columns in its text only. A word too many costs one more column.
        words = set(re.findall(r"\w+", str(self.where))) if self.where is not None else set[str]()
        return list(dict.fromkeys([*self.identity, *words.intersection(self.model.model_fields), *wanted]))

    def select(self, table: pa.Table, passed_over: pa.Table | None = None) -> Rows:
        """Row numbers, ascending, of the rows meant; of duplicates the last one.

        Args:
            table: at least `columns()`, all parts from the oldest to the newest.
            passed_over: the identities of rows that are not wanted whatever they hold.
        """
        size = len(table)
        if size == 0:
            return np.zeros(0, np.int64)
        identities = table.select(self.identity)
        if passed_over is not None:
            identities = pa.concat_tables([identities, passed_over])
        winners = _last_of_each(_codes(identities))
        return winners[: len(table)].nonzero()[0] if self._unconditional else self._meeting(table, winners[:size])

    @property
    def _unconditional(self) -> bool:
        return self.where is None and self.stage_version is None and self.config_hash is None

    def _meeting(self, table: pa.Table, winners: npt.NDArray[np.bool_]) -> Rows:
        condition = self.where if self.where is not None else pc.scalar(True)
        for name in STAMP:
            if (value := getattr(self, name)) is not None:
                condition = condition & (pc.field(name) == value)
        numbers = [None, pa.py_buffer(np.arange(len(table), dtype=np.int64))]  # pa.array imports masked arrays, too
        numbered = table.append_column("row number", pa.Array.from_buffers(pa.int64(), len(table), numbers))
        try:
            rows: Rows = numbered.filter(condition)["row number"].to_numpy()
        except (pa.ArrowException, TypeError) as error:
            raise InputError(f"the condition {condition} does not fit the table {self.model.TABLE}: {error}") from error
        return rows[winners[rows]]


def _codes(table: pa.Table) -> Rows:
    """One number a row, below the number of rows, equal for equal rows."""
    codes = np.zeros(len(table), np.int64)
    for column in table.columns:
        encoded = pc.dictionary_encode(column.combine_chunks(), null_encoding="encode")
        if len(encoded.dictionary) > 1:
            codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy()
            if codes.max() >= len(table):  # so that the next product cannot overflow
                codes = np.unique(codes, return_inverse=True)[1]
    return codes


def _last_of_each(codes: Rows) -> npt.NDArray[np.bool_]:
    rows = np.arange(len(codes))
    last = np.zeros(len(codes), np.int64)
    last[codes] = rows  # numpy keeps the last of repeated assignments
    winners: npt.NDArray[np.bool_] = last[codes] == rows
    return winners
