"""A patch as two columns: pairs of lines with syntax colours, what differs within them, and the targets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Literal

from markupsafe import Markup
from unidiff.errors import UnidiffParseError
from unidiff.patch import Hunk as PatchHunk
from unidiff.patch import PatchedFile, PatchSet

from perfquarry.curation.review.colours import Piece, Span, html, lexer_for, lines_of_part

_RAW = 100_000
"""Characters of what is no unified diff that are shown."""
ROW_LIMIT = 2500
"""Rows of a whole patch that are shown."""

_WORD = re.compile(r"\w+|\s+|.")
_HEAD = re.compile(r"(\s*)(?:async\s+def|def|class|cdef|cpdef)\s+(?:[\w\[\], ]+\s+)?(\w+)")
_ALIKE = 0.4
"""Smallest likeness of two lines within which differing words are marked."""
_COMPARED = 300
"""Longest lines whose words are compared."""


@dataclass(frozen=True)
class DiffRow:
    """A line of the base beside one of the head; a missing one has no number."""

    kind: Literal["same", "change", "delete", "add"]
    old: int | None
    old_html: Markup
    new: int | None
    new_html: Markup
    target: bool
    """Within a function that is to be made faster."""
    note: str = ""
    """Where such a function begins within the hunk: its name."""


@dataclass(frozen=True)
class ShownHunk:
    """Rows that follow each other."""

    section: str
    rows: list[DiffRow]


@dataclass(frozen=True)
class File:
    """One file of a patch."""

    path: str
    old_path: str
    added: int
    deleted: int
    note: str = ""
    hunks: list[ShownHunk] = field(default_factory=list)


@dataclass(frozen=True)
class ShownDiff:
    """A patch to be shown; `raw` instead of files where it is no unified diff."""

    files: list[File]
    hidden: int = 0
    """Rows beyond the limit."""
    raw: str = ""


def side_by_side(patch: str, targets: Iterable[str] = ()) -> ShownDiff:
    """Reads a unified diff.

    A target is 'path::Class.function'.
    """
    try:
        parsed = PatchSet(patch)
    except (UnidiffParseError, ValueError, IndexError) as error:
        return ShownDiff([], raw=f"{error}\n\n{patch[:_RAW]}")
    if not parsed:
        return ShownDiff([], raw=patch[:_RAW])
    wanted: dict[str, dict[str, str]] = {}
    for target in targets:
        path, _, name = target.partition("::")
        wanted.setdefault(path, {})[name.rpartition(".")[2]] = name
    files, left, hidden = [], ROW_LIMIT, 0
    for one in parsed:
        total = sum(len(hunk) for hunk in one)
        shown = _file(one, wanted.get(one.path, {}), left)
        used = sum(len(hunk.rows) for hunk in shown.hunks)
        hidden += total - min(total, left) if total > left else 0
        left = max(0, left - used)
        files.append(shown)
    return ShownDiff(files, hidden)


def _file(one: PatchedFile, names: Mapping[str, str], limit: int) -> File:
    note = ""
    if one.is_binary_file:
        note = "binary"
    elif one.is_added_file:
        note = "new file"
    elif one.is_removed_file:
        note = "deleted"
    elif one.is_rename:
        note = "renamed"
    lexer = lexer_for(one.path)
    hunks: list[ShownHunk] = []
    for hunk in one:
        if limit <= 0:
            break
        old = lines_of_part("".join(line.value for line in hunk.source_lines()), lexer)
        new = lines_of_part("".join(line.value for line in hunk.target_lines()), lexer)
        rows = list(_rows(hunk, old, new, names))[:limit]
        limit -= len(rows)
        hunks.append(ShownHunk(hunk.section_header, rows))
    source = (one.source_file or "").removeprefix("a/")
    return File(one.path, source if one.is_rename else one.path, one.added, one.removed, note, hunks)


def _rows(
    hunk: PatchHunk, old: list[list[Piece]], new: list[list[Piece]], names: Mapping[str, str]
) -> Iterator[DiffRow]:
    olds, news = iter(enumerate(old, hunk.source_start)), iter(enumerate(new, hunk.target_start))
    inside = _Inside(names, hunk.section_header)
    removed: list[tuple[int, list[Piece]]] = []
    added: list[tuple[int, list[Piece]]] = []
    for line in hunk:
        if line.is_removed:
            if added:
                yield from _block(removed, added, inside)
                removed, added = [], []
            removed.append(next(olds))
        elif line.is_added:
            added.append(next(news))
        elif line.is_context:
            yield from _block(removed, added, inside)
            removed, added = [], []
            (number, pieces), (other, _) = next(olds), next(news)
            text = html(pieces)
            yield DiffRow("same", number, text, other, text, inside.at(pieces), inside.begun())
    yield from _block(removed, added, inside)


def _block(
    removed: Sequence[tuple[int, list[Piece]]], added: Sequence[tuple[int, list[Piece]]], inside: _Inside
) -> Iterator[DiffRow]:
    for place in range(max(len(removed), len(added))):
        left = removed[place] if place < len(removed) else None
        right = added[place] if place < len(added) else None
        if left and right:
            here = inside.at(left[1]) or inside.at(right[1])
            note = inside.begun()
            gone, come = _differing(_text(left[1]), _text(right[1]))
            yield DiffRow("change", left[0], html(left[1], gone), right[0], html(right[1], come), here, note)
        elif left:
            yield DiffRow("delete", left[0], html(left[1]), None, Markup(""), inside.at(left[1]), inside.begun())
        elif right:
            yield DiffRow("add", None, Markup(""), right[0], html(right[1]), inside.at(right[1]), inside.begun())


def _text(pieces: Sequence[Piece]) -> str:
    return "".join(text for text, _ in pieces)


def _differing(left: str, right: str) -> tuple[list[Span], list[Span]]:
    """Characters that differ in two lines that are alike; nothing in others."""
    if max(len(left), len(right)) > _COMPARED:
        return [], []
    one, other = _WORD.findall(left), _WORD.findall(right)
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return [], []
    gone, come = [], []
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag != "equal":
            gone.append((len("".join(one[:a])), len("".join(one[:b]))))
            come.append((len("".join(other[:c])), len("".join(other[:d]))))
    return gone, come


class _Inside:
    """Follows the lines of a hunk and says which lie in a target: after its head, until the indentation ends."""

    def __init__(self, names: Mapping[str, str], section: str) -> None:
        self._names = names
        head = _HEAD.match(section or "")
        self._indent = len(head.group(1)) if head and head.group(2) in names else -1
        self._begun = names[head.group(2)] if head and self._indent >= 0 else ""

    def at(self, pieces: Sequence[Piece]) -> bool:
        """Whether the next line lies in a target."""
        line = _text(pieces)
        if not self._names or not line.strip():
            return self._indent >= 0
        indent = len(line) - len(line.lstrip())
        if 0 <= indent <= self._indent and line.lstrip()[0] not in ")#":
            self._indent, self._begun = -1, ""
        head = _HEAD.match(line)
        if head and head.group(2) in self._names:
            self._indent, self._begun = indent, self._names[head.group(2)]
        return self._indent >= 0

    def begun(self) -> str:
        """The name of the target that begins at the line just seen; '' within and outside of it."""
        name, self._begun = self._begun, ""
        return name
