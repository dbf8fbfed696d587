"""Scopes of Cython, and of Python that `ast` refuses, by indentation (no tree-sitter grammar is published).

Strings and comments are masked first, lines inside brackets continue the line before, and a
definition lasts until a line that is indented no deeper than it. That is how Python itself finds blocks,
so it errs only where a preprocessor or template breaks the indentation.
"""

from __future__ import annotations

import re

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


def scopes_of_indented(source: bytes) -> list[Scope]:
    """The module's and every function's and class's own lines, in order of their first line."""
    text = "\n" + source.decode("utf-8", "backslashreplace").replace("\r\n", "\n").replace("\t", " " * 8)
    names = [MODULE]
    own: list[list[str]] = [[]]
    open_blocks: list[tuple[int, int]] = [(-1, 0)]  # indentation, index into names
    decorators: list[str] = []
    for shown, masked, _ in _logical_lines(text):
        indent = len(masked) - len(masked.lstrip(" "))
        statement = masked.strip()
        while indent <= open_blocks[-1][0]:
            open_blocks.pop()
        found = _BLOCK.match(statement)
        if statement.startswith("@"):
            decorators.append(shown)
            continue
        if found:
            outer = names[open_blocks[-1][1]]
            name = found.group(1) or found.group(2)
            open_blocks.append((indent, len(names)))
            names.append(name if outer == MODULE else f"{outer}.{name}")
            own.append([])
        # Relative to its block: a statement moved out of a loop has other code, a block moved whole has not.
        own[open_blocks[-1][1]] += [*decorators, f"{indent - open_blocks[-1][0]} {shown}"]
        decorators = []
    return [Scope(name, "\n".join(lines)) for name, lines in zip(names, own, strict=True)]


def spans_of_indented(source: bytes) -> list[Span]:
    """First and last line of every function and class, decorators included, in order of their first line."""
    text = "\n" + source.decode("utf-8", "backslashreplace").replace("\r\n", "\n").replace("\t", " " * 8)
    spans: list[Span] = []
    open_blocks: list[tuple[int, int]] = []  # indentation, index into spans
    decorated: int | None = None
    line = end = place = 0
    for _, masked, start in _logical_lines(text):
        line, place = line + text.count("\n", place, start), start
        indent, statement = len(masked) - len(masked.lstrip(" ")), masked.strip()
        while open_blocks and indent <= open_blocks[-1][0]:
            at = open_blocks.pop()[1]
            spans[at] = spans[at]._replace(last=end)
        end = line + masked.rstrip("\n").count("\n")
        if statement.startswith("@"):
            decorated = decorated or line
            continue
        if found := _BLOCK.match(statement):
            name = found.group(1) or found.group(2)
            outer = f"{spans[open_blocks[-1][1]].name}." if open_blocks else ""
            open_blocks.append((indent, len(spans)))
            spans.append(Span(outer + name, decorated or line, line))
        decorated = None
    for _, at in open_blocks:
        spans[at] = spans[at]._replace(last=end)
    return spans


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
