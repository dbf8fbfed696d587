"""A task's patch by files: hunks, lines added and removed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchSet

LARGEST = 2 * 1024 * 1024
"""Bytes of a patch that are read; more of it is generated or data."""


@dataclass(frozen=True)
class FilePatch:
    """One file of a patch."""

    path: str
    hunks: int
    added: tuple[str, ...]
    """Lines without their sign and line end."""
    removed: tuple[str, ...]


@lru_cache(maxsize=64)
def files_of(patch: str) -> tuple[FilePatch, ...]:
    """The files of a patch whose hunks can be read, in order; binary ones have none."""
    try:
        parsed = PatchSet(patch[:LARGEST])
    except UnidiffParseError:
        parsed = PatchSet("".join(_readable(patch[:LARGEST])))
    return tuple(
        FilePatch(
            file.path,
            len(file),
            tuple(line.value.rstrip("\r\n") for hunk in file for line in hunk if line.is_added),
            tuple(line.value.rstrip("\r\n") for hunk in file for line in hunk if line.is_removed),
        )
        for file in parsed
    )


def _readable(patch: str) -> list[str]:
    """Sections of files that can be parsed by themselves: the last one may be cut off."""
    sections = re.split(r"(?m)^(?=diff --git )", patch)
    kept = []
    for section in sections:
        try:
            PatchSet(section)
        except UnidiffParseError:
            continue
        kept.append(section)
    return kept


@lru_cache(maxsize=2048)
def changed_lines(patch: str) -> frozenset[str]:
    """Changed lines with their signs, without indentation; blank ones and lone brackets left out."""
    return frozenset(
        sign + text
        for file in files_of(patch)
        for sign, lines in (("+", file.added), ("-", file.removed))
        for line in lines
        if len(text := " ".join(line.split())) > 2
    )
