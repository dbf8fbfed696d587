"""What an installation writes beside the sources, and a checkout does not have: metadata, and modules with the version.

Packages that ask for their own version (`importlib.metadata`, `pkg_resources`), for their plugins by entry points, that
are plugins of pytest, or that import a module which setuptools-scm, hatch-vcs or pdm write, cannot be used from a
checkout without these. Versioneer's module is in the checkout, and knows no version without git ("0+unknown"), which
packages that compare it when they are imported take for none.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from keyword import iskeyword
from pathlib import Path, PurePosixPath

from perfquarry.harness.metadata.layout import Layout
from perfquarry.harness.metadata.package import read_text
from perfquarry.harness.metadata.project import Project

VERSION = "SETUPTOOLS_SCM_PRETEND_VERSION"
"""The variable that holds the version while commands run; `harness.building.native` sets it."""
_ASKS = re.compile(
    r"importlib[._]metadata|\bimportlib[ \t]{1,9}import[ \t][^\n]{0,200}?\bmetadata\b"
    r"|\bpbr\.version\b|\bpbr[ \t]{1,9}import[ \t]{1,9}version\b|\b(?:import|from)[ \t]{1,9}stevedore\b"
)
_TESTS_ASK = "pytest11"
"""The group of entry points in which pytest looks for its plugins: fixtures of the package's own tests."""
_OLD, _OLD_ASKS = "pkg_resources", re.compile(r"\b(?:get_distribution|require|iter_entry_points|working_set)\b")
# each part has a bound: a stranger's text may not keep us busy
_FROM = re.compile(
    r"^[ \t]{0,80}from[ \t]{1,9}(\.{0,9})(\w{0,99}(?:\.\w{1,99}){0,9})[ \t]{1,9}import[ \t]{0,9}"
    r"(\([^)]{0,2000}\)|[^\n#;]{0,999})",
    re.M,
)
_IMPORT = re.compile(r"^[ \t]{0,80}import[ \t]{1,9}(\w{1,99}(?:\.\w{1,99}){0,9})", re.M)
_CALL = re.compile(r"(?<![\w.])(\w{1,99})[ \t]{0,9}\(")
_ALIAS = re.compile(r"(?<!\w)(\w{1,99})[ \t]{1,9}as[ \t]{1,9}(\w{1,99})")
_FILE = re.compile(
    r"(?<![\w-])(?:write[-_]to|(?:version[-_]?)?file(?:[-_]source)?)[\"']?[ \t]{0,9}[:=][ \t]{0,9}[\"']?"
    r"([\w-][\w./-]{0,199})\.py(?!\w)"
)
"""Where tools name the module that they write: setuptools-scm, hatch-vcs, pdm, versioningit, versioneer."""
_VERSIONEER = re.compile(r"^[ \t]{0,80}git_refnames[ \t]{0,9}=[ \t]{0,9}[\"']\$Format:%d\$[\"']", re.M)
"""What `git archive` would fill in."""
_LIKE_VERSION = re.compile(r"\w{0,40}?version\w{0,40}", re.I)
_NAME = re.compile(r"[A-Za-z_]\w{0,99}")
_DISTRIBUTION = re.compile(r"[A-Za-z0-9](?:[\w.-]{0,98}[A-Za-z0-9])?", re.ASCII)
_IN_PARTS = re.compile(r"tuple|info", re.I)
_MOST = 20
"""Modules that are written, and names of one; of more, none: they are no versions."""
ELSEWHERE = "# the code of this package lies in "
"""How the `__init__` of a package begins whose folder in the tree has another name."""
_STANDARD = ("__version__", "version", "__version_tuple__", "version_tuple")


