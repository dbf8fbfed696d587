"""What the tests of a tree need beside the package: requirement files, tox.ini, pytest options, imports."""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from packaging.version import Version

from perfquarry.harness.building.distributions import distribution_of
from perfquarry.harness.metadata.ci import Ci, versions_of_tox
from perfquarry.harness.metadata.package import Metadata, read_text

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
    r"asyncio[_-]mode": "pytest-asyncio",
    r"--doctest-glob.*\bplus\b|--doctest-plus|doctest_plus": "pytest-doctestplus",
    r"--randomly": "pytest-randomly",
}
# Small and pure Python: installed beforehand for an import in a test, others when the import fails.
_IMPORTS = (
    {"attr", "dateutil", "freezegun", "hypothesis", "mock", "nose", "numpy", "parameterized", "pretend", "pytz"}
    | {"requests", "responses", "six", "sniffio", "trio", "trustme", "typing_extensions", "yaml"}
)  # fmt: skip
# not indented, so needed to import the file at all
_TOP_IMPORT = re.compile(r"^(?:import|from)[ \t]+(\w+)", re.M)
_PLUGIN_LIST = re.compile(r"^pytest_plugins\s*=\s*(.*(?:\n[ \t\]\)].*)*)", re.M)
_MAX_TEST_FILES = 400
# Tools that lists of test or development requirements name, which no test run needs.
_IDLE = re.compile(
    r"^(?:tox|virtualenv|flake8|black|mypy|pylint|sphinx|sphinx-.*|twine|pre-commit|build|codecov|coveralls|isort|ruff"
    r"|pip-tools|doc8|rstcheck|ipython|ipdb|pyright|bandit|towncrier|bumpversion|check-manifest|pydocstyle"
    r"|pycodestyle|types-.*|nox|mkdocs.*|mkautodoc|sphinxcontrib-.*|furo|numpydoc|asv|readme-renderer)(?![\w-])",
    re.I,
)


_RUNNERS = (
    *("tox.ini", "setup.cfg", "pyproject.toml", "Makefile", "noxfile.py", "setup.py", ".travis.yml"),
    *(".github/workflows/*.yml", "manage.py", "test*/manage.py", "*run*tests.*", "test*/*run*tests.*"),
    "*/test*/*run*tests.*",
    *("quicktest.py", "conftest.py", "test*/conftest.py"),
)
"""Where a tree says how Django runs its tests."""
_RUNS_DJANGO = re.compile(r"DJANGO_SETTINGS_MODULE|\bdjango(?:-admin)? test\b|^[ \t]*settings\.configure\(", re.M)
_APPLICATIONS = re.compile(r"\bINSTALLED_APPS[\"']?\s*[+:=]+\s*[\[(]([^\])]*)")
_OWN_EXTRAS = re.compile(r"[\"']?\.[\w/]*\[([\w\s,.-]+)\][\"']?")
"""The package itself with extras, as a requirement line."""
_LONGEST = 400
_NAMED_ADDRESS = re.compile(r"([\w.-]+)\s*(?:\[[^\]]*\])?\s*@\s*\S+:")
_EGG = re.compile(r"[#&]egg=([\w.-]*\w)")
_REPOSITORY = re.compile(r"(?:\w+\+)?\w+://[^/\s]+/[^/\s]+/([\w.-]*?\w)(?:\.git)?(?:[/@#?]\S*)?$")
"""Addresses of requirements: with a name before them, after them, and of a repository, `HOST/OWNER/NAME/…`."""


def testing_needs(tree: Path, metadata: Metadata, ci: Ci) -> list[str]:
    """Requirement lines for the tests, as written; declared ones first, then what options and imports show."""
    found = _first_extras(metadata, _EXTRAS)
    found += _from_files(tree, _FILES)
    found += _from_tox(tree, metadata, every=False)
    if not found:
        found = _first_extras(metadata, (*ci.extras, *_EXTRAS_ELSE))
        found = found or _from_named(tree, ci.files) or _from_files(tree, _FILES_ELSE)
    if not found:
        root = _from_files(tree, ("requirements.txt",))  # of whoever works on the package, if it has the tests' tool
        found = root if any(re.match(r"pytest\b", line) for line in root) else []
    found += [line for line in ci.requirements if re.match(r"pytest[-_]", line)]
    lines = [*_own_extras_read(found, metadata), *_plugins(tree), *_imported(tree), *django_needs(tree)]
    return [line for line in lines if not _IDLE.match(line)]


def declared_needs(tree: Path, metadata: Metadata, ci: Ci, conda: Ci) -> list[str]:
    """Every requirement line the tree has anywhere: what a module that turns out to be missing is looked up in."""
    found = [line for lines in metadata.extras.values() for line in lines]
    found += _from_files(tree, (*_FILES, *_FILES_ELSE, "requirements*.txt", "requirements/*.txt"))
    found += _from_named(tree, ci.files) + _from_tox(tree, metadata, every=True)
    lines = [*_own_extras_read(found, metadata), *ci.requirements, *conda.requirements]
    return list(dict.fromkeys(map(_of_the_index, lines)))


def _of_the_index(line: str) -> str:
    """The name of what a line has an address of: the index may have it, too."""
    if "://" not in line or len(line) > _LONGEST:  # a stranger's text may not keep us busy
        return line
    found = _NAMED_ADDRESS.match(line) or _EGG.search(line) or _REPOSITORY.match(line)
    return found[1] if found else line


