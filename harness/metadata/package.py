"""What a tree says of its package: pyproject.toml, setup.cfg and setup.py, read without running anything."""

from __future__ import annotations

import configparser
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perfquarry.harness.metadata.build_backends import Tables, modules_of, table_of, texts_of
from perfquarry.harness.metadata.setup_script import SetupScript, folders_of, renamed_of, setup_script_of

_NATIVE_BACKENDS = re.compile(r"mesonpy|maturin|scikit_build|skbuild|sipbuild|setuptools[-_]rust|poetry.*build\.py")
_ENTRY_POINTS_LENGTH = 20_000
"""Characters of a group, above which it is left out."""
_ONLY_2 = "Programming Language :: Python :: 2 :: Only"
_CLASSIFIED = re.compile(r"Programming Language :: Python :: (\d\.\d{1,2})\b")

Texts = Callable[[str], str]
"""The text of a file by its name; empty when there is none."""


@dataclass
class Metadata:
    """Facts of one tree; requirement lines are as written, not yet checked."""

    name: str | None = None
    requires_python: str | None = None
    runtime: list[str] = field(default_factory=list)
    runtime_files: list[str] = field(default_factory=list)
    """Files that more of these are read from, as the metadata names them."""
    extras: dict[str, list[str]] = field(default_factory=dict)
    build_requires: list[str] = field(default_factory=list)
    backend: str | None = None
    package_folders: list[str] = field(default_factory=list)
    """Folders that hold the packages, where the metadata names them ('src')."""
    renamed: dict[str, str] = field(default_factory=dict)
    """Packages whose folder has another name, with that folder's path ('lib')."""
    modules: list[str] = field(default_factory=list)
    """Paths of packages and modules without an ending, where the build backend's own settings name them ('src/lib')."""
    packages: list[str] = field(default_factory=list)
    """Top-level import names, where the metadata lists them."""
    py_modules: list[str] = field(default_factory=list)
    """Modules beside the packages, which setuptools lists by themselves."""
    finds_packages: bool = False
    """Whether setuptools finds the packages: they are listed nowhere."""
    entry_points: dict[str, list[str]] = field(default_factory=dict)
    """Lines 'name = object' by their group; console scripts are left out."""
    native: bool = False
    pythons: list[str] = field(default_factory=list)
    """Minor versions that the classifiers name, '3.10'."""
    notes: list[str] = field(default_factory=list)


def metadata_of(texts: Texts) -> Metadata:
    """What the files say; what cannot be read is left out and noted.

    Where several files say something, pyproject.toml wins over setup.cfg, and that over setup.py.
    """
    found = Metadata()
    _read_pyproject(texts("pyproject.toml"), found)
    _read_setup_cfg(texts("setup.cfg"), found)
    _merge_script(setup_script_of(texts("setup.py")), found)
    return found


