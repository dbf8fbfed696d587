"""Timings of a change that were cut or set aside: what was measured is kept, and whoever measures it next goes on."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from perfquarry.data.files import remove
from perfquarry.data.records import Timing

_PAIR = TypeAdapter(list[Timing])


@dataclass(frozen=True)
class Unfinished:
    """A file with a line for each pair of processes that was measured.

    Its name stands for all that the timings depend on: the change, its workloads and builds, the settings, the machine.
    """

    path: Path

    def rows(self) -> list[Timing]:
        """The rows of all pairs; a line that a kill has cut is as if it were not there: its pair was measured anew."""
        rows: list[Timing] = []
        for line in self.path.read_bytes().splitlines() if self.path.exists() else ():
            with contextlib.suppress(ValidationError):
                rows += _PAIR.validate_json(line)
        return rows

    def add(self, pair: Sequence[Timing]) -> None:
        """Keeps the rows of one pair.

        Raises:
            OSError: they could not be written.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            file.write(b"\n" + _PAIR.dump_json(list(pair)))

    def remove(self) -> None:
        """The timings are all there, in the table."""
        remove(self.path)