def _own_extras_read(lines: Sequence[str], metadata: Metadata) -> Iterator[str]:
    """The lines, with those of the package's extras in place of `.[full]`."""
    for line in lines:
        if own := _OWN_EXTRAS.fullmatch(line):
            for name in own.group(1).split(","):
                yield from metadata.extras.get(name.strip(), [])
        else:
            yield line


def tested_pythons(tree: Path, metadata: Metadata, ci: Ci, conda: Ci) -> list[str]:
    """Minor versions the tests were run with, '3.10': of CI and tox, else of conda or the classifiers."""
    parser = _tox(tree)
    listed = [parser.get("tox", name, fallback="") for name in ("envlist", "env_list")] if parser else []
    found = [*ci.pythons, *versions_of_tox("\n".join(listed))]
    return sorted(set(found or conda.pythons or metadata.pythons), key=Version)


def requirement_lines(tree: Path, path: Path, depth: int = 0) -> list[str]:
    """Lines of a requirements file; files it includes (`-r`) are followed inside the tree, other options left out."""
    lines: list[str] = []
    for raw in read_text(path).replace("\\\n", " ").splitlines():
        line = re.sub(r"(^|\s)#.*$", "", raw).strip()
        line = re.sub(r"^(?:-e|--editable)[\s=]*(?=[\"']?\.[\w/]*\[)", "", line)
        included = re.match(r"(?:-r|--requirement)[\s=]*(\S+)", line)
        if included and depth < 5:
            other = (path.parent / included.group(1)).resolve()
            if other.is_relative_to(tree.resolve()):
                lines += requirement_lines(tree, other, depth + 1)
        elif line and not line.startswith("-"):
            lines.append(re.sub(r"\s+--hash=\S+", "", line))
    return lines


def _first_extras(metadata: Metadata, names: Sequence[str]) -> list[str]:
    return next((list(metadata.extras[name]) for name in names if name in metadata.extras), [])


def _from_named(tree: Path, names: Sequence[str]) -> list[str]:
    paths = [(tree / name).resolve() for name in names]
    inside = [path for path in paths if path.is_relative_to(tree.resolve())]
    return [line for path in inside for line in requirement_lines(tree, path)]


def _from_files(tree: Path, patterns: tuple[str, ...]) -> list[str]:
    return [line for p in patterns for path in sorted(tree.glob(p)) for line in requirement_lines(tree, path)]


def _tox(tree: Path) -> configparser.RawConfigParser | None:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(read_text(tree / "tox.ini"))
    except configparser.Error:
        return None
    return parser


def _from_tox(tree: Path, metadata: Metadata, *, every: bool) -> list[str]:
    """Unconditional lines of `[testenv] deps`, its extras and dependency groups.

    `every`: also those of other environments and under conditions.
    """
    parser = _tox(tree)
    if parser is None:
        return []
    lines: list[str] = []
    for name in _lists_of_tox(parser):
        lines += metadata.extras.get(name, [])
    for section in [name for name in parser.sections() if name == "testenv" or (every and name.startswith("testenv"))]:
        for raw in parser.get(section, "deps", fallback="").splitlines():
            line = re.sub(r"^[\w\-{},!]+:\s+", "", raw.strip()) if every else raw.strip()
            if line.startswith("-r"):
                lines += _from_named(tree, [line[2:].replace("{toxinidir}/", "").strip()])
            elif line and not re.match(r"[\w\-{},!]+:\s|[-#{]", line):
                lines.append(line)
    return lines


def _lists_of_tox(parser: configparser.RawConfigParser) -> list[str]:
    """Names of the extras and dependency groups that `[testenv]` installs."""
    texts = (parser.get("testenv", key, fallback="") for key in ("extras", "dependency_groups"))
    return [name for text in texts for name in re.findall(r"^\s*([\w-]+)\s*$", text.replace(",", "\n"), re.M)]


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
    plugins: set[str] = set()
    for path in _test_files(tree):
        text = read_text(path)
        names |= set(_TOP_IMPORT.findall(text))
        if path.name == "conftest.py":
            plugins |= {name for listed in _PLUGIN_LIST.findall(text) for name in re.findall(r"[\"']([\w.]+)", listed)}
    plugins |= names
    wanted = sorted((names & _IMPORTS) | {name for name in plugins if name.startswith("pytest_")})
    found = [distribution_of(name) for name in wanted if not (tree / name).exists()]
    return [name for name in found if name]


def django_needs(tree: Path) -> list[str]:
    """What tests need that Django runs: pytest's plugin, and the applications that the settings install."""
    places = [path for pattern in _RUNNERS for path in sorted(tree.glob(pattern))]
    if not any(_RUNS_DJANGO.search(read_text(path)) for path in places):
        return []
    settings = [*places, *sorted(tree.glob("test*/settings*.py")), *sorted(tree.glob("test*/settings/*.py"))]
    listed = " ".join(names for path in settings for names in _APPLICATIONS.findall(read_text(path)))
    names = [name for name in re.findall(r"[\"'](\w+)", listed) if not (tree / name).exists()]
    return list(dict.fromkeys(["pytest-django", "django", *filter(None, map(distribution_of, names))]))


def _test_files(tree: Path) -> Iterator[Path]:
    found = 0
    for path in sorted(tree.rglob("*.py")):
        inside = path.relative_to(tree).parts
        if path.name == "conftest.py" or path.name.startswith("test_") or {"test", "tests"} & set(inside[:-1]):
            yield path
            found += 1
            if found == _MAX_TEST_FILES:
                return
