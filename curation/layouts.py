"""Where the package of a clone lies: what the roles of files follow."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path, PurePosixPath

from perfquarry.data.errors import GitFailed
from perfquarry.data.git import git_of
from perfquarry.data.records import Change, FileChange
from perfquarry.data.registry import Repository
from perfquarry.harness.metadata.project import metadata_files, project_of
from perfquarry.miners.roles import TESTS, is_below
from perfquarry.miners.vocabulary import content_at, paths_at


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
    scripts = {path for path in beside if not _is_used(clone, change.head_sha, path, places)}
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


def _is_used(clone: Path, sha: str, path: str, places: Collection[str]) -> bool:
    """Whether a test of the tree or the package imports a module of this name, or a test has the file's.

    True where git cannot say.
    """
    name = PurePosixPath(path)
    importing = _with_lines(clone, sha, rf"^[ \t]*(from|import)[ \t].*\b{re.escape(name.stem)}\b")
    naming = _with_lines(clone, sha, re.escape(name.name))
    if importing is None or naming is None:
        return True
    package = any(is_below(one, place) for one in importing for place in places)
    return package or any(TESTS.search(one) for one in (*importing, *naming))


def _with_lines(clone: Path, sha: str, pattern: str) -> list[str] | None:
    """Files of a tree with a line like this; None where git cannot say."""
    done = git_of(clone).run("grep", "-l", "-z", "-I", "-E", "-e", pattern, sha)
    found = done.out.decode("utf-8", "replace").split("\0")
    return [one.partition(":")[2] for one in found if one] if done.code <= 1 else None
