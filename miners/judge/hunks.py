"""The hunks of a patch, the most informative first: what of a diff a model is shown when not all of it fits."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from perfquarry.miners.judge import code
from perfquarry.miners.judge.diff import parse, split
from perfquarry.miners.judge.heuristic import weights

_RANGE = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")
_SIZE = 0.1
"""Relevance of the logarithm of a hunk's lines of code: between hunks without any form of rewriting."""


@dataclass(frozen=True)
class PatchHunk:
    """One hunk that makes sense alone."""

    path: str
    text: str
    """From its '@@' on, under a line that names the file."""
    first: int
    last: int
    """Its lines at the head, counted from 1; `last` is below `first` where it leaves none."""
    relevance: float
    """0: no code but comments, docstrings and white space."""


def hunks_of(patch: str) -> list[PatchHunk]:
    """The hunks of a unified diff, in its order."""
    return [_hunk(header, lines) for header, lines in split(patch)]


def _hunk(header: str, lines: list[str]) -> PatchHunk:
    path = header.rpartition(" b/")[2]
    found = _RANGE.match(lines[0])
    first, count = (int(found[1]), int(found[2] or 1)) if found else (0, 0)
    body = "\n".join(lines)
    return PatchHunk(path, f"--- {path}\n{body}", first, first + count - 1, _relevance(f"{header}\n{body}\n"))


def _relevance(patch: str) -> float:
    """The heuristic's weights of the forms of rewriting in it, and a little for its size."""
    diff = parse(patch)
    lines = sum(len(hunk.removed) + len(hunk.added) for hunk in diff.hunks)
    by_signal = weights().by_signal
    forms = sum(max(by_signal.get(finding.name, 0.0), 0.0) * finding.value for finding in code.find(diff))
    return forms + _SIZE * math.log1p(lines)
