"""The functions and classes of a source file, each with a fingerprint of its own code.

Two versions of a file are compared scope by scope: a scope is touched when its fingerprint differs.
A scope's own code is what is in it but in none of the functions and classes inside it; comments,
docstrings, blank lines and spacing are no part of it.
"""

from __future__ import annotations

from typing import NamedTuple

from perfquarry.miners.scopes.c import scopes_of_c, spans_of_c
from perfquarry.miners.scopes.indented import scopes_of_indented, spans_of_indented
from perfquarry.miners.scopes.python import scopes_of_python
from perfquarry.miners.scopes.scope import MODULE, Scope, Span

LARGEST = 4 * 1024 * 1024
"""Bytes of a file beyond which it is not parsed."""

__all__ = ["LARGEST", "MODULE", "Scope", "ScopesPair", "Span", "parse_pair", "spans"]


class ScopesPair(NamedTuple):
    """Scopes of the two sides of a file, found in the same way."""

    base: list[Scope]
    head: list[Scope]


def parse_pair(language: str | None, base: bytes, head: bytes) -> ScopesPair | None:
    """Scopes of both sides (empty bytes: the file is not there); None for other languages and huge files.

    Python that a current interpreter cannot parse (Python 2, broken files) is read by its indentation,
    on both sides, so that their fingerprints compare.
    """
    if len(base) > LARGEST or len(head) > LARGEST:
        return None
    if language == "python":
        old, new = scopes_of_python(base), scopes_of_python(head)
        if old is not None and new is not None:
            return ScopesPair(old, new)
    if language in ("python", "cython"):
        return ScopesPair(scopes_of_indented(base), scopes_of_indented(head))
    if language in ("c", "cpp"):
        return ScopesPair(scopes_of_c(base, language), scopes_of_c(head, language))
    return None


def spans(language: str | None, source: bytes) -> list[Span]:
    """Where functions and classes stand, by the names that `parse_pair` gives; none for other languages and huge files.

    Python counts by its indentation, so that files of every version are read alike.
    """
    if len(source) > LARGEST:
        return []
    if language in ("python", "cython"):
        return spans_of_indented(source)
    return spans_of_c(source, language) if language in ("c", "cpp") else []
