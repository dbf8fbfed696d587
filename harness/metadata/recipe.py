"""How a tree is made runnable: its range of Pythons, what to install, how to build, where its packages lie."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version
from pydantic import Field

from perfquarry.data.records import Amendment, Record
from perfquarry.data.registry import Repository
from perfquarry.harness.metadata.ci import Ci, read_ci, read_conda
from perfquarry.harness.metadata.installed_files import installed_commands
from perfquarry.harness.metadata.legacy_bounds import readable
from perfquarry.harness.metadata.package import Metadata, read_text
from perfquarry.harness.metadata.project import Project, read_projects
from perfquarry.harness.metadata.test_requirements import (
    declared_needs,
    requirement_lines,
    tested_pythons,
    testing_needs,
)

# versions that stand for those the probe works with; a range without any of them is too old
_PROBED = ("3.10.1", "4.6.11", "5.4.3", "6.2.5", "7.4.4", "8.3.5", "9.0.0", "99.0")
_OF_PYTEST = re.compile(r"(?:py|pluggy|pytest-[\w-]+|[\w-]+-pytest)(?![\w-])")
SITE = ".perfquarry-site"
"""Folder in a tree into which inferred commands install; what is not in git moves from there beside the sources."""

_INPLACE = "python setup.py build_ext --inplace"
_CYTHON = "python -m cython"
_OWN_CYTHON = re.compile(r"\b(?:from|import)\s+Cython\b|\bcythonize\(")
_READS_REQUIREMENTS = re.compile(r"requirements\.txt|\bpbr\b")
_MOST_FILES = 20
_FILE_NAME = re.compile(r"[\w./ -]{1,200}")
_OF_PYTHON = re.compile(r"[\"'](?:\*\*/)?\*?\.py[\"']")
_C_ENDINGS = (".c", ".cpp", ".cc", ".cxx")
_C_FILE = re.compile(rf"[\"']([\w./-]+)({'|'.join(map(re.escape, _C_ENDINGS))})[\"']")
# a path without its ending, which a variable holds: "lib/fast" + ext
_C_STEM = re.compile(r"[\"']([\w./-]+)[\"'](?=\s*\+\s*\w)")
_INSTALL = f"python -m pip install --no-index --no-build-isolation --no-deps --no-compile --target {SITE} ."
# with a build folder that stays, and as many processes as the build may have
_MESON = f"{_INSTALL} --config-settings=builddir=build --config-settings=compile-args=-j$JOBS"
# what a backend asks for only while it builds (PEP 517's get_requires), which is too late without an index
_ASKED_LATE = {"mesonpy": ["ninja", "pip>=22.1"], "scikit_build_core": ["cmake", "ninja"]}
_OTHER_BACKENDS = ("mesonpy", "maturin", "scikit_build_core")
"""Backends that have nothing to do with a setup.py, which may still lie there."""


class Recipe(Record):
    """All that decides an environment and a build, beside the commit itself."""

    name: str | None = Field(default=None, description="Distribution name; never installed from the index.")
    requires_python: str | None = None
    requirements: list[str] = Field(default_factory=list, description="Of the package and its build, with pytest.")
    test_requirements: list[str] = Field(default_factory=list, description="Wanted for the tests; given up if need be.")
    build: list[str] = Field(default_factory=list, description="Shell commands run in the tree; none: used as it is.")
    variables: dict[str, str] = Field(default_factory=dict, description="Environment variables for the commands.")
    source_roots: list[str] = Field(
        default_factory=list, description="Folders for sys.path, relative; '.' is the tree."
    )
    packages: list[str] = Field(default_factory=list, description="Import names checked after the build.")
    test_variables: dict[str, str] = Field(default_factory=dict, description="Environment variables of the tests.")
    test_arguments: list[str] = Field(default_factory=list, description="Options of pytest.")
    writable_tree: bool = Field(default=False, description="Processes that run tests have a copy of the tree.")
    test_paths: list[str] = Field(default_factory=list, description="Folders and globs that hold test files.")
    guessed: bool = Field(default=False, description="Only folders speak for the packages: one that imports will do.")
    tested: list[str] = Field(default_factory=list, description="Minor versions the project tested with, '3.10'.")
    declared: list[str] = Field(default_factory=list, description="Requirements named anywhere; not installed as such.")
    system_packages: list[str] = Field(default_factory=list, description="Debian packages that its CI installs.")
    notes: list[str] = Field(default_factory=list, description="What was ignored, for the log.")

    def amended(self, amendment: Amendment) -> Recipe:
        """With what a repair adds."""
        bounds = [self.requires_python or "", f"<{amendment.python_below}" if amendment.python_below else ""]
        changes = {
            "requires_python": ",".join(filter(None, bounds)) or None,
            "requirements": sorted({*self.requirements, *amendment.requirements}),
        }
        return self.model_copy(update=changes)


def read_recipe(tree: Path, repository: Repository, needed_for: Collection[str] = ()) -> Recipe:
    """The recipe of a checked-out tree: what the registry says, and for the rest what the tree says. Nothing is run.

    Requirement lines that are no PEP 508 requirement, name a package of the tree, or point to
    an address or path instead of the index, are ignored with a note.

    Args:
        needed_for: paths that tell the projects of a workspace apart (`harness.metadata.project.read_projects`).
    """
    projects = read_projects(tree, repository, needed_for)
    ci, conda = read_ci(tree), read_conda(tree)
    absent = absent_submodules(tree)
    notes = [*ci.notes, *conda.notes]
    if absent:
        advice = "in a source on this machine, run: git submodule update --init --recursive"
        notes.append(f"submodules that are missing in the clone: {', '.join(absent)} ({advice})")
    parts = [_part(tree, project, repository, ci, conda, notes) for project in projects]
    build = [command for part in parts for command in part.build]
    written = [command for command in installed_commands(tree, projects) if command not in build]
    layouts = [project.layout for project in projects]
    names = [project.metadata.name for project in projects]
    own = {str(canonicalize_name(n)) for n in (*names, *repository.packages) if n}
    requires_python: str | None = repository.python
    for project in projects:
        requires_python = _range(project.metadata.requires_python, requires_python or "", notes)
    return Recipe(
        name=names[0],
        requires_python=requires_python,
        requirements=_clean([*(line for part in parts for line in part.runtime), "pytest"], own, notes),
        test_requirements=_clean([line for part in parts for line in part.tests], own, notes),
        build=[*build, *written],
        variables=_variables(repository, absent) if build else {},
        source_roots=list(dict.fromkeys(root for layout in layouts for root in layout.roots)),
        packages=list(dict.fromkeys(name for layout in layouts for name in layout.packages)),
        guessed=any(layout.guessed for layout in layouts),
        test_variables=repository.environment,
        test_arguments=repository.test_arguments,
        writable_tree=repository.writable_tree,
        test_paths=repository.test_paths,
        tested=sorted({version for part in parts for version in part.tested}, key=Version),
        declared=_clean([line for part in parts for line in part.declared], own, []),
        system_packages=ci.system_packages,
        notes=notes,
    )


@dataclass(frozen=True)
class _Part:
    """What one project of a tree adds to its recipe."""

    runtime: list[str]
    tests: list[str]
    build: list[str]
    tested: list[str]
    declared: list[str]


def _part(tree: Path, project: Project, repository: Repository, ci: Ci, conda: Ci, notes: list[str]) -> _Part:
    metadata, top = project.metadata, tree / project.folder
    ci = replace(ci, files=[name.removeprefix(f"{project.folder}/") for name in ci.files])
    notes += metadata.notes
    if project.folder != ".":
        notes.append(f"the project lies in {project.folder}")
    fits = _fits(repository, metadata)
    build = repository.build if fits else _below(project.folder, _build_commands(top, metadata, notes))
    runtime = _runtime(top, metadata, notes)
    runtime = runtime + (repository.requirements if fits or not repository.build else [])
    if build and not fits:
        runtime += _for_building(metadata, build) + _silently_optional(top, metadata)
    tests = [] if project.required else testing_needs(top, metadata, ci)
    if repository.test_requirements:
        tests = [*repository.test_requirements, *_about(repository.test_requirements, tests)]
    return _Part(
        runtime=runtime,
        tests=tests + [line for name in repository.extras for line in metadata.extras.get(name, [])],
        build=build,
        tested=tested_pythons(top, metadata, ci, conda),
        declared=declared_needs(top, metadata, ci, conda),
    )


def _below(folder: str, commands: Sequence[str]) -> list[str]:
    """The commands run in a folder of the tree; what they install goes where it does at the tree's top."""
    if folder == ".":
        return list(commands)
    site = "/".join([".."] * len(PurePosixPath(folder).parts) + [SITE])
    return [f"cd {shlex.quote(folder)} && {command.replace(SITE, site)}" for command in commands]


