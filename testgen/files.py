"""The source files of a tree's package, without what only surrounds it."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path

from perfquarry.harness.metadata.project import read_project
from perfquarry.testgen.pytest_config import is_test_path, python_files

_AROUND = frozenset(
    [
        "doc",
        "docs",
        "documentation",
        "example",
        "examples",
        "demo",
        "demos",
        "benchmarks",
        "asv_bench",
        "bench",
        "tools",
        "scripts",
        "bin",
        "release",
        "build",
        "dist",
        "ci",
        "website",
        "samples",
        "tutorials",
        "maint",
        "vendored-meson",
    ]
)
"""Folders at the top of a tree that hold no package, unless they are one."""
_NEVER = frozenset(["node_modules", "__pycache__", "site-packages"])
_ENDINGS = (
    ".py", ".pyx", ".pxd", ".pxi", ".pyx.in", ".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh", ".src",
)  # fmt: skip
_LARGEST = 2 * 1024 * 1024
"""Bytes; larger files are tables or generated."""


def source_files(tree: Path) -> Iterator[str]:
    """Relative paths of Python, Cython, C and C++ files of the package, in order."""
    patterns = python_files(tree)
    own = {name.partition(".")[0] for name in read_project(tree).layout.packages}
    for path in files_below(tree, _AROUND - own):
        around = path in ("setup.py", "conftest.py") or is_test_path(path, patterns)
        if path.endswith(_ENDINGS) and not around and is_readable(tree / path):
            yield path


def is_readable(path: Path) -> bool:
    """Whether it is a plain file, no link and no pipe that a build left behind, and of a size that people write."""
    facts = path.lstat()
    return stat.S_ISREG(facts.st_mode) and facts.st_size <= _LARGEST


def files_below(tree: Path, skipped_at_top: Collection[str]) -> Iterator[str]:
    """Relative paths of a tree's files, without links and without hidden, virtual and built folders."""
    for folder, folders, names in os.walk(tree):
        at_top = Path(folder) == tree
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and name not in _NEVER
            and not (at_top and name in skipped_at_top)
            and not (Path(folder) / name / "pyvenv.cfg").exists()
        )
        prefix = "" if at_top else Path(folder).relative_to(tree).as_posix() + "/"
        yield from (
            prefix + name for name in sorted(names) if name.isprintable() and not Path(folder, name).is_symlink()
        )
