"""Which lines to trace for a change, and which test files to try."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perfquarry.data.records import Change, FileChange, Hit, Side, Verdict
from perfquarry.harness.contracts import BuiltSide
from perfquarry.testgen.changed_lines import (
    Targets,
    callers_of,
    differing_lines,
    functions_around,
    in_functions,
    owners_of,
    standing_for,
)
from perfquarry.testgen.definitions import has_examples
from perfquarry.testgen.imports import is_parsable
from perfquarry.testgen.pytest_config import Naming
from perfquarry.testgen.reach import FAR, TestFile, reachable_tests

SIDES: tuple[Side, Side] = ("base", "head")
NATIVE = frozenset({"cython", "c", "cpp", "fortran", "rust", "go", "assembly"})
"""Languages of source that is compiled into extension modules."""
Texts = Callable[[FileChange], tuple[bytes, bytes]]
"""Contents of a changed file at the base and at the head; empty where it is not there."""


@dataclass(frozen=True)
class Trace:
    """Changed lines a side; both empty for a change without an executable Python line."""

    base: tuple[Targets, ...]
    head: tuple[Targets, ...]
    functions: frozenset[str]
    """Functions that hold these lines, 'path::Class.method' with the base's paths."""
    owners: Mapping[tuple[Side, str], Mapping[int, str]] = field(default_factory=dict)
    """By file and changed line: the innermost of these functions."""

    def __bool__(self) -> bool:
        """Whether there is a line to trace."""
        return bool(self.base or self.head)

    def of(self, side: Side) -> tuple[Targets, ...]:
        """The side's files."""
        return self.base if side == "base" else self.head

    def hits(self, side: Side, executed: dict[str, list[int]]) -> list[Hit]:
        """Changed lines among the executed ones of each file."""
        found = [(target.path, target.hit_by(executed.get(target.path, ()))) for target in self.of(side)]
        return [Hit(path=path, side=side, lines=lines) for path, lines in found if lines]

    def executed(self, hits: Iterable[Hit]) -> frozenset[str]:
        """Innermost functions in which a changed line was hit."""
        lines = ((self.owners.get((hit.side, hit.path), {}), line) for hit in hits for line in hit.lines)
        return frozenset(owners[line] for owners, line in lines if line in owners)

    @property
    def wanted(self) -> frozenset[str]:
        """Innermost functions that changed."""
        return frozenset(name for owners in self.owners.values() for name in owners.values())


def lines_of(hits: Iterable[Hit]) -> frozenset[tuple[str, str, int]]:
    """The lines of hits: (side, path, line)."""
    return frozenset((hit.side, hit.path, line) for hit in hits for line in hit.lines)


def can_be_executed(change: Change, verdict: Verdict, texts: Texts) -> bool:
    """Whether a workload could execute anything of a change, as far as its text shows: what does not parse, may be."""
    python = [text for file in change.files if is_python_source(file) for text in texts(file)]
    return has_native_source(change) or not all(map(is_parsable, python)) or bool(trace_of(change, verdict, texts))


def texts_of(base: Path, head: Path) -> Texts:
    """Contents as two trees have them."""
    return lambda file: (content_of(base, path_at(file, "base")), content_of(head, path_at(file, "head")))


