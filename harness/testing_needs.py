"""What the tests of a tree need beside the package: requirement files, tox.ini, pytest options, imports."""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterator
from pathlib import Path

from harness.metadata import Metadata, read_text

_EXTRAS = ("test", "tests", "testing", "tests_require")
_EXTRAS_ELSE = ("dev", "develop", "development")
_FILES = (
    "test-requirements.txt",
    "test_requirements.txt",
    "requirements-test*.txt",
    "requirements_test*.txt",
    "requirements/test*.txt",
    "tests/requirements*.txt",
    "test/requirements*.txt",
)
_FILES_ELSE = ("requirements-dev*.txt", "requirements_dev*.txt", "dev-requirements.txt", "requirements/dev*.txt")

# Options in the repository's pytest settings without whose plugin pytest refuses to start.
_PLUGINS = {
    r"--cov\b": "pytest-cov",
    r"--timeout\b|^timeout\s*=": "pytest-timeout",
    r"--benchmark": "pytest-benchmark",
    r"(?:^|\s)(?:-n\s*\w+|--dist)\b": "pytest-xdist",
    r"--reruns": "pytest-rerunfailures",
    r"--mypy\b": "pytest-mypy",
    r"--flake8\b": "pytest-flake8",
    r"--pep8\b": "pytest-pep8",
    r"asyncio_mode": "pytest-asyncio",
    r"--doctest-glob.*\bplus\b|--doctest-plus|doctest_plus": "pytest-doctestplus",
    r"--randomly": "pytest-randomly",
}
# Distributions by import name. Only what is known is installed for a bare import: any other
# name might be the repository's own helper, and a stranger's package on the index.
_IMPORTS = {
    "attr": "attrs",
    "dateutil": "python-dateutil",
    "freezegun": "freezegun",
    "hypothesis": "hypothesis",
    "mock": "mock",
    "nose": "nose",
    "numpy": "numpy",
    "parameterized": "parameterized",
    "pretend": "pretend",
    "pytz": "pytz",
    "requests": "requests",
    "responses": "responses",
    "six": "six",
    "sniffio": "sniffio",
    "trio": "trio",
    "trustme": "trustme",
    "typing_extensions": "typing-extensions",
    "yaml": "PyYAML",
}
# not indented, so needed to import the file at all
_TOP_IMPORT = re.compile(r"^(?:import|from)[ \t]+(\w+)", re.M)
_MAX_TEST_FILES = 400
# Tools that lists of test or development requirements name, which no test run needs.
_IDLE = re.compile(
    r"^(?:tox|virtualenv|flake8|black|mypy|pylint|sphinx|sphinx-.*|twine|pre-commit|build|codecov|coveralls|isort|ruff"
    r"|pip-tools|doc8|rstcheck|ipython|ipdb|pyright|bandit|towncrier|bumpversion|check-manifest|pydocstyle"
    r"|pycodestyle|types-.*|nox|sphinxcontrib-.*|furo|numpydoc|asv|readme-renderer)(?![\w-])",
    re.I,
)


def testing_needs(tree: Path, metadata: Metadata) -> list[str]:
    """Requirement lines for the tests, as written; declared ones first, then what options and imports show."""
    found = _first_extras(metadata)
    found += _from_files(tree, _FILES)
    found += _from_tox(tree)
    if not found:
        found = next((metadata.extras[n] for n in _EXTRAS_ELSE if n in metadata.extras), [])
        found = found or _from_files(tree, _FILES_ELSE)
    return [line for line in [*found, *_plugins(tree), *_imported(tree)] if not _IDLE.match(line)]


def requirement_lines(tree: Path, path: Path, depth: int = 0) -> list[str]:
    """Lines of a requirements file; files it includes (`-r`) are followed inside the tree, other options left out."""
    lines: list[str] = []
    for raw in read_text(path).replace("\\\n", " ").splitlines():
        line = re.sub(r"(^|\s)#.*$", "", raw).strip()
        included = re.match(r"(?:-r|--requirement)[\s=]*(\S+)", line)
        if included and depth < 5:
            other = (path.parent / included.group(1)).resolve()
            if other.is_relative_to(tree.resolve()):
                lines += requirement_lines(tree, other, depth + 1)
        elif line and not line.startswith("-"):
            lines.append(re.sub(r"\s+--hash=\S+", "", line))
    return lines


def _first_extras(metadata: Metadata) -> list[str]:
    return next((list(metadata.extras[name]) for name in _EXTRAS if name in metadata.extras), [])


def _from_files(tree: Path, patterns: tuple[str, ...]) -> list[str]:
    return [line for p in patterns for path in sorted(tree.glob(p)) for line in requirement_lines(tree, path)]


def _from_tox(tree: Path) -> list[str]:
    """Unconditional lines of `[testenv] deps`."""
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(read_text(tree / "tox.ini"))
    except configparser.Error:
        return []
    lines: list[str] = []
    for raw in parser.get("testenv", "deps", fallback="").splitlines():
        line = raw.strip()
        if line.startswith("-r"):
            path = (tree / line[2:].replace("{toxinidir}/", "").strip()).resolve()
            if path.is_relative_to(tree.resolve()):
                lines += requirement_lines(tree, path)
        elif line and not re.match(r"[\w\-{},!]+:\s|[-#{]", line):
            lines.append(line)
    return lines


def _plugins(tree: Path) -> Iterator[str]:
    text = "\n".join(read_text(tree / name) for name in ("pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml"))
    options = "\n".join(
        re.findall(r"^\s*(?:addopts|timeout|asyncio_mode|doctest_plus)\s*=.*(?:\n[ \t]+.*)*", text, re.M)
    )
    for pattern, plugin in _PLUGINS.items():
        if re.search(pattern, options, re.M):
            yield plugin


def _imported(tree: Path) -> list[str]:
    names: set[str] = set()
    for path in _test_files(tree):
        names |= set(_TOP_IMPORT.findall(read_text(path)))
    return [_IMPORTS[name] for name in sorted(names & _IMPORTS.keys()) if not (tree / name).exists()]


def _test_files(tree: Path) -> Iterator[Path]:
    found = 0
    for path in sorted(tree.rglob("*.py")):
        inside = path.relative_to(tree).parts
        if path.name == "conftest.py" or path.name.startswith("test_") or {"test", "tests"} & set(inside[:-1]):
            yield path
            found += 1
            if found == _MAX_TEST_FILES:
                return
