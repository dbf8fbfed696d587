"""The source files of a tree's package, without what only surrounds it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from testgen.pytest_config import is_test_path, python_files

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
"""Folders at the top of a tree that hold no package."""
_NEVER = frozenset(["node_modules", "__pycache__", "site-packages"])
_ENDINGS = (
    ".py", ".pyx", ".pxd", ".pxi", ".pyx.in", ".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh", ".src",
)  # fmt: skip
_LARGEST = 2 * 1024 * 1024
"""Bytes; larger files are tables or generated."""


def source_files(tree: Path) -> Iterator[str]:
    """Relative paths of Python, Cython, C and C++ files of the package, in order."""
    patterns = python_files(tree)
    for folder, folders, names in os.walk(tree):
        at_top = Path(folder) == tree
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and name not in _NEVER
            and not (at_top and name in _AROUND)
            and not Path(folder, name, "pyvenv.cfg").exists()
        )
        prefix = "" if at_top else Path(folder).relative_to(tree).as_posix() + "/"
        for name in sorted(names):
            path, full = prefix + name, Path(folder, name)
            usable = name.endswith(_ENDINGS) and name.isprintable() and not full.is_symlink()
            around = at_top and name in ("setup.py", "conftest.py")
            if usable and not around and not is_test_path(path, patterns) and full.stat().st_size <= _LARGEST:
                yield path