def trace_of(change: Change, verdict: Verdict, texts: Texts) -> Trace:
    """Changed lines inside functions; where there is none, those of the functions that stand for the change."""
    pairs = [(file, *texts(file)) for file in change.files if is_python_source(file)]
    changed = [(file, old, new, *differing_lines(old, new)) for file, old, new in pairs]
    olds = [in_functions(path_at(file, "base"), old, removed) for file, old, _, removed, _ in changed]
    news = [in_functions(path_at(file, "head"), new, added) for file, _, new, _, added in changed]
    if not any(target.spans for target in [*olds, *news]):
        for index, (file, old, new, removed, added) in enumerate(changed):
            named = [function.name for function in verdict.functions if function.path == file.path]
            olds[index] = standing_for(path_at(file, "base"), old, removed, named)
            news[index] = standing_for(path_at(file, "head"), new, added, named)
    functions = {
        f"{path_at(file, 'base')}::{name}"
        for (file, old, new, *_), before, after in zip(changed, olds, news, strict=True)
        for name in functions_around(old, before.spans) | functions_around(new, after.spans)
    }
    owners: dict[tuple[Side, str], dict[int, str]] = {}
    for (file, old, new, *_), before, after in zip(changed, olds, news, strict=True):
        for side, text, target in zip(SIDES, (old, new), (before, after), strict=True):
            around = owners_of(text, target.spans)
            owners[side, target.path] = {line: f"{path_at(file, 'base')}::{name}" for line, name in around.items()}
    bases, heads = (tuple(one for one in targets if one.spans) for targets in (olds, news))
    return Trace(bases, heads, frozenset(functions), owners)


def is_python_source(file: FileChange) -> bool:
    """Whether a changed file is Python code of the package."""
    return file.role == "source" and file.path.endswith(".py")


def has_native_source(change: Change) -> bool:
    """Whether source that is compiled changed, for which no Python line stands."""
    return any(file.role == "source" and file.language in NATIVE for file in change.files)


def path_at(file: FileChange, side: Side) -> str:
    """The file's path on a side, whether or not it exists there."""
    return file.old_path or file.path if side == "base" else file.path


def candidate_files(change: Change, built: dict[Side, BuiltSide], limit: int, further: int = 1) -> list[TestFile]:
    """Test files that can reach the changed source on either side, most promising first.

    Changed modules with examples are the last of the first `limit`; up to `further` times as many come in all.
    """
    found: dict[str, TestFile] = {}
    texts = texts_of(built["base"].tree, built["head"].tree)
    names = changed_names(change, texts)
    python = [text for file in change.files if is_python_source(file) for text in texts(file)]
    callers = {name for text in python for name in callers_of(text, names)}
    for side in ("head", "base"):
        side_built = built[side]
        changed = [path_at(file, side) for file in change.files if file.role == "source"]
        roots = relative_roots(side_built)
        tests = reachable_tests(side_built.tree, roots, changed, limit * further, names, side_built.test_paths, callers)
        found |= {test.path: test for test in tests if test.path not in found}
    shown = [TestFile(path, FAR) for path in _with_examples(change, built) if path not in found]
    tests, first = list(found.values()), max(limit - len(shown), 1)
    return [*tests[:first], *shown, *tests[first:]][: limit * further]


def _with_examples(change: Change, built: dict[Side, BuiltSide]) -> list[str]:
    """Changed modules of both sides whose docstrings have examples, and that have no other tests."""
    trees = [(built[side].tree, Naming.of(built[side].tree)) for side in SIDES]
    paths = [file.path for file in change.files if is_python_source(file) and file.status == "modified"]
    return [path for path in paths if all(has_examples(content_of(tree, path), naming) for tree, naming in trees)]


def changed_names(change: Change, texts: Texts) -> set[str]:
    """Functions that hold changed lines, 'Class.method'; of files that are not parsed, those that git names."""
    named = {entry.partition("::")[2] for entry in change.functions}
    for file in filter(is_python_source, change.files):
        old, new = texts(file)
        removed, added = differing_lines(old, new)
        named |= functions_around(old, removed) | functions_around(new, added)
    return named


def relative_roots(built: BuiltSide) -> Sequence[str]:
    """A side's source roots, relative to its tree."""
    return [root.relative_to(built.tree).as_posix() for root in built.source_roots if root.is_relative_to(built.tree)]


def content_of(tree: Path, path: str) -> bytes:
    """A file's bytes; none for a file not in the tree, and for a path that leads out of it."""
    full = (tree / path).resolve()
    return full.read_bytes() if full.is_relative_to(tree.resolve()) and full.is_file() else b""
