"""Where the package of a clone lies: what the roles of files follow."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path, PurePosixPath

from perfquarry.data.errors import GitFailed
from perfquarry.data.git import git_of, given
from perfquarry.data.records import Change, FileChange
from perfquarry.data.registry import Repository
from perfquarry.harness.metadata.project import metadata_files, project_of
from perfquarry.miners.roles import TESTS, is_below
from perfquarry.miners.vocabulary import content_at, paths_at

_WORD = re.compile(r"\w+")


def places_of(clone: Path, repository: Repository) -> tuple[str, ...]:
    """The package's places in the newest commit of the branch; none where that tree is missing in the clone."""
    sha = repository.branch or "HEAD"
    try:
        return _places(clone, sha, paths_at(clone, sha), repository)
    except GitFailed:
        return ()


def with_own_roles(clone: Path, repository: Repository, change: Change) -> Change:
    """The change as its own head has it: modules that are beside the package, not in it, are no source.

    Such are scripts of the developers, which nobody installs: they lie outside of the package's places and of
    every folder with an `__init__.py`, neither the package nor a test imports them, and no test has their file's
    name. When the history is mined, the layout of each commit is not known.

    Raises:
        GitFailed: the head's tree cannot be read.
    """
    python = [file for file in change.files if file.role == "source" and file.path.endswith(".py")]
    if not python:
        return change
    paths = paths_at(clone, change.head_sha)
    places = _places(clone, change.head_sha, paths, repository)
    packages = {str(PurePosixPath(path).parent) for path in paths if path.endswith("__init__.py")}
    beside = {file.path for file in python if places and not _is_inside(file, places, packages)}
    scripts = beside - _used(clone, change.head_sha, beside, places) if beside else beside
    if not scripts:
        return change
    files = [one.model_copy(update={"role": "build"}) if one.path in scripts else one for one in change.files]
    return change.model_copy(update={"files": files})


def _places(clone: Path, sha: str, paths: list[str], repository: Repository) -> tuple[str, ...]:
    contents = content_at(clone, sha, metadata_files(paths))
    texts = {name: text.decode("utf-8", "replace") for name, text in contents.items()}
    return project_of(paths, lambda path: texts.get(path, ""), repository).layout.places


def _is_inside(file: FileChange, places: Collection[str], packages: Collection[str]) -> bool:
    both = (file.path, file.old_path or file.path)
    return any(is_below(path, place) for path in both for place in places) or any(
        str(PurePosixPath(path).parent) in packages for path in both
    )


def _used(clone: Path, sha: str, paths: Collection[str], places: Collection[str]) -> set[str]:
    """Those of the paths whose module a test of the tree or the package imports, and whose file's name a test has.

    All of them where git cannot say.
    """
    names = {path: PurePosixPath(path) for path in paths}
    importing = _lines(clone, sha, [r"^[ \t]*(from|import)[ \t]"], "-E")
    naming = _lines(clone, sha, [name.name for name in names.values()], "-o", "-F")
    if importing is None or naming is None:
        return set(paths)
    imported = {
        word
        for file, line in importing
        if TESTS.search(file) or any(is_below(file, place) for place in places)
        for word in _WORD.findall(line)
    }
    named = {text for file, text in naming if TESTS.search(file)}
    return {path for path, name in names.items() if name.stem in imported or name.name in named}


def _lines(clone: Path, sha: str, patterns: Sequence[str], *options: str) -> list[tuple[str, str]] | None:
    """(File of a tree, line of it or what matches of the line); None where git cannot say."""
    with given(patterns) as lines:
        done = git_of(clone).run("grep", "-z", "-I", *options, "-f", "-", sha, istream=lines)
    if done.code > 1:
        return None
    found = (line.partition("\0") for line in done.out.decode("utf-8", "replace").split("\n"))
    return [(file.partition(":")[2], line) for file, _, line in found if file]
