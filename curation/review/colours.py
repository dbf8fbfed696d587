"""Source text as HTML with syntax colours: escaped spans with classes, nothing else."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import pairwise

from markupsafe import Markup, escape
from pygments.lexer import Lexer
from pygments.lexers import PythonLexer, get_lexer_for_filename
from pygments.lexers.special import TextLexer
from pygments.token import Comment, Keyword, Name, Number, String, _TokenType
from pygments.util import ClassNotFound

COLOURED_BYTES = 256 * 1024
"""Longer texts stay black."""
LINE_LIMIT = 600
"""Characters of a line that are shown."""

Piece = tuple[str, str]
"""Text and the class of its colour ('' for none)."""
Span = tuple[int, int]
"""Characters of a line that differ, from and to."""

_CLASSES: tuple[tuple[_TokenType, str], ...] = (
    (Comment, "c"),
    (String, "s"),
    (Number, "m"),
    (Keyword, "k"),
    (Name.Function, "f"),
    (Name.Class, "f"),
    (Name.Decorator, "d"),
    (Name.Builtin, "b"),
)


def visible(text: str) -> str:
    """The text with invisible and direction-changing characters (CVE-2021-42574) shown as '⟨U+202E⟩'."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(f"⟨U+{ord(char):04X}⟩" if _treacherous(char) else char for char in text)


def _treacherous(char: str) -> bool:
    return char not in "\t\n" and unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def lexer_for(path: str) -> Lexer:
    """By the name of the file; plain text for unknown ones."""
    try:
        return get_lexer_for_filename(path, stripnl=False)
    except ClassNotFound:
        return TextLexer(stripnl=False)


def lines_of(text: str, lexer: Lexer) -> list[list[Piece]]:
    """The lines of a text in coloured pieces."""
    if len(text) > COLOURED_BYTES:
        lexer = TextLexer(stripnl=False)
    lines: list[list[Piece]] = [[]]
    for kind, value in lexer.get_tokens(text):
        name = next((name for parent, name in _CLASSES if kind[: len(parent)] == parent), "")
        for number, part in enumerate(value.split("\n")):
            if number:
                lines.append([])
            if part:
                lines[-1].append((part, name))
    return lines


def lines_of_part(text: str, lexer: Lexer) -> list[list[Piece]]:
    """As `lines_of`, of a part of a file, which may begin within a string of several lines (a docstring, mostly)."""
    quotes = _left_open(text) if isinstance(lexer, PythonLexer) else ""
    return lines_of(f"{quotes}\n{text}", lexer)[1:] if quotes else lines_of(text, lexer)


def _left_open(text: str) -> str:
    """The quotes that the first ones of the text close: words stand before them, or nothing around them."""
    first = re.search(r"^(.*?)(\"\"\"|''')(.*)$", text, re.MULTILINE)
    if first is None:
        return ""
    before, quotes, after = first[1].strip(), first[2], first[3].strip()
    if before:
        closes = not re.search(r"[=(,:\[{+%]$|\breturn$|(^|\W)[rRuUbBfF]{1,2}$", before) and "#" not in before
    else:
        closes = not after and not text[: first.start()].rstrip().endswith(":")
    return quotes if closes else ""


def html(pieces: Iterable[Piece], marked: Sequence[Span] = ()) -> Markup:
    """One line as HTML; characters within `marked` are emphasised."""
    out, at = [], 0
    for text, name in pieces:
        if at >= LINE_LIMIT:
            out.append(Markup('<span class="cut">… cut</span>'))
            break
        text = text[: LINE_LIMIT - at]
        out += [_span(part, name, emphasised) for part, emphasised in _split(text, at, marked)]
        at += len(text)
    return Markup("").join(out)


def code_html(text: str, lexer: Lexer | None = None) -> Markup:
    """A whole text, line by line."""
    lines = lines_of(text, lexer or PythonLexer(stripnl=False))
    return Markup("\n").join(html(line) for line in lines).rstrip()


def _span(text: str, name: str, emphasised: bool) -> Markup:
    inner = escape(visible(text))
    if name:
        inner = Markup('<span class="{}">{}</span>').format(name, inner)
    return Markup("<mark>{}</mark>").format(inner) if emphasised else inner


def _split(text: str, at: int, marked: Sequence[Span]) -> list[tuple[str, bool]]:
    cuts = sorted({0, len(text), *(min(max(edge - at, 0), len(text)) for span in marked for edge in span)})
    return [
        (text[a:b], any(start <= at + a and at + b <= end for start, end in marked)) for a, b in pairwise(cuts) if b > a
    ]
