"""The patch of a change as hunks of code lines, with comments, docstrings and moved lines kept apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

READ_LIMIT = 24_000
"""Characters of a patch that are read; a performance change that needs more shows itself before."""

LINE_LIMIT = 400
"""Characters of one line that are read: longer ones are data or minified code."""

_HASH_COMMENT = frozenset({".py", ".pyx", ".pxd", ".pxi", ".pyi"})
_DOUBLE, _SINGLE = '"""', "'''"
_OPENING = re.compile(r"[rRuU]?(?:\"{3}|'{3})")
_PROSE = re.compile(r"[A-Z`*:]?[^=(){}\[\];:<>@+\\|]*\Z")
_KEYWORD = re.compile(
    r"(?:return|import|from|raise|assert|del|global|nonlocal|yield|not|if|elif|else|try|finally|except|for|while"
    r"|with|pass|break|continue|lambda|await|async|print|exec|class|def|cdef|cpdef|cimport|goto|case|static|const"
    r"|struct|int|long|double|float|char|void|unsigned|npy_\w+|Py\w+)\b"
)


_VERSION = re.compile(r"(?:__)?(?:version|version_info|VERSION|date|revision)(?:__)?\s*=\s*[\"'(\[\d][^()=]*\)?\s*\Z")
"""A module's line with a release's own number or date."""


@dataclass
class Hunk:
    """Lines of one hunk without their sign, in the order of the patch."""

    python: bool
    """Comments and docstrings are Python's: Cython, too."""
    native: bool
    """Anything but plain Python."""
    lines: list[tuple[str, str]]
    """(sign, text); the sign is ' ', '-' or '+'."""
    removed: list[str] = field(default_factory=list)
    """Removed code: neither comment nor docstring nor blank, inline comments cut, indentation kept."""
    added: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    """Comments and docstring lines that were added."""


@dataclass
class JudgedDiff:
    """What the signals read."""

    hunks: list[Hunk]
    removed: str
    """All removed code lines that do not appear among the added ones, one a line."""
    added: str
    comments: str
    python: bool
    native: bool

    @property
    def changes_code(self) -> bool:
        """False when each hunk is the same code before and after, comments, white space and the version aside."""
        return any(_meaning(h, h.removed) != _meaning(h, h.added) for h in self.hunks)


def _meaning(hunk: Hunk, lines: list[str]) -> list[str] | str:
    # indentation has a meaning in Python, line breaks have none elsewhere
    if hunk.python:
        return [line.rstrip() for line in lines if not _VERSION.match(line)]
    return "".join("".join(line.split()) for line in lines)


def parse(patch: str) -> JudgedDiff:
    """Reads the first `READ_LIMIT` characters of a unified diff; linear in their number, never raises."""
    hunks = [_hunk(header, lines) for header, lines in split(patch[:READ_LIMIT])]
    for hunk in hunks:
        _sort_lines(hunk)
    removed = Counter(line.strip() for h in hunks for line in h.removed)
    added = Counter(line.strip() for h in hunks for line in h.added)
    return JudgedDiff(
        hunks=hunks,
        removed="\n".join((removed - added).elements()),
        added="\n".join((added - removed).elements()),
        comments="\n".join(line for h in hunks for line in h.comments),
        python=any(h.python for h in hunks),
        native=any(h.native for h in hunks),
    )


def split(patch: str) -> Iterator[tuple[str, list[str]]]:
    """The 'diff --git' line of its file, empty where there is none, and the lines of each hunk from its '@@' on."""
    header = ""
    lines: list[str] = []
    for line in patch.split("\n"):
        if line.startswith(("diff --git ", "@@ ")):
            if lines:
                yield header, lines
            lines = []
        if line.startswith("diff --git "):
            header = line
        elif line.startswith("@@ ") or (lines and line[:1] in (" ", "-", "+", "\\")):
            lines.append(line)
    if lines:
        yield header, lines


def _hunk(header: str, lines: list[str]) -> Hunk:
    ending = header[header.rfind(".") :].strip('" ') if header else ".py"
    shown = [(line[0], line[1 : LINE_LIMIT + 1]) for line in lines[1:] if line[0] != "\\"]
    return Hunk(ending in _HASH_COMMENT, ending not in (".py", ".pyi"), shown)


def _sort_lines(hunk: Hunk) -> None:
    prose, before = {"-": False, "+": False}, {"-": "", "+": ""}
    for sign, text in hunk.lines:
        stripped = text.strip()
        sides = "-+" if sign == " " else sign
        inside = prose[sides[-1]]
        opens = hunk.python and not inside and _opens_docstring(stripped, before[sides[-1]])
        if hunk.python and stripped.count(_DOUBLE) + stripped.count(_SINGLE) == 1:
            for side in sides:
                prose[side] = opens
        for side in sides:
            before[side] = stripped or before[side]
        if sign == " ":
            continue
        if inside or opens or not _is_code(stripped, hunk.python):
            if sign == "+" and stripped:
                hunk.comments.append(stripped)
            continue
        code, comment = _cut_comment(text, hunk.python)
        if sign == "+" and comment:
            hunk.comments.append(comment)
        (hunk.removed if sign == "-" else hunk.added).append(code.rstrip())


def _opens_docstring(stripped: str, before: str) -> bool:
    """Whether a line opens a docstring: what follows a head, never the end of a string that the hunk does not show."""
    return _OPENING.match(stripped) is not None and before.endswith(":")


def _is_code(stripped: str, python: bool) -> bool:
    if not stripped:
        return False
    if python:
        if stripped[0] == "#" or stripped.startswith((">>>", "...", ".. ")):
            return False
    elif stripped.startswith(("//", "/*", "*/", "* ")) or stripped == "*":
        return False
    # inside a docstring whose start the hunk does not show
    return not (stripped.count(" ") >= 3 and _PROSE.match(stripped) and not _KEYWORD.match(stripped))


def _cut_comment(text: str, python: bool) -> tuple[str, str]:
    mark = "#" if python else "//"
    at = text.find(mark)
    if at < 0 and not python:
        mark = "/*"
        at = text.find(mark)
    if at <= 0 or '"' in text[at:] or "'" in text[at:] or text[:at].count('"') % 2 or text[:at].count("'") % 2:
        return text, ""
    if not python and text.lstrip()[:1] == "#":
        return text, ""
    return text[:at], text[at + len(mark) :].strip()
