"""Scopes of Cython, and of Python that `ast` refuses, by indentation (no tree-sitter grammar is published).

Strings and comments are masked first, lines inside brackets continue the line before, and a
definition lasts until a line that is indented no deeper than it. That is how Python itself finds blocks,
so it errs only where a preprocessor or template breaks the indentation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from perfquarry.miners.scopes.scope import MODULE, Scope, Span

_LITERAL = re.compile(
    r"(?P<comment>#[^\n]*)"
    r"|(?P<doc>(?<=\n)[ \t]*[rRuUbB]{0,2}(?:\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?''')[ \t]*(?=\n|$))"
    r"|\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''"
    r"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'",
    re.S,
)
_BLOCK = re.compile(
    r"(?:(?:async\s+)?def|class|cppclass"
    r"|c(?:p|type)?def\s+(?:(?:public|api|packed)\s+)*(?:cppclass|class|struct|union|enum))\s+(\w+)[^:]*:|"
    # cdef inline double f(double x) except -1:
    r"cp?def\s+[^=(]*?\b(\w+)\s*\(.*:$",
    re.S,
)
_RESTART = re.compile(r"(?:@|(?:async|def|class|cp?def)\s)")
_TOKEN = re.compile(r"\"[^\"]*\"|'[^']*'|\w+|[^\s\w]", re.S)


@dataclass
class _Block:
    """The module, a function or a class, decorators included."""

    name: str
    indent: int
    first: int
    last: int
    own: list[str] = field(default_factory=list)
    """Its statements but those of blocks inside it, as tokens."""


def scopes_of_indented(source: bytes) -> list[Scope]:
    """The module's and every function's and class's own lines, in order of their first line."""
    return [Scope(block.name, "\n".join(block.own)) for block in _blocks(source)]


def spans_of_indented(source: bytes) -> list[Span]:
    """First and last line of every function and class, decorators included, in order of their first line."""
    return [Span(block.name, block.first, block.last) for block in _blocks(source)[1:]]


def _blocks(source: bytes) -> list[_Block]:
    """The module, then all others in order of their first line."""
    text = "\n" + source.decode("utf-8", "backslashreplace").replace("\r\n", "\n").replace("\t", " " * 8)
    module = _Block(MODULE, -1, 1, 0)
    found, around = [module], [module]
    decorators: list[str] = []
    decorated = line = place = 0
    for shown, masked, start in _logical_lines(text):
        line, place = line + text.count("\n", place, start), start
        end = line + masked.rstrip("\n").count("\n")
        indent, statement = len(masked) - len(masked.lstrip(" ")), masked.strip()
        while indent <= around[-1].indent:
            around.pop()
        for block in around:
            block.last = end
        if statement.startswith("@"):
            decorators.append(shown)
            decorated = decorated or line
            continue
        if begun := _BLOCK.match(statement):
            outer = "" if around[-1] is module else f"{around[-1].name}."
            block = _Block(f"{outer}{begun.group(1) or begun.group(2)}", indent, decorated or line, end)
            found.append(block)
            around.append(block)
        # Relative to its block: a statement moved out of a loop has other code, a block moved whole has not.
        around[-1].own += [*decorators, f"{indent - around[-1].indent} {shown}"]
        decorators, decorated = [], 0
    return found


def _logical_lines(text: str) -> list[tuple[str, str, int]]:
    """(tokens, text with strings masked, place) of each statement line, without comments and docstrings."""
    kept = _LITERAL.sub(lambda found: _blank(found.group(), " ") if found.lastgroup else found.group(), text)
    masked = _LITERAL.sub(lambda found: _blank(found.group(), "_"), kept)
    lines: list[tuple[str, str, int]] = []
    start = at = depth = 0
    for line in masked.split("\n"):
        if depth and _RESTART.match(line):
            # A bracket that is never closed (a template's, say) must not swallow the rest of the file.
            lines.append((_tokens(kept[start:at]), masked[start:at], start))
            start, depth = at, 0
        depth = max(0, depth + sum(map(line.count, "([{")) - sum(map(line.count, ")]}")))
        at += len(line) + 1
        if depth or line.endswith("\\"):
            continue
        if line.strip():
            lines.append((_tokens(kept[start:at]), masked[start:at], start))
        start = at
    if masked[start:].strip():
        lines.append((_tokens(kept[start:]), masked[start:], start))
    return lines


def _tokens(code: str) -> str:
    return " ".join(_TOKEN.findall(code))


def _blank(literal: str, filler: str) -> str:
    """As long and with as many lines, but without anything in it."""
    return "".join("\n" if character == "\n" else filler for character in literal)