def _fits(repository: Repository, metadata: Metadata) -> bool:
    """Whether the registry says how this tree is built.

    An entry that names packages, but no commands, means pure Python used from the tree. Commands that run a
    setup.py are of the years before the repository took another backend.
    """
    if any("setup.py" in command for command in repository.build) and _backend(metadata) in _OTHER_BACKENDS:
        return False
    return bool(repository.packages) or "build" in repository.model_fields_set


def _backend(metadata: Metadata) -> str:
    """Top-level module of the build backend; setuptools where none is named."""
    return (metadata.backend or "setuptools").partition(".")[0]


def absent_submodules(tree: Path) -> list[str]:
    """Paths of submodules whose folder is empty."""
    named = re.findall(r"^[ \t]*path[ \t]*=[ \t]*(.+?)[ \t]*$", read_text(tree / ".gitmodules"), re.M)
    inside = [name for name in named if (tree / name).resolve().is_relative_to(tree.resolve())]
    return [name for name in inside if (tree / name).is_dir() and not any((tree / name).iterdir())]


def _variables(repository: Repository, absent: Sequence[str]) -> dict[str, str]:
    """The registry's, those that turn off what absent submodules hold among them."""
    found = dict(repository.build_env)
    for path in absent:
        found |= repository.without_submodules.get(path, {})
    return found