def installed_commands(tree: Path, projects: Sequence[Project]) -> list[str]:
    """Shell commands that write what the packages of a tree's projects ask for; none where they ask for nothing.

    The version is that of the variable `VERSION`. What is there already stays. Nothing of the tree is run.
    """
    texts = [{path: read_text(tree / path) for path in _sources(tree, project.layout)} for project in projects]
    asked = any(_asks(text) for some in texts for text in some.values())
    commands = [_elsewhere(name, to) for project in projects for name, to in project.layout.elsewhere]
    for project, some in zip(projects, texts, strict=True):
        metadata, layout = project.metadata, project.layout
        root = layout.roots[0] if layout.roots else "."
        name = metadata.name or (layout.packages[0] if layout.packages and not layout.guessed else "")
        if _DISTRIBUTION.fullmatch(name) and (asked or _TESTS_ASK in metadata.entry_points):
            folder = str(PurePosixPath(root, re.sub(r"[-.]+", "_", name) + ".egg-info"))
            if not (tree / folder).exists():
                commands.append(_metadata(folder, name, metadata.entry_points))
        commands += [_module(target, names) for target, names in sorted(_missing(tree, layout, some).items())]
        found = [path for path, text in some.items() if _VERSIONEER.search(text) and "def get_versions" in text]
        commands += [_versions(path) for path in sorted(found)[:_MOST] if not (tree / path[:-3]).exists()]
    return commands


def _missing(tree: Path, layout: Layout, texts: dict[str, str]) -> dict[str, set[str]]:
    """Modules with a version that are imported and not there: the names taken from each; none where they are many."""
    there: set[str] = set()
    modules: dict[str, set[str]] = {}
    written = _written(tree)
    for path, text in texts.items():
        found = list(_imported(path, text, layout, written))
        called = _called(text) if found else set()
        for target, names in found:
            if not called.isdisjoint(names):  # a build's own function, as versioneer's: no version
                there.add(target)
                modules.pop(target, None)
            elif target in modules:
                modules[target].update(names)
            elif target not in there:
                if _is_missing(tree, target):
                    modules[target] = set(names)
                else:
                    there.add(target)
                if len(modules) > _MOST:
                    return {}
    return modules


def _written(tree: Path) -> frozenset[str]:
    """Paths of modules, without their endings, that a tool writes by the project's settings: whatever their names."""
    texts = [read_text(tree / name) for name in ("pyproject.toml", "setup.cfg", "setup.py")]
    return frozenset(str(PurePosixPath(path)) for text in texts for path in _FILE.findall(text))


def _called(text: str) -> set[str]:
    """What a module calls, by the names that it has where it is imported from."""
    called, aliases = set(_CALL.findall(text)), dict(_ALIAS.findall(text))
    return (called - aliases.keys()) | {name for name, alias in aliases.items() if alias in called}


def _asks(text: str) -> bool:
    """Whether a module asks for metadata of distributions."""
    return bool(_ASKS.search(text)) or (_OLD in text and bool(_OLD_ASKS.search(text)))


def _sources(tree: Path, layout: Layout) -> Iterator[str]:
    """Modules of the packages and of their subpackages, and what pytest loads before tests."""
    found = [tree / name for name in ("conftest.py", "tests/conftest.py", "test/conftest.py")]
    for place in layout.places:
        path = tree / place
        found += [path] if path.suffix == ".py" else [*sorted(path.glob("*.py")), *sorted(path.glob("*/*.py"))]
    inside = [path for path in found if path.resolve().is_relative_to(tree.resolve())]
    yield from dict.fromkeys(str(path.relative_to(tree)) for path in inside)


def _imported(
    path: str, text: str, layout: Layout, written: frozenset[str] = frozenset()
) -> Iterator[tuple[str, list[str]]]:
    """(Path of a module without its ending, names taken from it) of the imports that look for a version.

    They do where the module's name says so, or settings say that it is written (`written`).
    """
    folder = PurePosixPath(path).parent
    own = {name.partition(".")[0] for name in layout.packages}
    for dots, module, listed in _FROM.findall(text):
        listed = re.sub(r"#[^\n]*", "", listed).strip("() \t\n")
        names = [word for part in listed.split(",") if (word := part.strip().partition(" ")[0])]
        if dots:
            above = folder
            for _ in dots[1:]:
                above = above.parent
            places = [above / module.replace(".", "/")] if module else []
            inside = above if not module else None
        else:
            places = [PurePosixPath(root, module.replace(".", "/")) for root in layout.roots]
            inside = None
            if module.partition(".")[0] not in own:
                places = [place for place in places if str(place) in written]
        for one in places:
            if str(one) in written or (_LIKE_VERSION.fullmatch(one.name) and "." in dots + module):
                yield str(one), names
        if inside is not None:  # `from . import __version__` may take what the package's __init__ defines
            found = [word for word in names if _LIKE_VERSION.fullmatch(word) and not word.startswith("__")]
            yield from ((str(inside / word), []) for word in found)
    for module in _IMPORT.findall(text):
        top, _, rest = module.rpartition(".")
        places = [PurePosixPath(root, module.replace(".", "/")) for root in layout.roots]
        like = top.partition(".")[0] in own and _LIKE_VERSION.fullmatch(rest)
        yield from ((str(one), []) for one in places if like or str(one) in written)


