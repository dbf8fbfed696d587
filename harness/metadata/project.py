"""Which folder of a tree is the project: its own top, or a folder below, as in repositories of several languages."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from perfquarry.data.registry import Repository
from perfquarry.harness.metadata.layout import DEPTH, MODULES, TOOLS, Layout, layout_of
from perfquarry.harness.metadata.package import Metadata, Texts, metadata_of, read_text

METADATA = ("pyproject.toml", "setup.cfg", "setup.py")
"""Files that the metadata is read from."""
_DEEPEST = 2
"""Folders below the top in which a project is looked for."""
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


def read_project(tree: Path, repository: Repository | None = None) -> Project:
    """The project of a checked-out tree; see `project_of`."""
    return project_of(list(_files(tree)), lambda path: read_text(tree / path), repository)


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
    inside = [path.removeprefix(f"{folder}/") for path in paths if path.startswith(f"{folder}/")]
    return Project(folder, metadata, layout_of(inside, metadata, packages).below(folder))


def metadata_files(paths: Collection[str]) -> list[str]:
    """The files of a tree that projects may have their metadata in."""
    found = [path for path in paths if path.count("/") <= _DEEPEST and PurePosixPath(path).name in METADATA]
    return sorted(found, key=lambda path: (path.count("/"), path))[:_MOST]


def _folder(paths: Collection[str], texts: Texts) -> str:
    described = sorted({str(PurePosixPath(path).parent) for path in metadata_files(paths)})
    if "setup.py" in paths:
        return "."
    projects = [folder for folder in described if _is_project(_metadata(texts, folder))]
    if not projects or "." in projects:
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