def _runtime(tree: Path, metadata: Metadata, notes: list[str]) -> list[str]:
    """Declared dependencies, and those of the files that the metadata reads them from.

    Where it names none, requirements.txt only if what installs the package reads it, as pbr does: elsewhere it is a
    list of what its developers had installed.
    """
    named = list(dict.fromkeys(metadata.runtime_files))[:_MOST_FILES]
    files = [path for name in named if (path := _named_file(tree, name))]
    found = [*metadata.runtime, *(line for path in dict.fromkeys(files) for line in requirement_lines(tree, path))]
    if found or not (tree / "requirements.txt").is_file():
        return found
    said = [read_text(tree / name) for name in ("setup.py", "setup.cfg", "pyproject.toml")]
    if any(said) and not any(_READS_REQUIREMENTS.search(text) for text in said):
        notes.append("requirements.txt ignored: nothing that installs the package reads it")
        return []
    return requirement_lines(tree, tree / "requirements.txt")


def _named_file(tree: Path, name: str) -> Path | None:
    """A file by the end of its path: at the top of the tree, in `requirements`, in another folder; None: none is."""
    end = PurePosixPath(name.lstrip("./"))
    if not _FILE_NAME.fullmatch(str(end)) or ".." in end.parts:
        return None
    found = [tree / end, tree / "requirements" / end, *sorted(tree.glob(f"*/{end}"))]
    inside = (path for path in found if path.is_file() and path.resolve().is_relative_to(tree.resolve()))
    return next(inside, None)


def _build_commands(tree: Path, metadata: Metadata, notes: list[str]) -> list[str]:
    if not metadata.native:
        return []
    if _backend(metadata) == "maturin":
        notes.append("maturin is not supported: its builds fetch crates, which no sandbox allows")
    if _backend(metadata) == "mesonpy":
        return [_MESON]
    # in place, setuptools-rust builds without optimisation
    rust = "setuptools_rust" in read_text(tree / "setup.py") + " ".join(metadata.build_requires).replace("-", "_")
    inplace = _backend(metadata) == "setuptools" and (tree / "setup.py").exists() and not rust
    if not inplace:
        return [_INSTALL]
    script = read_text(tree / "setup.py")
    libraries = "build_clib" in script and "numpy.distutils" not in script  # numpy's build_ext makes them itself
    command = _INPLACE.replace("build_ext", "build_clib build_ext") if libraries else _INPLACE
    return [*_cython_commands(tree, script), command]