def _is_missing(tree: Path, target: str) -> bool:
    path = tree / target
    package = path.parent
    if ".." in target or not package.is_dir() or path.is_dir():
        return False
    if any(file.suffix != ".pyi" for file in package.glob(f"{path.name}.*")):  # a stub is no module
        return False
    init = read_text(package / "__init__.py")
    name = re.escape(path.name)  # a docstring may say `version: 1.2`
    return not re.search(rf"^[ \t]*(?:{name}[ \t]{{0,9}}(?::[^=\n]{{0,99}})?=|def {name}\b)", init, re.M)


def _metadata(folder: str, name: str, entry_points: dict[str, list[str]]) -> str:
    lines = ["Metadata-Version: 2.1", f"Name: {name}"]
    wanted = [f'{_printed(lines)} "Version: ${{{VERSION}:-0.0.0}}" > {shlex.quote(f"{folder}/PKG-INFO")}']
    if entry_points:
        lines = [line for group, entries in entry_points.items() for line in (f"[{group}]", *entries)]
        wanted.append(f"{_printed(lines)} > {shlex.quote(f'{folder}/entry_points.txt')}")
    return f"mkdir -p {shlex.quote(folder)} && " + " && ".join(wanted)


def _module(target: str, names: set[str]) -> str:
    """A command that writes a module whose names are the version, as a text or as its parts."""
    wanted = sorted(names) if len(names) <= _MOST else []
    known = [one for one in dict.fromkeys([*_STANDARD, *wanted]) if _NAME.fullmatch(one) and not iskeyword(one)]
    texts = [name for name in known if not _IN_PARTS.search(name)]
    parts = [name for name in known if _IN_PARTS.search(name)]
    of_parts = "tuple(int(one) if one.isdigit() else one for one in version.split('.'))"
    file = shlex.quote(f"{target}.py")
    first = " = ".join(texts)
    second = shlex.quote(" = ".join([*parts, of_parts]))
    return f"""test -e {file} || printf '%s\\n' "{first} = '${{{VERSION}:-0.0.0}}'" {second} > {file}"""


def _elsewhere(package: str, folder: str) -> str:
    """A command that writes a package which takes its code from a folder of another name."""
    up = "_os.path.dirname(" * (package.count("/") + 2) + "_os.path.abspath(__file__)" + ")" * (package.count("/") + 2)
    lines = [
        f"{ELSEWHERE}{folder}",
        "import os as _os",
        f"__path__ = [_os.path.join({up}, {folder!r})]",
        "__file__ = _os.path.join(__path__[0], '__init__.py')",
        "with open(__file__, 'rb') as _file:",
        "    _code = compile(_file.read(), __file__, 'exec')",
        "exec(_code)",
    ]
    return f"mkdir -p {shlex.quote(package)} && {_printed(lines)} > {shlex.quote(f'{package}/__init__.py')}"


def _versions(path: str) -> str:
    """A command that writes a package in the place of versioneer's module, before which Python takes it."""
    folder = path.removesuffix(".py")
    first = [
        "def get_versions(*args, **kwargs):",
        "    found = dict.fromkeys(['full', 'full-revisionid', 'error', 'date'])",
    ]
    version = f"\"    return dict(found, version='${{{VERSION}:-0.0.0}}', dirty=False)\""
    return f"mkdir -p {shlex.quote(folder)} && {_printed(first)} {version} > {shlex.quote(f'{folder}/__init__.py')}"


def _printed(lines: Sequence[str]) -> str:
    return " ".join(["printf '%s\\n'", *map(shlex.quote, lines)])
