"""What commands print: facts as JSON, sentences, and tables in which no word is ever broken."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from perfquarry.data.errors import PerfquarryError

Cell = str | Text
_GAP = "  "


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return json.loads(value.model_dump_json(by_alias=True))  # numbers that are none as null
    return str(value)


def show(*parts: RenderableType, console: Console | None = None) -> None:
    """Prints tables and sentences; a text is no markup, and the terminal breaks its lines."""
    console = console or Console()
    for part in parts:
        if isinstance(part, str | Text):
            console.print(part, highlight=False, markup=False, emoji=False, soft_wrap=True)
        else:
            console.print(part, highlight=False, crop=False)


@dataclass
class Report:
    """What a command has found: facts for programs, and parts for people, which are made only where they are shown."""

    facts: Any
    parts: Iterable[RenderableType]
    code: int = 0
    """Exit code of the command that has said so."""
    error: PerfquarryError | None = None
    """How it ends instead, once all is said."""


def put(report: Report, *, as_json: bool) -> None:
    """Prints what was found.

    Raises:
        PerfquarryError: the report's error.
    """
    if as_json:
        print(json.dumps(report.facts, indent=2, default=_plain))
    else:
        show(*report.parts)
    if report.error:
        raise report.error


@dataclass
class Listing:
    """Rows of cells: a table where the longest words of all columns fit beside each other, else a block each row.

    Args:
        columns: their names; right-aligned where one begins with '>'.
        title: above it, in italics.
        head: whether the columns' names are shown.
    """

    columns: Sequence[str]
    title: str = ""
    head: bool = True
    rows: list[list[Text]] = field(default_factory=list)

    def add(self, *cells: Cell) -> None:
        """Adds a row; a cell that is a text is no markup."""
        self.rows.append([cell if isinstance(cell, Text) else Text(cell) for cell in cells])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.title:
            yield Text(self.title, "italic", overflow="ignore")
            yield Text()
        widths = self._widths(options.max_width)
        yield from self._table(widths) if widths else self._blocks(options.max_width)

    @property
    def _names(self) -> list[str]:
        return [name.removeprefix(">") for name in self.columns]

    def _widths(self, room: int) -> list[int]:
        """Width of each column; none where the longest words do not fit beside each other."""
        names = [Text(name if self.head else "") for name in self._names]
        cells = list(zip(names, *self.rows, strict=True))
        widths = [max(_longest(text.plain.split()) for text in column) for column in cells]
        wanted = [max(_longest(text.plain.split("\n")) for text in column) for column in cells]
        room -= len(_GAP) * (len(widths) - 1)
        if sum(widths) > room:
            return []
        while sum(widths) < room and (short := [at for at, want in enumerate(wanted) if widths[at] < want]):
            widths[min(short, key=lambda at: widths[at])] += 1
        return widths

    def _table(self, widths: Sequence[int]) -> Iterable[RenderableType]:
        if self.head:
            yield from self._line([Text(name, "bold") for name in self._names], widths)
            yield Text("─" * (sum(widths) + len(_GAP) * (len(widths) - 1)), "dim")
        for row in self.rows:
            yield from self._line(row, widths)

    def _line(self, cells: Sequence[Text], widths: Sequence[int]) -> Iterable[RenderableType]:
        columns = [_wrapped(cell, width) for cell, width in zip(cells, widths, strict=True)]
        for number in range(max(map(len, columns))):
            line = Text(overflow="ignore", no_wrap=True)
            for name, column, width in zip(self.columns, columns, widths, strict=True):
                part = column[number] if number < len(column) else Text()
                pad = " " * (width - cell_len(part.plain))
                line.append_text(Text(pad).append_text(part) if name.startswith(">") else part.copy().append(pad))
                line.append(_GAP)
            line.rstrip()
            yield line

    def _blocks(self, room: int) -> Iterable[RenderableType]:
        """The first cell of a row on a line of its own, the others below it under their names."""
        known = ""
        for row in self.rows:
            first, *others = row
            if first.plain and first.plain != known:
                known = first.plain
                yield from _lines(first, room, "", "bold")
            heads = [Text(f"{name}: " if self.head and name else "", "dim") for name in self._names[1:]]
            parts = [head.append_text(cell) for head, cell in zip(heads, others, strict=True) if cell.plain]
            for line in _packed(parts, room - len(_GAP)):
                yield from _lines(line, room, _GAP)


def _packed(parts: Iterable[Text], room: int) -> Iterator[Text]:
    """Parts beside each other while they fit on one line."""
    line = Text()
    for part in parts:
        if line and cell_len(f"{line.plain}{_GAP}{part.plain}") > room:
            yield line
            line = Text()
        line = line.append(_GAP).append_text(part) if line else part
    yield line


def _lines(text: Text, room: int, indent: str, style: str = "") -> Iterable[RenderableType]:
    for number, line in enumerate(_wrapped(text, max(1, room - 2 * len(indent)))):
        if style:
            line.stylize_before(style)
        yield Text(indent * (2 if number else 1), overflow="ignore", no_wrap=True).append_text(line)


def _wrapped(text: Text, width: int) -> list[Text]:
    """Its lines, broken between words only."""
    lines = [line for whole in text.split("\n", allow_blank=True) for line in whole.divide(_breaks(whole.plain, width))]
    for line in lines:
        line.rstrip()
    return lines or [Text()]


def _breaks(text: str, width: int) -> Iterator[int]:
    """Where new lines begin."""
    used = 0
    for word in re.finditer(r"\S+\s*", text):
        if used and used + cell_len(word[0].rstrip()) > width:
            yield word.start()
            used = 0
        used += cell_len(word[0])


def _longest(parts: Iterable[str]) -> int:
    return max(map(cell_len, parts), default=0)
