"""Which folders of a tree are projects: its own top, or folders below, as where several are kept in one repository."""

from __future__ import annotations

import os
import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath

from packaging.utils import canonicalize_name

from perfquarry.data.registry import Repository
from perfquarry.harness.metadata.ci import Ci
from perfquarry.harness.metadata.layout import DEPTH, MODULES, TOOLS, Layout, layout_of
from perfquarry.harness.metadata.package import Metadata, Texts, metadata_of, read_text
from perfquarry.harness.metadata.test_requirements import testing_needs

METADATA = ("pyproject.toml", "setup.cfg", "setup.py")
"""Files that the metadata is read from."""
_DEEPEST = 2
"""Folders below the top in which a project is looked for."""
_REQUIREMENTS = ("*requirements*.txt", "requirements/*.txt")
_MOST = 200
"""Files of metadata that are read of one tree."""


@dataclass(frozen=True)
class Project:
    """What a tree says of its package."""

    folder: str
    """Where the project lies; '.' is the tree."""
    metadata: Metadata
    layout: Layout
    """Relative to the tree."""
    required: bool = False
    """Whether it is there only because others of the tree require it."""


def read_project(tree: Path, repository: Repository | None = None) -> Project:
    """The project of a checked-out tree; see `project_of`."""
    return project_of(list(_files(tree)), lambda path: read_text(tree / path), repository)


def read_projects(tree: Path, repository: Repository, needed_for: Collection[str] = ()) -> list[Project]:
    """The projects of a checked-out tree that hold these paths, and those of the tree that they require; else the one.

    Where a repository keeps several distributions (a workspace), a change is about those that it touches. What they
    require of the tree comes from the tree: they are developed together, and the index may not have that state.

    Args:
        needed_for: relative to the tree: changed files, or source roots of a recipe that was read before.
    """
    paths = list(_files(tree))

    def text(path: str) -> str:
        return read_text(tree / path)

    own = repository.packages or repository.source_dirs or repository.project_dir
    folders = [] if own else _folders(paths, text)
    if folders == ["."] or not folders:
        return [project_of(paths, text, repository)]
    known = {folder: _metadata(text, folder) for folder in folders}
    named = {canonicalize_name(metadata.name): folder for folder, metadata in known.items() if metadata.name}
    deepest = sorted(folders, key=len, reverse=True)
    holding = [next((one for one in deepest if path == one or path.startswith(f"{one}/")), None) for path in needed_for]
    touched = list(dict.fromkeys(filter(None, holding))) or [_folder(paths, text)]
    if touched == ["."]:
        return [project_of(paths, text, repository)]
    wanted = list(touched)
    for folder in wanted:  # grows while it is walked
        lines, places = known[folder].runtime, list[str]()
        if folder in touched:
            lines = lines + testing_needs(tree / folder, known[folder], Ci())
            places = _installed_from(tree / folder)
        names = [canonicalize_name(found.group()) for line in lines if (found := re.match(r"[A-Za-z][\w.-]*", line))]
        more = [*(named[name] for name in names if name in named), *(one for one in places if one in known)]
        wanted += [one for one in dict.fromkeys(more) if one not in wanted]
    projects = [replace(_project(paths, known[one], one), required=one not in touched) for one in wanted]
    read_before = {root for one in projects for root in one.layout.roots}.intersection(needed_for)
    return [one for one in projects if not read_before or not read_before.isdisjoint(one.layout.roots)]


def _installed_from(folder: Path) -> list[str]:
    """Folders of the tree that a project's lists of requirements are installed from (`-e`)."""
    files = [path for pattern in _REQUIREMENTS for path in sorted(folder.glob(pattern))]
    lines = [line for path in files for line in read_text(path).splitlines()]
    found = [re.match(r"(?:-e|--editable)[\s=]+([\w./-]+)", line) for line in lines]
    return [os.path.normpath(place.group(1)) for place in found if place]


