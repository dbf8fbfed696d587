"""What only the head of a change says: identifiers, literals and lines that no file of the base has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from perfquarry.data import syntax
from perfquarry.data.errors import GitFailed
from perfquarry.data.git import Git, git_of, given
from perfquarry.data.records import Change
from perfquarry.miners.blobs import contents_of, sides, tree_files
from perfquarry.miners.diff import text
from perfquarry.miners.roles import language_of, role_of

_LARGEST = 1024 * 1024
"""Bytes of a file; larger ones are data."""
_MOST = 5000
"""Words looked up at the base."""
_IDENTIFIER = re.compile(r"[^\W\d]\w{2,}")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_STRING = re.compile(r"\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'")
_NUMBER = re.compile(r"(?<![\w.])\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?\b")
_SHORTEST = {"number": 3, "string": 4, "line": 16}
"""Characters from which a literal or a line says anything."""


class Vocabulary(NamedTuple):
    """Words and lines of the fix."""

    identifiers: frozenset[str] = frozenset()
    literals: frozenset[str] = frozenset()
    lines: frozenset[str] = frozenset()
    """Of changed source files, with single spaces."""


def only_at_head(clone: Path, change: Change) -> Vocabulary:
    """What the source files of the head say and nothing of the base does, its tests and documentation included.

    Raises:
        GitFailed: base or head cannot be read.
    """
    paths = [file.path for file in change.files if file.role == "source" and file.status != "submodule"]
    before, after = ((set[str](), set[str](), set[str]()) for _ in ("base", "head"))
    for file in sides(clone, change, paths) if paths else ():
        for words, content in ((before, file.base), (after, file.head)):
            if content and len(content) <= _LARGEST:
                for known, found in zip(words, words_of(file.path, content), strict=True):
                    known |= found
    new = [now - old for now, old in zip(after, before, strict=True)]
    git = git_of(clone)
    identifiers, literals = sorted(new[0])[:_MOST], sorted(new[1])[:_MOST]
    return Vocabulary(
        frozenset(identifiers) - _at(git, change.base_sha, identifiers, "-w"),
        frozenset(literals) - _at(git, change.base_sha, literals),
        frozenset(new[2]),
    )


def words_of(path: str, content: bytes) -> tuple[set[str], set[str], set[str]]:
    """Identifiers, literals and lines of a source file; of Python by its syntax, of others by how they look."""
    source = text(content)
    lines = {line for line in (" ".join(one.split()) for one in source.splitlines()) if len(line) >= _SHORTEST["line"]}
    try:
        tree = syntax.parse(content) if language_of(path) == "python" else None
    except syntax.UNPARSABLE:
        tree = None
    if tree is not None:
        return (*_python_words(tree), lines)
    bare = _COMMENT.sub(" ", source)
    literals = {one or other for one, other in _STRING.findall(bare)} | set(_NUMBER.findall(bare))
    return set(_IDENTIFIER.findall(_STRING.sub(" ", bare))), {one for one in literals if _is_distinctive(one)}, lines


def _python_words(tree: ast.Module) -> tuple[set[str], set[str]]:
    names: set[str] = set()
    literals: set[str] = set()
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        for field in ("id", "attr", "arg", "name", "module") if not isinstance(node, ast.keyword) else ():
            names.update(_IDENTIFIER.findall(str(getattr(node, field, None) or "")))
        if isinstance(node, ast.Constant) and id(node) not in docstrings and not isinstance(node.value, bool):
            value = node.value
            literals.add(text(value) if isinstance(value, bytes) else str(value))
    return names, {one for one in literals if _is_distinctive(one)}


def _is_distinctive(literal: str) -> bool:
    if "\n" in literal or len(literal) > 200:
        return False
    kind = "number" if _NUMBER.fullmatch(literal) else "string"
    return len(literal.strip()) >= _SHORTEST[kind]


def _at(git: Git, sha: str, words: list[str], *options: str) -> frozenset[str]:
    """Those of the words that occur in the tree at `sha`."""
    if not words or not sha:
        return frozenset()
    with given(words) as lines:
        done = git.run("grep", "-h", "-o", "-I", "-F", *options, "-f", "-", sha, istream=lines)
    if done.code > 1:
        raise GitFailed(f"looking for words in the tree of {sha}: {done.said}")
    return frozenset(text(line) for line in done.out.split(b"\n"))


class Size(NamedTuple):
    """Source files of a tree, and their lines."""

    files: int
    lines: int


def size_at(clone: Path, sha: str) -> Size:
    """Size of the source at `sha`, without tests, documentation and generated files.

    Raises:
        GitFailed: the tree cannot be read.
    """
    done = git_of(clone).run("grep", "-I", "-c", "-z", "", sha)
    if done.code > 1:
        raise GitFailed(f"counting the lines of {sha}: {done.said}")
    counts = [line.rpartition(b"\0") for line in done.out.split(b"\n") if line]
    sources = [int(count) for name, _, count in counts if role_of(text(name.partition(b":")[2])) == "source"]
    return Size(len(sources), sum(sources))


def paths_at(clone: Path, sha: str) -> list[str]:
    """Paths of all files of a tree.

    Raises:
        GitFailed: the tree cannot be read.
    """
    listing = git_of(clone).output("ls-tree", "-r", "-z", "--name-only", sha, doing=f"listing the tree of {sha}")
    return [text(name) for name in listing.split(b"\0") if name]


def content_at(clone: Path, sha: str, paths: Iterable[str]) -> dict[str, bytes]:
    """Contents of the files of a tree that exist.

    Raises:
        GitFailed: the tree cannot be read.
    """
    wanted = set(paths)
    return contents_of(clone, [file for file in tree_files(clone, sha) if file.path in wanted])