def read_text(path: Path) -> str:
    """A file's text, bytes that are not UTF-8 replaced; empty when it is absent, a link or larger than 1 MiB."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > 1024**2:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _read_pyproject(text: str, found: Metadata) -> None:
    if not text:
        return
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found.notes.append(f"pyproject.toml ignored: {error}")
        return
    build = table_of(data, "build-system")
    found.backend = _text(build.get("build-backend"))
    found.build_requires = texts_of(build.get("requires"))
    found.native = bool(_NATIVE_BACKENDS.search(f"{found.backend} {' '.join(found.build_requires)}"))
    project = table_of(data, "project")
    found.name = _text(project.get("name"))
    found.requires_python = _text(project.get("requires-python"))
    found.runtime = texts_of(project.get("dependencies"))
    found.extras = {k: texts_of(v) for k, v in table_of(project, "optional-dependencies").items()}
    _add_entry_points(_entry_points(table_of(project, "entry-points")), found)
    groups = table_of(data, "dependency-groups")
    for name in groups:
        found.extras.setdefault(name, _group(groups, name))
    _read_classifiers("\n".join(texts_of(project.get("classifiers"))), found)
    tool = table_of(data, "tool")
    _read_poetry(table_of(tool, "poetry"), found)
    found_setuptools = table_of(tool, "setuptools")
    found.native = found.native or "ext-modules" in found_setuptools
    found.package_folders += texts_of(table_of(found_setuptools, "packages", "find").get("where"))
    package_dir = table_of(found_setuptools, "package-dir")
    _read_package_dir({k: v for k, v in package_dir.items() if isinstance(v, str)}, found)
    listed = table_of(found_setuptools, "dynamic", "dependencies").get("file")
    found.runtime_files += texts_of(listed if isinstance(listed, list) else [listed])
    found.runtime_files += texts_of(table_of(tool, "hatch", "metadata", "hooks", "requirements_txt").get("files"))
    found.modules = modules_of(tool)
    found.packages = _top_names(texts_of(found_setuptools.get("packages")))
    found.finds_packages = isinstance(found_setuptools.get("packages"), dict)
    found.py_modules = _top_names(texts_of(found_setuptools.get("py-modules")))
    legacy = table_of(tool, "flit", "metadata")
    found.name = found.name or _text(legacy.get("dist-name")) or _text(legacy.get("module"))
    found.runtime = found.runtime or texts_of(legacy.get("requires"))
    found.requires_python = found.requires_python or _text(legacy.get("requires-python"))
    _read_groups_of_tools(tool, found)
    for name, lines in table_of(legacy, "requires-extra").items():
        found.extras.setdefault(name, texts_of(lines))


def _add_entry_points(groups: Mapping[str, Sequence[str]], found: Metadata) -> None:
    """Lines 'name = object' by their group; those of commands and what fits on no line are left out."""
    for group, lines in groups.items():
        text = "".join([group, *lines])
        fits = text.isprintable() and len(text) < _ENTRY_POINTS_LENGTH
        if group not in ("console_scripts", "gui_scripts") and lines and fits:
            found.entry_points.setdefault(group, list(lines))


def _entry_points(groups: Mapping[str, object]) -> dict[str, list[str]]:
    """Lines of tables 'group: name: object'."""
    tables = {group: table for group, table in groups.items() if isinstance(table, dict)}
    return {group: [f"{name} = {value}" for name, value in table.items()] for group, table in tables.items()}


def _read_groups_of_tools(tool: Tables, found: Metadata) -> None:
    """Lists of development requirements under the names of pdm, uv and hatch."""
    groups = dict(table_of(tool, "pdm", "dev-dependencies"))
    groups["dev"] = [*texts_of(groups.get("dev")), *texts_of(table_of(tool, "uv").get("dev-dependencies"))]
    for name, table in table_of(tool, "hatch", "envs").items():
        wanted = table if isinstance(table, dict) else {}
        features = [line for one in texts_of(wanted.get("features")) for line in found.extras.get(one, [])]
        lines = [*texts_of(wanted.get("dependencies")), *texts_of(wanted.get("extra-dependencies")), *features]
        groups["dev" if name == "default" else name] = lines + texts_of(groups.get(name))
    for name, lines in groups.items():
        if lines := texts_of(lines):
            found.extras.setdefault(name, lines)


def _group(groups: Tables, name: str, above: tuple[str, ...] = ()) -> list[str]:
    """Requirement lines of a dependency group and of those that it includes (PEP 735)."""
    found: list[str] = []
    for entry in groups[name] if isinstance(groups.get(name), list) else []:
        included = entry.get("include-group") if isinstance(entry, dict) else None
        if isinstance(entry, str):
            found.append(entry)
        elif isinstance(included, str) and included not in (*above, name):
            found += _group(groups, included, (*above, name))
    return found


def _top_names(names: list[str]) -> list[str]:
    return sorted({name.partition(".")[0] for name in names if re.fullmatch(r"[\w.]+", name)})


def _read_poetry(poetry: Tables, found: Metadata) -> None:
    if not poetry:
        return
    found.name = found.name or _text(poetry.get("name"))
    dependencies = dict(table_of(poetry, "dependencies"))
    python = _specifier(_alternatives(_text(dependencies.pop("python", None)) or "", of_python=True)[-1])
    found.requires_python = found.requires_python or python or None
    needed = {name: value for name, value in dependencies.items() if not _optional(value)}
    found.runtime += [line for name, value in needed.items() for line in _lines_of(name, value)]
    groups = {"dev": table_of(poetry, "dev-dependencies")}
    groups |= {name: table_of(group, "dependencies") for name, group in table_of(poetry, "group").items()}
    for name, group in groups.items():
        if group:
            found.extras.setdefault(name, [line for n, value in group.items() for line in _lines_of(n, value)])
    _add_entry_points(_entry_points(table_of(poetry, "plugins")), found)
    if poetry.get("build"):
        found.native = True


def _optional(value: object) -> bool:
    return isinstance(value, dict) and bool(value.get("optional"))


def _lines_of(name: str, value: object) -> list[str]:
    """One of poetry's dependencies as PEP 508's lines: for each version that it asks for, where that is asked for."""
    if isinstance(value, list):
        return [line for one in value for line in _lines_of(name, one)]
    where = [f"({one})" for one in _markers(value) if one] if isinstance(value, dict) else []
    return [f"{name}{_constraint(value)}" + (f" ; {' and '.join(where)}" if where else "")]


def _markers(value: Tables) -> Iterator[str]:
    ranges = (_specifier(one) for one in _alternatives(_text(value.get("python")) or ""))
    yield " or ".join(" and ".join(map(_of_python, one.split(","))) for one in ranges if one)
    yield _text(value.get("markers")) or ""
    if platform := _text(value.get("platform")):
        yield f'sys_platform == "{platform}"'


def _of_python(bound: str) -> str:
    """The marker of one bound on the interpreter's version: '<3.9' is 'python_version < "3.9"'."""
    version = bound.strip().lstrip("<>=!~")
    sign = bound.strip().removesuffix(version)
    version = version.strip()
    name = "python_full_version" if re.fullmatch(r"\d+\.\d+\.\d+.*", version) else "python_version"
    return f'{name} {sign} "{version}"'