def project_of(paths: Collection[str], texts: Texts, repository: Repository | None = None) -> Project:
    """The project of a tree with these files.

    A tree whose top has metadata of a package is the project. Otherwise it is the folder below with metadata of its
    own that holds most modules, if most modules of the tree (tools at its top do not count) lie in such folders.

    Args:
        paths: relative to the tree; those of Python, Cython and metadata count.
        texts: the text of a file by its path; empty when there is none.
        repository: whose recipe may say it better; None: nothing is known.
    """
    packages, roots = (repository.packages, repository.source_dirs) if repository else ([], [])
    folder = (repository.project_dir if repository else "").strip("/") or _folder(paths, texts)
    metadata = _metadata(texts, folder)
    if folder == "." or roots:
        return Project(folder, metadata, layout_of(paths, metadata, packages, roots))
    return _project(paths, metadata, folder, packages)


def _project(paths: Collection[str], metadata: Metadata, folder: str, packages: Sequence[str] = ()) -> Project:
    inside = [path.removeprefix(f"{folder}/") for path in paths if path.startswith(f"{folder}/")]
    return Project(folder, metadata, layout_of(inside, metadata, packages).below(folder))


def metadata_files(paths: Collection[str]) -> list[str]:
    """The files of a tree that projects may have their metadata in."""
    found = [path for path in paths if path.count("/") <= _DEEPEST and PurePosixPath(path).name in METADATA]
    return sorted(found, key=lambda path: (path.count("/"), path))[:_MOST]


def _folders(paths: Collection[str], texts: Texts) -> list[str]:
    """Folders with metadata of a project: the top alone, where it is one and not only the place of others.

    That a top is only their place, its metadata says, or no package lies beside them, and they are no examples.
    """
    if "setup.py" in paths:
        return ["."]
    described = sorted({str(PurePosixPath(path).parent) for path in metadata_files(paths)})
    projects = [folder for folder in described if _is_project(_metadata(texts, folder))]
    below = [folder for folder in projects if folder != "."]
    if below and "." in projects and not _is_no_package(texts("pyproject.toml")):
        return ["."] if all(map(_is_tool, below)) or not _is_bare(paths, below, texts) else below
    return below or projects


def _is_bare(paths: Collection[str], projects: Sequence[str], texts: Texts) -> bool:
    """Whether no package lies beside these folders."""
    beside = [path for path in paths if not path.startswith(tuple(f"{folder}/" for folder in projects))]
    return not layout_of(beside, _metadata(texts, ".")).packages


def _is_no_package(text: str) -> bool:
    """Whether a pyproject.toml says that it describes no package: only what is developed together."""
    try:
        tools = tomllib.loads(text)["tool"]
        return any(
            tools.get(tool, {}).get(key) is False for tool, key in (("uv", "package"), ("poetry", "package-mode"))
        )
    except (ValueError, KeyError, AttributeError):
        return False


def _folder(paths: Collection[str], texts: Texts) -> str:
    projects = _folders(paths, texts)
    if projects == ["."] or not projects:
        return "."
    modules = [path for path in paths if path.endswith(MODULES) and PurePosixPath(path).name not in METADATA]
    above = [(path, next((one for one in projects if path.startswith(f"{one}/")), None)) for path in modules]
    holding = Counter(project for _, project in above if project)
    outside = sum(1 for path, project in above if not project and not _is_tool(path))
    return min(holding, key=lambda one: (-holding[one], one)) if holding.total() > outside else "."


def _is_tool(path: str) -> bool:
    return PurePosixPath(path.partition("/")[0]).stem in TOOLS


def _is_project(metadata: Metadata) -> bool:
    return bool(metadata.name or metadata.backend)


def _metadata(texts: Texts, folder: str) -> Metadata:
    return metadata_of(partial(_text_below, texts, "" if folder == "." else f"{folder}/"))


def _text_below(texts: Texts, prefix: str, name: str) -> str:
    return texts(prefix + name)


def _files(tree: Path) -> Iterator[str]:
    """Paths of Python files and metadata of a tree, without hidden and virtual folders."""
    for folder, folders, names in os.walk(tree):
        inside = PurePosixPath(Path(folder).relative_to(tree).as_posix())
        deep = len(inside.parts) >= DEPTH + _DEEPEST
        folders[:] = [
            name
            for name in sorted(folders)
            if not deep and not name.startswith(".") and not Path(folder, name, "pyvenv.cfg").exists()
        ]
        yield from (str(inside / name) for name in names if name.endswith(MODULES) or name in METADATA)
