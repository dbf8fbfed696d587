"""Signals in the shape of a change: which files, how many lines, what is new."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from perfquarry.data.records import Change
from perfquarry.miners.judge.diff import JudgedDiff
from perfquarry.miners.judge.finding import JudgeFinding

FILES_READ = 500
"""Files whose names are looked at: a change with more is a sync or an import."""

_BENCHMARK = re.compile(
    r"(?:^|/)(?:asv\w*|bench\w*|\w*benchmarks?|perf|profiling)(?:/|\.py$|\.conf)|asv\.conf|bench_\w+\.py$", re.I
)
_NOTES = re.compile(r"(?:^|/)(?:change\w*|news\w*|history|release\w*|whatsnew|upcoming\w*)(?:[/.]|$)", re.I)
_PUBLIC = re.compile(r"^\s*(?:async )?(?:def|class|cpdef) (?!_)(\w+)", re.M)
_ANY_DEF = re.compile(r"^\s*(?:async )?(?:def|class|cpdef|cdef) \w", re.M)
_RAISE = re.compile(r"\braise\b|\bwarnings?\.warn|\bPyErr_\w+|\bDeprecat\w+|\bassert\b")
_TYPES = re.compile(r"\) -> |: (?:Optional|Union|List|Dict|Tuple|Any|Callable)\[|\bTYPE_CHECKING\b|\bcast\(|# type:")
_IMPORT = re.compile(r"^\s*(?:from [\w.]+ )?import \w", re.M)
_PRINT = re.compile(
    r"\bprint\b|%s|\.format\(|\blog(?:ger|ging)?\.|\bsys\.version|\bPY[23]\b|\bbasestring\b|\bunicode\b|\bsix\."
)

_MORE = (
    ("new_definitions", _ANY_DEF),
    ("new_errors", _RAISE),
    ("type_hints", _TYPES),
    ("imports", _IMPORT),
    ("strings", _PRINT),
)


def find(change: Change, diff: JudgedDiff) -> Iterator[JudgeFinding]:
    """What the list of files and the mere size of the diff say."""
    source = [f for f in change.files if f.role == "source"]
    added, deleted = sum(f.added for f in source), sum(f.deleted for f in source)
    yield JudgeFinding("source_files", _log(len(source) - 1, 20), f"{len(source)} source files")
    yield JudgeFinding("lines", _log(added + deleted, 2000), f"+{added} -{deleted} source lines")
    yield JudgeFinding("tiny", float(added + deleted <= 4), f"+{added} -{deleted} source lines")
    yield JudgeFinding("balance", min(added, deleted) / max(added, deleted, 1), f"+{added} -{deleted} source lines")
    yield JudgeFinding("functions", _log(len(change.functions), 30), f"{len(change.functions)} functions touched")
    yield from _files(change)
    yield from _contents(diff)


def _log(count: int, full: int) -> float:
    return min(math.log1p(max(count, 0)) / math.log1p(full), 1.0)


def _files(change: Change) -> Iterator[JudgeFinding]:
    for name, pattern in (("benchmark_files", _BENCHMARK), ("release_notes", _NOTES)):
        path = next((f.path for f in change.files[:FILES_READ] if pattern.search(f.path[-200:])), None)
        if path is not None:
            yield JudgeFinding(name, 1.0, path[-80:])
    tests = sum(f.added for f in change.files if f.role == "test")
    if tests:
        yield JudgeFinding("tests_added", _log(tests, 200), f"{tests} lines of tests added")
    docs = sum(f.added + f.deleted for f in change.files if f.role == "docs")
    if docs:
        yield JudgeFinding("docs_changed", _log(docs, 200), f"{docs} lines of docs changed")
    new = next((f.path for f in change.files if f.role == "source" and f.status == "added"), None)
    if new is not None:
        yield JudgeFinding("new_source_file", 1.0, new[-80:])
    if any(f.role == "build" for f in change.files):
        yield JudgeFinding("build_files", 1.0, next(f.path for f in change.files if f.role == "build")[-80:])
    if change.kind == "merge":
        yield JudgeFinding("merge", 1.0, change.title[:80])
    native = next((f.path for f in change.files if f.role == "source" and f.language not in (None, "python")), None)
    if native is not None:
        yield JudgeFinding("compiled_source", 1.0, native[-80:])


def _contents(diff: JudgedDiff) -> Iterator[JudgeFinding]:
    public = [m for m in _PUBLIC.findall(diff.added) if m not in set(_PUBLIC.findall(diff.removed))]
    if public:
        yield JudgeFinding("new_public_names", min(len(public), 4) / 4, ", ".join(public[:4]))
    for name, pattern in _MORE:
        more = len(pattern.findall(diff.added)) - len(pattern.findall(diff.removed))
        if more > 0:
            yield JudgeFinding(name, min(more, 3) / 3, f"{more} more")
    if not diff.removed.strip():
        yield JudgeFinding("only_additions", 1.0, "no code line removed")
    if not diff.added.strip():
        yield JudgeFinding("only_deletions", 1.0, "no code line added")