def _cython_commands(tree: Path, script: str) -> list[str]:
    """Makes the C files that a setup.py without Cython takes from the release's archive: by a Makefile, otherwise."""
    if _OWN_CYTHON.search(script):
        return []
    level = " -3" if "cython -3" in read_text(tree / "Makefile") else ""
    named = dict.fromkeys([*_C_FILE.findall(script), *((stem, ".c") for stem in _C_STEM.findall(script))])
    found = [one for one in named if not (tree / "".join(one)).exists() and (tree / f"{one[0]}.pyx").is_file()]
    return [
        f"{_CYTHON}{level}{' --cplus' if ending != '.c' else ''} -o {stem}{ending} {stem}.pyx" for stem, ending in found
    ]


def _for_building(metadata: Metadata, build: Sequence[str]) -> list[str]:
    tools = [name for name in ("pip", "cython") if any(name in command.split() for command in build)]
    return ["setuptools", "wheel", *tools, *_ASKED_LATE.get(_backend(metadata), []), *metadata.build_requires]


def _silently_optional(tree: Path, metadata: Metadata) -> list[str]:
    """Cython where a setup.py asks for it in vain and compiles nothing then: no C file is beside what it would make.

    Not where it compiles modules of Python, too: of these no test would be seen to execute a line.
    """
    script = read_text(tree / "setup.py")
    declared = _about(["cython"], metadata.build_requires)
    if declared or not _OWN_CYTHON.search(script) or _OF_PYTHON.search(script):
        return []
    sources = (path for path in tree.rglob("*.pyx") if not path.relative_to(tree).parts[0].startswith("."))
    made = (any(path.with_suffix(ending).exists() for ending in _C_ENDINGS) for path in sources)
    return [] if all(made) else ["cython"]


def _range(own: str | None, registered: str, notes: list[str]) -> str | None:
    """Both ranges together."""
    found = SpecifierSet(registered)
    if own:
        try:
            found &= SpecifierSet(own)
        except InvalidSpecifier:
            notes.append(f"range of Python versions ignored: {own!r}")
    return str(found) or None


def _about(names: Sequence[str], lines: Iterable[str]) -> list[str]:
    """Those of a tree's lines that are about one of the names: its own versions of what the registry only names."""
    known = {canonicalize_name(name) for name in names}
    found = ((re.match(r"[\w.-]+", line), line) for line in lines)
    return [line for name, line in found if name and canonicalize_name(name.group()) in known]


def _clean(lines: Iterable[str], own: set[str], notes: list[str]) -> list[str]:
    """Requirements in one spelling, sorted, each once."""
    kept: set[str] = set()
    aged = False
    for line in lines:
        if not (text := readable(line)):
            notes.append(f"requirement ignored, not understood: {line[:200]!r}")
            continue
        requirement = Requirement(text)
        if canonicalize_name(requirement.name) in own:
            continue
        if requirement.url:
            notes.append(f"requirement ignored, not from the index: {line[:200]!r}")
            continue
        requirement.name = canonicalize_name(requirement.name)
        if requirement.name == "pytest" and not any(map(requirement.specifier.contains, _PROBED)):
            notes.append(f"range of pytest ignored, too old for the probe: {line[:200]!r}")
            requirement.specifier = SpecifierSet()
            aged = True
        kept.add(str(requirement))
    if aged:  # pinned together with that pytest, they would keep it
        kept = {Requirement(line).name if _OF_PYTEST.match(line) else line for line in kept}
    bare = {r for r in kept if re.fullmatch(r"[a-z0-9-]+", r)}
    narrowed = {Requirement(r).name for r in kept - bare if Requirement(r).marker is None}
    return sorted(kept - (bare & narrowed))
