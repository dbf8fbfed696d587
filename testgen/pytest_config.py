"""What a tree's pytest configuration says about the names of test files."""

from __future__ import annotations

import configparser
import tomllib
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

DEFAULT_PATTERNS = ("test_*.py", "*_test.py")
_INI_SECTIONS = (("pytest.ini", "pytest"), ("tox.ini", "pytest"), ("setup.cfg", "tool:pytest"))


def python_files(tree: Path) -> tuple[str, ...]:
    """pytest's default patterns and those of the tree's own configuration; a broken file counts as none."""
    return tuple(dict.fromkeys([*DEFAULT_PATTERNS, *_from_toml(tree), *_from_ini(tree)]))


def is_test_name(path: str, patterns: Sequence[str]) -> bool:
    """Whether a relative path is named like a test file; patterns with a slash match the path's end."""
    name = PurePosixPath(path).name
    return name.endswith(".py") and any(
        fnmatchcase(f"/{path}", f"*/{pattern}") if "/" in pattern else fnmatchcase(name, pattern)
        for pattern in patterns
    )


def may_hold_tests(path: str, patterns: Sequence[str], test_paths: Sequence[str] = ()) -> bool:
    """Whether a file may hold tests, also those that only nose or unittest find by its name, or that a recipe names."""
    name = PurePosixPath(path).name
    named = name in ("test.py", "tests.py") or name.endswith(("_tests.py", "_unittest.py"))
    listed = any(fnmatchcase(path, pattern) or PurePosixPath(path).is_relative_to(pattern) for pattern in test_paths)
    return path.endswith(".py") and (named or listed or is_test_path(path, patterns)) and name != "conftest.py"


def is_test_path(path: str, patterns: Sequence[str]) -> bool:
    """Whether a relative path is part of the tests: a test file, a conftest, or in a folder of tests."""
    pure = PurePosixPath(path)
    in_tests = not {"test", "tests"}.isdisjoint(pure.parts[:-1])
    return in_tests or pure.name == "conftest.py" or is_test_name(path, patterns)


def _from_toml(tree: Path) -> list[str]:
    try:
        document = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))
        patterns = document["tool"]["pytest"]["ini_options"]["python_files"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return patterns.split() if isinstance(patterns, str) else [str(pattern) for pattern in patterns]


def _from_ini(tree: Path) -> list[str]:
    found: list[str] = []
    for name, section in _INI_SECTIONS:
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        try:
            parser.read_string((tree / name).read_text(encoding="utf-8"))
        except (OSError, ValueError, configparser.Error):
            continue
        found += parser.get(section, "python_files", fallback="").split()
    return found
