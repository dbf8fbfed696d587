"""What a Python file imports, found fast enough for trees of thousands of files.

Parsing every file whole costs 7 s on sympy (1,600 files). Import statements are found by a
regular expression instead, and only those are parsed: 0.5 s. What that gets wrong, an import
inside a docstring, only adds an edge, and whether a test executes a change is decided by
running it. Results are cached by content, so neighbouring changes share them.
"""

from __future__ import annotations

import ast
import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from perfquarry.data import syntax

T = TypeVar("T")

_STATEMENT = re.compile(
    rb"^[ \t]*((?:from[ \t]+[.\w \t]+?[ \t]+import\b|import\b)[ \t]*"
    rb"(?:\((?:#[^\n]*|[^)#])*\)|(?:\\\r?\n|[^\n\\#;])+))",
    re.MULTILINE,
)
_DYNAMIC = re.compile(rb"""(?:import_module|__import__|importorskip)\(\s*['"]([\w.]+)['"]""")
_DYNAMIC_HINTS = (b"import_module(", b"__import__(", b"importorskip(")
_DEFINED = re.compile(rb"^(?:(?:async[ \t]+)?def|class)[ \t]+(\w+)|^(\w+)[ \t]*(?::[^\n=]+)?=[^=]", re.MULTILINE)


@dataclass(frozen=True)
class Import:
    """One imported module: `level` dots, then `module`; `names` is None for `import module`."""

    module: str
    level: int = 0
    names: tuple[tuple[str, str], ...] | None = None
    """Pairs (name, name it is bound to); the name '*' for all."""


class Recent(Generic[T]):
    """The most recently used results by key, each made once; shared by threads."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._known: OrderedDict[bytes, T] = OrderedDict()
        self._turns: dict[bytes, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: bytes, make: Callable[[], T]) -> T:
        """The kept result, or what `make` gives; who asks for the same meanwhile waits for it."""
        with self._lock:
            turn = self._turns.setdefault(key, threading.Lock())
        with turn:
            with self._lock:
                if key in self._known:
                    self._known.move_to_end(key)
                    return self._known[key]
            result = make()
            with self._lock:
                self._known[key] = result
                while len(self._known) > self._size:
                    self._turns.pop(self._known.popitem(last=False)[0], None)
        return result


class ByContent(Recent[T]):
    """Results of a function of a file's content."""

    def __init__(self, function: Callable[[bytes], T], size: int) -> None:
        super().__init__(size)
        self._function = function

    def __call__(self, content: bytes) -> T:
        """The function's result."""
        return self.get(hashlib.blake2b(content, digest_size=16).digest(), lambda: self._function(content))


def parse(content: bytes | str) -> ast.Module | None:
    """The syntax tree, or None for what this Python cannot parse (Python 2 files, templates)."""
    try:
        return syntax.parse(content)
    except syntax.UNPARSABLE:
        return None


def _scan(content: bytes) -> tuple[Import, ...]:
    statements = [match.group(1) for match in _STATEMENT.finditer(content)]
    imports = [found for node in _parsed(statements) for found in _imports_of(node)]
    if any(hint in content for hint in _DYNAMIC_HINTS):
        imports += [Import(match.group(1).decode()) for match in _DYNAMIC.finditer(content)]
    return tuple(dict.fromkeys(imports))


def _parsed(statements: list[bytes]) -> list[ast.stmt]:
    """All statements at once, which is fast; one by one where a line of prose looked like an import."""
    tree = parse(b"\n".join(statements))
    if tree is not None:
        return tree.body
    trees = [parse(statement) for statement in statements]
    return [node for tree in trees if tree is not None for node in tree.body]


def _imports_of(node: ast.stmt) -> list[Import]:
    if isinstance(node, ast.Import):
        return [Import(alias.name) for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        names = tuple((alias.name, alias.asname or alias.name) for alias in node.names)
        return [Import(node.module or "", node.level, names)]
    return []


def _defined(content: bytes) -> frozenset[str]:
    groups = (match.group(1) or match.group(2) for match in _DEFINED.finditer(content))
    return frozenset(group.decode("utf-8", "replace") for group in groups)


imports_of = ByContent(_scan, 20_000)
"""Imports of a file's content, whatever Python version it is written for."""

defined_in = ByContent(_defined, 5_000)
"""Names bound by `def`, `class` and `=` at the left margin of a file's content."""


is_parsable = ByContent(lambda content: parse(content) is not None, 20_000)
"""Whether this Python parses a file's content."""
