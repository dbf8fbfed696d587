"""What a tree's pytest configuration says about the names of test files, classes and functions."""

from __future__ import annotations

import configparser
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

DEFAULT_PATTERNS = ("test_*.py", "*_test.py")
_INI_SECTIONS = (
    ("pytest.ini", "pytest"),
    (".pytest.ini", "pytest"),
    ("tox.ini", "pytest"),
    ("setup.cfg", "tool:pytest"),
    ("setup.cfg", "pytest"),  # before pytest 4
)
_DEFINITION = re.compile(rb"^[ \t]*(?:(?:async[ \t]+)?def[ \t]+(\w+)|class[ \t]+(\w+)(\([^)]*)?)", re.MULTILINE)


@dataclass(frozen=True)
class Naming:
    """By which names pytest takes what a test file holds for tests: beginnings, or patterns with a wildcard.

    `python_classes` and `python_functions` of pytest, and `describe_prefixes` of the plugin pytest-describe, whose
    tests are the functions within a function of such a name. Defaults count besides what a tree sets.
    """

    classes: tuple[str, ...] = ("Test",)
    functions: tuple[str, ...] = ("test",)
    blocks: tuple[str, ...] = ("describe",)

    @classmethod
    def of(cls, tree: Path) -> Naming:
        """That of a tree's own configuration; a broken file counts as none."""
        own = cls()
        return cls(
            classes=_with(own.classes, tree, "python_classes"),
            functions=_with(own.functions, tree, "python_functions"),
            blocks=_with(own.blocks, tree, "describe_prefixes"),
        )

    def is_test(self, function: str, block: str | None = None) -> bool:
        """Whether a function of this name is a test, or one within the function of the name `block`."""
        if block is not None and _is_named(block, self.blocks):
            return not function.startswith("_")
        return _is_named(function, self.functions)

    def are_in(self, content: bytes) -> bool:
        """Whether a file's text looks as if it had tests, for whatever Python they are."""
        return any(
            _is_named(function.decode(), (*self.functions, *self.blocks))
            if function
            else _is_named(name.decode(), self.classes) or b"Test" in bases
            for function, name, bases in _DEFINITION.findall(content)
        )


def python_files(tree: Path) -> tuple[str, ...]:
    """pytest's default patterns and those of the tree's own configuration; a broken file counts as none."""
    return _with(DEFAULT_PATTERNS, tree, "python_files")


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


def _is_named(name: str, patterns: Sequence[str]) -> bool:
    """pytest's rule: the beginning of a name, or a pattern with a wildcard."""
    return any(name.startswith(pattern) or fnmatchcase(name, pattern) for pattern in patterns)


def _with(defaults: Sequence[str], tree: Path, setting: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*defaults, *_from_toml(tree, setting), *_from_ini(tree, setting)]))


def _from_toml(tree: Path, setting: str) -> list[str]:
    try:
        table = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]
        patterns = table.get("ini_options", table)[setting]  # pytest 9 reads the table itself
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []
    return patterns.split() if isinstance(patterns, str) else [str(pattern) for pattern in patterns]


def _from_ini(tree: Path, setting: str) -> list[str]:
    found: list[str] = []
    for name, section in _INI_SECTIONS:
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        try:
            parser.read_string((tree / name).read_text(encoding="utf-8"))
        except (OSError, ValueError, configparser.Error):
            continue
        found += parser.get(section, setting, fallback="").split()
    return found