def _constraint(value: object) -> str:
    """A poetry constraint as a PEP 440 specifier; '' for any. Of alternatives, which it cannot say, the last."""
    if isinstance(value, dict):
        value = value.get("version", "")
    return _specifier(_alternatives(value)[-1]) if isinstance(value, str) else ""


def _alternatives(text: str, *, of_python: bool = False) -> list[str]:
    """Those of poetry's '^1.2 || ^2'; of versions of Python, those that are not of Python 2 alone come last."""
    found = [one.strip() for one in re.split(r"\|\|?", text)]
    return sorted(found, key=lambda one: of_python and re.match(r"[~^=\s]*2\b", one) is None)


def _specifier(text: str) -> str:
    if text in ("", "*"):
        return ""
    parts = []
    for part in text.split(","):
        part = part.strip()
        numbers = re.match(r"[\^~]\s*(\d+(?:\.\d+)*)", part)
        if numbers:
            parts.append(_caret(numbers.group(1), part[0]))
        else:
            parts.append(part if re.match(r"[<>=!~]", part) else f"=={part}")
    return ",".join(parts)


def _caret(version: str, sign: str) -> str:
    """'^1.2' allows below 2, '^0.2' below 0.3; '~1.2.3' below 1.3, '~1' below 2."""
    numbers = [int(n) for n in version.split(".")]
    first = next((i for i, n in enumerate(numbers) if n), len(numbers) - 1)
    place = first if sign == "^" else min(1, len(numbers) - 1)
    upper = [*numbers[:place], numbers[place] + 1]
    return f">={version},<{'.'.join(map(str, upper))}"


def _read_setup_cfg(text: str, found: Metadata) -> None:
    if not text:
        return
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        found.notes.append(f"setup.cfg ignored: {error}")
        return
    found.name = found.name or parser.get("metadata", "name", fallback=None)
    _read_classifiers(parser.get("metadata", "classifiers", fallback=""), found)
    options = dict(parser.items("options")) if parser.has_section("options") else {}
    found.requires_python = found.requires_python or options.get("python_requires")
    runtime = options.get("install_requires", "")
    if runtime.startswith("file:"):
        found.runtime_files += [name.strip() for name in re.split(r"[,\n]", runtime.removeprefix("file:"))]
    else:
        found.runtime = found.runtime or _listed(runtime)
    found.build_requires += _listed(options.get("setup_requires", ""))
    if "tests_require" in options:
        found.extras.setdefault("tests_require", _listed(options["tests_require"]))
    pairs = (line.partition("=") for line in _lines(options.get("package_dir", "")))
    _read_package_dir({package.strip(): folder.strip() for package, _, folder in pairs}, found)
    if parser.has_section("options.packages.find"):
        found.package_folders += _lines(parser.get("options.packages.find", "where", fallback=""))
    found.packages = found.packages or _top_names(_listed(options.get("packages", ""), ","))
    found.finds_packages = found.finds_packages or options.get("packages", "").startswith("find")
    found.py_modules = found.py_modules or _top_names(_listed(options.get("py_modules", ""), ","))
    for section in filter(parser.has_section, ("options.entry_points", "entry_points")):  # the latter is pbr's
        _add_entry_points({group: _lines(text) for group, text in parser.items(section)}, found)
    if parser.has_section("options.extras_require"):
        for name, lines in parser.items("options.extras_require"):
            found.extras.setdefault(name, _listed(lines))


def _read_package_dir(package_dir: dict[str, str], found: Metadata) -> None:
    found.package_folders += [one for one in folders_of(package_dir) if one not in found.package_folders]
    found.renamed = renamed_of(package_dir) | found.renamed


def _read_classifiers(text: str, found: Metadata) -> None:
    if _ONLY_2 in text:
        found.requires_python = found.requires_python or "<3"
    found.pythons = found.pythons or _CLASSIFIED.findall(text)


def _merge_script(script: SetupScript, found: Metadata) -> None:
    found.notes += script.notes
    found.native = found.native or script.native
    found.name = found.name or script.text("name")
    found.requires_python = found.requires_python or script.text("python_requires")
    _read_classifiers("\n".join(script.texts("classifiers")), found)
    if not found.runtime:
        found.runtime = script.texts("install_requires")
        found.runtime_files += script.runtime_files
    found.build_requires += script.texts("setup_requires")
    if script.texts("tests_require"):
        found.extras.setdefault("tests_require", script.texts("tests_require"))
    for name, lines in script.lists("extras_require").items():
        found.extras.setdefault(name, lines)
    _add_entry_points(script.lists("entry_points"), found)
    _read_package_dir(script.package_dir(), found)
    found.package_folders += script.texts("where")
    found.packages = found.packages or _top_names(script.texts("packages"))
    found.finds_packages = found.finds_packages or script.finds_packages
    found.py_modules = found.py_modules or _top_names(script.texts("py_modules"))


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]


def _listed(text: str, separator: str = ";") -> list[str]:
    """A list as setuptools reads it: of lines, or separated in a single one, as in `test = mock; pytest`."""
    single = "\n" not in text and not {"'", '"'} & set(text)  # quoted: the one requirement has a marker
    return [part.strip() for part in text.split(separator) if part.strip()] if single else _lines(text)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
