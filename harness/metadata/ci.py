"""What CI configuration, noxfile.py and environment.yml say: Pythons, Debian packages, requirements. Nothing is run.

Conditions are not evaluated: what any job of the tests installs counts.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import yaml

from perfquarry.data import syntax
from perfquarry.harness.metadata.package import read_text

_FILES = (".travis.yml", ".circleci/config.yml", ".github/workflows/*.yml", ".github/workflows/*.yaml")
_BYTES = 128 * 1024
"""Larger files are passed over: reading YAML takes about 10 µs a byte."""
_NOT_TESTS = re.compile(r"lint|doc|release|publish|codeql|pre-?commit|stale|wheel|style|format|label|scorecard", re.I)
_SKIPPED_KEYS = {"allow_failures", "exclude", "deploy", "after_success", "after_failure", "notifications"}
_PYTHON_KEYS = {"python", "pythons", "python-version", "python_version", "python-versions", "python_versions", "pyver"}
_TOX_KEYS = {"env", "toxenv", "tox_env", "tox-env", "tox"}
_COMMAND_KEYS = {"run", "script", "command", "install", "before_install", "before_script"}
_VERSION = re.compile(r"(\d\.\d{1,2})(?:\.\d+)?")
_FACTOR = re.compile(r"\bpy(\d)(\d{1,2})\b")
_BRACES = re.compile(r"\bpy\{([^{}]*)\}")
_IMAGE = re.compile(r"python:(\d\.\d{1,2})\b")
# options of pip whose value is the next word
_VALUED = {"-c", "-f", "-i", "-t", "-e", "--constraint", "--find-links", "--index-url", "--extra-index-url", "--target"}
_CONDA = re.compile(r"([A-Za-z][\w.-]*)\s*(<=|>=|==|!=|=|<|>)?\s*([\w.*,<>=!]*)")
# NAME="words" at the end of a line, also as make writes it
_ASSIGNED = re.compile(r"""\b(\w+)[ \t]*:?=[ \t]*(["']?)([\w./-]+(?:[ \t]+[\w./-]+)*)\2[ \t]*$""", re.M)
_DEBIAN_NAME = re.compile(r"[a-z0-9][a-z0-9.+-]+")


@dataclass
class Ci:
    """What all jobs together name, each once, in the order of the files."""

    pythons: list[str] = field(default_factory=list)
    """Minor versions, '3.10'."""
    requirements: list[str] = field(default_factory=list)
    """As given to pip, not yet checked."""
    files: list[str] = field(default_factory=list)
    """Requirement files given to pip, relative to the tree."""
    extras: list[str] = field(default_factory=list)
    """Extras of the package that pip was asked to install."""
    system_packages: list[str] = field(default_factory=list)
    """Debian packages."""
    notes: list[str] = field(default_factory=list)


def read_ci(tree: Path) -> Ci:
    """What Travis, CircleCI, GitHub Actions and nox are to do; workflows not about tests only where no other is."""
    paths = [path for pattern in _FILES for path in sorted(tree.glob(pattern))]
    about_tests = [path for path in paths if not _NOT_TESTS.search(path.stem)]
    found = Ci()
    for path in about_tests or paths:
        try:
            _Reader(found, tree).visit(_load(path), "")
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            found.notes.append(f"{path.relative_to(tree)} ignored: {str(error)[:200]}")
    _read_nox(read_text(tree / "noxfile.py"), found)
    for values in (found.pythons, found.requirements, found.files, found.extras, found.system_packages):
        values[:] = dict.fromkeys(values)
    return found


def _read_nox(text: str, found: Ci) -> None:
    """What sessions about tests install, and with which Pythons, by the syntax of a noxfile.py."""
    try:
        sessions = [node for node in ast.walk(syntax.parse(text)) if isinstance(node, ast.FunctionDef)]
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        found.notes.append(f"noxfile.py ignored: it does not parse ({error})")
        return
    reader = _Reader(found)
    for session in sessions:
        if "test" not in session.name or _NOT_TESTS.search(session.name):
            continue
        for decorator in session.decorator_list:
            found.pythons += [version for word in _words(decorator) for version in _VERSION.findall(word)]
        for call in ast.walk(session):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "install":
                reader.take_pip([word for argument in call.args for word in _words(argument)])


def _words(node: ast.expr) -> list[str]:
    """The literal texts below an expression, in order."""
    return [one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)]


def read_conda(tree: Path) -> Ci:
    """The Python version and the requirements of environment.yml, conda's versions written as pip's."""
    found = Ci()
    try:
        document = next((_load(path) for path in sorted(tree.glob("environment.y*ml"))), None)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return Ci(notes=[f"environment.yml ignored: {str(error)[:200]}"])
    entries = document.get("dependencies") if isinstance(document, dict) else None
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict):
            listed = entry.get("pip")
            found.requirements += [line for line in listed if isinstance(line, str)] if isinstance(listed, list) else []
        elif spec := _CONDA.fullmatch(str(entry)[:200].strip()):
            name, sign, version = spec.groups()
            if name == "python":
                found.pythons += _VERSION.findall(version or "")
            else:
                exact = sign in ("=", None) and version
                bound = f"=={version.rstrip('.*')}.*" if exact else f"{sign or ''}{version}"
                found.requirements.append(name + bound)
    return found


