"""What a model is shown of a change: message, diff, the functions it changes and who calls them, at its own commit."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from perfquarry.data.errors import GitFailed, InputError
from perfquarry.data.git import git_of
from perfquarry.data.records import Change, Stamp, TouchedFunction
from perfquarry.llm.fences import Piece, fit
from perfquarry.llm.tokens import about_tokens
from perfquarry.miners.blobs import sides
from perfquarry.miners.diff import text
from perfquarry.miners.functions import touched
from perfquarry.miners.history import crawl
from perfquarry.miners.judge.code import find as find_forms
from perfquarry.miners.judge.diff import parse, split
from perfquarry.miners.judge.heuristic import weights
from perfquarry.miners.pulls.discussion import Discussion
from perfquarry.miners.roles import language_of, role_of
from perfquarry.miners.scopes import MODULE, Span, spans
from perfquarry.miners.settings import MineSettings

_WHOLE_PATCH = 1024 * 1024
"""Bytes of a patch that is read again from the clone because the table has only its beginning."""
_MESSAGE, _DIFF, _CALLS = 0.15, 0.5, 0.1
"""Most of the tokens that message, diff and calls may take; what they leave goes to the functions."""
_SAID = {"pull": 0.1, "issues": 0.1, "remarks": 0.06, "results": 0.03, "notes": 0.03}
"""The same of what was said of the change, by its names in `Discussion`."""
_NAMES = 5
"""Changed functions whose calls are looked for."""
_CALLS_OF_NAME = 3
_LINE = 200
"""Characters of a line of code around a call."""
_RANGE = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")
_SIZE = 0.1
"""Relevance of the logarithm of a hunk's lines of code: between hunks without any form of rewriting."""
_SHORTEST = 3
"""Shorter names stand everywhere."""
_SEARCHED = ("*.py", "*.pyx", "*.pxd", "*.pxi", "*.pyi", "*.c", "*.h", "*.cc", "*.cpp", "*.hpp")


@dataclass(frozen=True)
class Context:
    """Texts of strangers, each cut to its share of the tokens, and numbers. To be fenced."""

    message: str
    diff: str
    functions: str
    """Functions that are modified, in full as at the head, where the diff does not show them in full."""
    calls: str
    """Lines that call them, in the head's tree."""
    files: int
    pull: int | None
    issues: list[int]
    said: Mapping[str, str]
    """What was said of the change outside of the repository, by the names of `_SAID`; empty where nothing is known."""


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


class _Function(NamedTuple):
    piece: Piece
    path: str
    span: Span

    @property
    def called(self) -> str:
        """What stands in calls of it: its last name, or its class's for a constructor."""
        *outer, last = re.split(r"\.|::", self.span.name)
        return outer[-1] if outer and last in ("__init__", "__new__", "__call__") else last


def context_of(clone: Path | None, change: Change, tokens: int, discussion: Discussion | None = None) -> Context:
    """What fits into `tokens`; the diff alone without a clone, or as far as objects are missing in the clone."""
    change = _whole(clone, change)
    hunks = hunks_of(change.patch)
    paragraphs = re.split(r"\n(?=[ \t]*\n)", change.message.strip())  # the first ones say most
    message = fit([Piece(part, -at, "") for at, part in enumerate(paragraphs)], int(_MESSAGE * tokens))
    diff = fit([Piece(hunk.text, hunk.relevance, hunk.path) for hunk in hunks], int(_DIFF * tokens))
    if change.patch_truncated:
        diff += f"\n[of a diff of {change.patch_bytes} bytes only the beginning was read]"
    functions = _functions(clone, change, hunks) if clone else []
    lines = _calls(clone, change.head_sha, functions) if clone else []
    calls = fit([Piece(line, -at, "") for at, line in enumerate(lines)], int(_CALLS * tokens))
    parts = {name: getattr(discussion, name) for name in _SAID} if discussion else {}
    said = {name: fit(pieces, int(_SAID[name] * tokens)) for name, pieces in parts.items()}
    left = tokens - sum(map(about_tokens, (message, diff, calls, *said.values())))
    shown = [one.piece for one in functions if one.piece.text]
    code = fit(shown, max(0, left))
    return Context(message, diff, code, calls, len(change.files), change.pull_number, change.issues[:10], said)


