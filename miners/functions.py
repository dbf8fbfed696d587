"""Exactly which functions a change touches, by parsing both sides of its source files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Literal

from perfquarry.data.records import Change, TouchedFunction
from perfquarry.miners.blobs import Sides, sides
from perfquarry.miners.roles import language_of
from perfquarry.miners.scopes import MODULE, Scope, ScopesPair, parse_pair


def touched(clone: Path, change: Change) -> list[TouchedFunction]:
    """Functions, classes and modules whose own code differs between base and head, in the order of the diff.

    Source files (role 'source') of Python, Cython, C and C++ count. A function that only moved, or in which
    only comments, docstrings or spacing changed, is not touched. A file that cannot be parsed or read gives
    the names in its hunk headers instead (`change.functions`), or '<module>' where there are none.

    Raises:
        GitFailed: git cannot read the change at all.
    """
    paths = [file.path for file in change.files if file.role == "source" and file.status != "submodule"]
    found: list[TouchedFunction] = []
    for file in sides(clone, change, paths) if paths else ():
        language, pair = language_of(file.path), None
        if file.base is not None and file.head is not None:
            pair = parse_pair(language, file.base, file.head)
        if pair is not None:
            found += _compare(file.path, pair)
        elif language in ("python", "cython", "c", "cpp"):
            found += _from_hunks(file, change)
    return found


def _compare(path: str, pair: ScopesPair) -> list[TouchedFunction]:
    # A name may be defined several times (overloads, properties, #if and #else): compared as a bag.
    base, head = _by_name(pair.base), _by_name(pair.head)
    names = [name for name in dict.fromkeys([*head, *base]) if base.get(name) != head.get(name)]
    return [TouchedFunction(path=path, name=name, change=_kind(name in base, name in head)) for name in names]


def _by_name(scopes: list[Scope]) -> dict[str, Counter[str]]:
    names: dict[str, Counter[str]] = {}
    for scope in scopes:
        if scope.code or scope.name != MODULE:
            names.setdefault(scope.name, Counter())[scope.code] += 1
    return names


def _kind(at_base: bool, at_head: bool) -> Literal["modified", "added", "deleted"]:
    if at_base and at_head:
        return "modified"
    return "added" if at_head else "deleted"


def _from_hunks(file: Sides, change: Change) -> list[TouchedFunction]:
    prefix = f"{file.path}::"
    names = [name.removeprefix(prefix) for name in change.functions if name.startswith(prefix)]
    kind = _kind(file.base != b"", file.head != b"")
    return [TouchedFunction(path=file.path, name=name, change=kind) for name in names or [MODULE]]