def _load(path: Path) -> object:
    """The document, every scalar as text (3.10 is no number): no object is made, no merge key multiplied out."""
    text = read_text(path)
    return yaml.load(text, Loader=yaml.BaseLoader) if len(text) <= _BYTES else None  # noqa: S506


def versions_of_tox(text: str) -> list[str]:
    """Minor versions that an environment list of tox names: 'py27,py{36,310}-full' is 2.7, 3.6, 3.10."""
    spread = _BRACES.sub(lambda match: " ".join(f"py{part.strip()}" for part in match.group(1).split(",")), text)
    return [f"{major}.{minor}" for major, minor in _FACTOR.findall(spread)]


class _Reader:
    """Walks one document; what is shared by aliases is visited once."""

    def __init__(self, found: Ci, tree: Path | None = None) -> None:
        self._found = found
        self._tree = tree
        self._seen: set[int] = set()

    def visit(self, node: object, key: str) -> None:
        """Takes what the node under this key says, and all below it."""
        if isinstance(node, str):
            self._take(node, key)
        elif isinstance(node, dict | list) and id(node) not in self._seen:
            self._seen.add(id(node))
            if isinstance(node, list):
                for child in node:
                    self.visit(child, key)
            else:
                for name, child in node.items():
                    name = str(name).lower()
                    if name not in _SKIPPED_KEYS:
                        self.visit(child, "apt packages" if (key, name) == ("apt", "packages") else name)

    def _take(self, text: str, key: str) -> None:
        if key in _PYTHON_KEYS and (version := _VERSION.fullmatch(text.strip())):
            self._found.pythons.append(version.group(1))
        elif key in _TOX_KEYS:
            self._found.pythons += versions_of_tox(text)
        elif key == "image":
            self._found.pythons += _IMAGE.findall(text)
        elif key == "apt packages" and _DEBIAN_NAME.fullmatch(text):
            self._found.system_packages.append(text)
        elif key in _COMMAND_KEYS:
            self._take_script(text)

    def _take_script(self, text: str, follow: bool = True) -> None:
        """Takes the commands of a shell text, and of the scripts and make's targets of the tree that these call."""
        for words in _commands(text):
            self._take_command(words)
            if follow and self._tree:
                for called in _called(words, self._tree):
                    self._take_script(called, follow=False)

    def _take_command(self, words: Sequence[str]) -> None:
        names = [Path(word).name for word in words]
        for at, (name, verb) in enumerate(pairwise(names)):
            rest = words[at + 2 :]
            if re.fullmatch(r"pip[\d.]*", name) and verb == "install":
                self.take_pip(rest)
            elif name in ("apt", "apt-get", "aptitude") and "install" in words[at + 1 :]:
                self._found.system_packages += [word for word in rest if _DEBIAN_NAME.fullmatch(word)]
            elif name in ("conda", "mamba") and verb == "install":
                self._found.requirements += [word for word in rest if re.fullmatch(r"[A-Za-z][\w.-]*", word)]
            else:
                continue
            return

    def take_pip(self, words: Sequence[str]) -> None:
        """Takes the arguments of `pip install`."""
        waiting = iter(words)
        for word in waiting:
            if word in ("-r", "--requirement"):
                self._found.files += [name for name in [next(waiting, "")] if name and "$" not in name]
            elif extras := re.search(r"\.[/\w]*\[([\w,\s-]+)\]$", word):
                self._found.extras += [name.strip() for name in extras.group(1).split(",")]
            elif word in _VALUED:
                if extras := re.search(r"\[([\w,\s-]+)\]$", next(waiting, "")):
                    self._found.extras += [name.strip() for name in extras.group(1).split(",")]
            elif not word.startswith(("-", ".", "/")) and not re.search(r"[${}\\/*]", word):
                self._found.requirements.append(word)


def _called(words: Sequence[str], tree: Path) -> Iterator[str]:
    """Texts of what a command calls: a script of the tree, or the recipes of targets of its Makefile."""
    if words[0] == "make":
        text = read_text(tree / "Makefile")
        for target in words[1:]:
            recipe = re.search(rf"^{re.escape(target)}[ \t]*:(?!=).*\n((?:\t.*\n?)+)", text, re.M)
            yield _with_values(re.sub(r"^\t[@-]*", "", recipe.group(1), flags=re.M), text) if recipe else ""
        return
    name = words[1] if words[0] in ("sh", "bash", "source", ".") and len(words) > 1 else words[0]
    path = (tree / name).resolve()
    if "/" in name and path.is_relative_to(tree.resolve()):
        text = read_text(path)
        if re.match(r"#!.*sh\b", text) or path.suffix == ".sh":
            yield _with_values(text, text)


def _with_values(text: str, assigned: str) -> str:
    """A shell text with variables replaced by what they are assigned last, where that is plain words."""
    values = {name: words for name, _, words in _ASSIGNED.findall(assigned)}
    return re.sub(r"\$[({]?(\w+)[)}]?", lambda match: values.get(match.group(1), match.group()), text)


def _commands(text: str) -> Iterator[list[str]]:
    """The words of each command of a shell text."""
    for line in re.split(r"\n|&&|\|\||[;|]", text.replace("\\\n", " ")):
        if line.strip() and not line.strip().startswith("#"):
            try:
                yield shlex.split(line, comments=True)
            except ValueError:  # a quote is not closed
                yield line.split()