def _whole(clone: Path | None, change: Change) -> Change:
    """The change with its source diff whole also where the table has only its beginning."""
    if not change.patch_truncated or clone is None:
        return change
    stamp = Stamp(repo=change.repo, stage_version=change.stage_version, config_hash=change.config_hash)
    try:
        found = next(crawl(clone, stamp, MineSettings(patch_limit=_WHOLE_PATCH), only=[change.head_sha]), change)
    except (GitFailed, InputError):  # objects are missing
        return change
    return found if found.patch else change


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
    forms = sum(max(by_signal.get(finding.name, 0.0), 0.0) * finding.value for finding in find_forms(diff))
    return forms + _SIZE * math.log1p(lines)


def _functions(clone: Path, change: Change, hunks: Sequence[PatchHunk]) -> list[_Function]:
    """Modified functions in the order of the diff; without text where a hunk shows the function in full."""
    by_path: dict[str, list[TouchedFunction]] = defaultdict(list)
    try:
        for function in touched(clone, change):
            if function.change == "modified" and function.name != MODULE:
                by_path[function.path].append(function)
        files = sides(clone, change, by_path)
    except GitFailed:  # objects are missing
        return []
    found = []
    for file in files:
        lines = text(file.head or b"").splitlines()
        near = [hunk for hunk in hunks if hunk.path == file.path]
        wanted = {function.name for function in by_path[file.path]}
        for span in spans(language_of(file.path), file.head or b""):
            if span.name in wanted:
                found.append(_function(file.path, span, lines, near))
    return found


def _function(path: str, span: Span, lines: Sequence[str], hunks: Sequence[PatchHunk]) -> _Function:
    inside = [hunk for hunk in hunks if hunk.first <= span.last and span.first <= hunk.last]
    whole = any(hunk.first <= span.first and span.last <= hunk.last for hunk in hunks)
    code = "\n".join(lines[span.first - 1 : span.last])
    relevance = max((hunk.relevance for hunk in inside), default=0.0)
    shown = "" if whole else f"--- {path}, line {span.first}\n{code}"
    return _Function(Piece(shown, relevance, f"{path}::{span.name}"), path, span)


def _calls(clone: Path, sha: str, functions: Sequence[_Function]) -> list[str]:
    """A few lines of the tree at `sha` that call each function, those of the library before those of tests."""
    names = dict.fromkeys(one.called for one in sorted(functions, key=lambda one: -one.piece.relevance))
    asked = [name for name in names if len(name) >= _SHORTEST and name.isidentifier() and not name.startswith("__")]
    asked = asked[:_NAMES]
    if not asked:
        return []
    patterns = [word for name in asked for word in ("-e", name)]
    options = ("-n", "-I", "-w", "-F", "-z", *patterns, sha, "--", *_SEARCHED)
    try:
        listing = git_of(clone).output("grep", *options, doing=f"looking for calls in {sha}")
    except GitFailed:  # nothing found, or blobs are missing in the clone
        return []
    return list(_chosen(listing, asked, functions))


def _chosen(listing: bytes, names: Sequence[str], functions: Sequence[_Function]) -> Iterator[str]:
    inside = {(one.path, line) for one in functions for line in range(one.span.first, one.span.last + 1)}
    call = re.compile(rf"(?<!\w)(?P<name>{'|'.join(map(re.escape, names))})\s*\(")
    no_call = re.compile(r"\s*(?:(?:async\s+)?(?:def|class|cp?def)\b|#|>>>|\.\.\.|//|\*)")
    found: dict[str, list[tuple[bool, str]]] = {name: [] for name in names}
    for entry in listing.decode("utf-8", "backslashreplace").split("\n"):
        place, _, rest = entry.partition("\0")
        line, _, code = rest.partition("\0")
        path = place.partition(":")[2]
        match = call.search(code[:_LINE])
        if not match or no_call.match(code) or (path, int(line)) in inside:
            continue
        found[match["name"]].append((role_of(path) == "test", f"{path}:{line}: {code.strip()[:_LINE]}"))
    for name in names:
        for _, shown in sorted(found[name], key=lambda one: one[0])[:_CALLS_OF_NAME]:
            yield shown
