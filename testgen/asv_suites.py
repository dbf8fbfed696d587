"""The asv suite of a tree, read without running it.

asv (https://asv.readthedocs.io, "Writing benchmarks") imports all modules of `benchmark_dir` and takes
functions and methods called `time_…`; others (mem, peakmem, track) measure no time and are
passed over. What a suite makes at run time (benchmarks from decorators or loops) is not seen.
"""

from __future__ import annotations

import ast
import builtins
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path, PurePosixPath

from perfquarry.testgen.calls.facts import Facts
from perfquarry.testgen.calls.modules import Modules, Node
from perfquarry.testgen.calls.python import python_facts
from perfquarry.testgen.files import is_readable
from perfquarry.testgen.imports import ByContent, imports_of, parse

_TIMES = re.compile(r"time_.+|Time[A-Z_].+")
_COMMENT = re.compile(r"(\"(?:\\.|[^\"\\])*\")|//[^\n]*|/\*.*?\*/", re.S)
_TRAILING = re.compile(r",(\s*[}\]])")
_MOST_FILES = 400
_Values = Mapping[str, ast.expr]


@dataclass(frozen=True)
class Benchmark:
    """One benchmark, without its parameters' values."""

    module: str
    """Dotted, as asv imports it: 'benchmarks.bench_core'."""
    owner: str
    """Its class; '' for a function."""
    name: str
    defined: str
    """Qualified name of its definition, in a class that may be another, and `path`, its file there."""
    path: str
    lengths: tuple[int, ...] | None
    """Number of values of each parameter; None where the sources do not say."""
    number: int | None
    """Calls a sample, where the suite sets it."""

    @property
    def id(self) -> str:
        """What asv calls it: 'bench_core.Core.time_array'."""
        return ".".join(part for part in (self.module.partition(".")[2], self.owner, self.name) if part)


@dataclass(frozen=True)
class Suite:
    """The modules of one suite."""

    package: str
    folder: str
    """Folder of the package, relative to the tree."""
    texts: Mapping[str, bytes]
    """Contents by path, relative to the tree."""

    @cached_property
    def facts(self) -> dict[str, Facts]:
        """Facts of its modules by path."""
        return {path: python_facts(text) for path, text in self.texts.items()}

    @cached_property
    def modules(self) -> Modules:
        """Where its names lead; its folders are packages, with and without `__init__`."""
        inside = PurePosixPath(self.folder)
        folders = {parent for path in self.texts for parent in PurePosixPath(path).parents}
        packages = {f"{one}/__init__.py": Facts() for one in folders if one.is_relative_to(inside)}
        return Modules(packages | self.facts, (), {})

    def benchmarks(self) -> list[Benchmark]:
        """All benchmarks that take times, in the order of their files."""
        return [found for path in sorted(self.texts) for found in self._of_file(path)]

    def needed_by(self, module: str) -> dict[str, tuple[str, str]]:
        """Modules of the suite that one needs, each with its path relative to the tree, and its text."""
        paths = {self.modules.dotted[path]: path for path in self.texts}
        needed: dict[str, tuple[str, str]] = {}
        waiting = [module]
        while waiting:
            name = waiting.pop()
            parents = [name.rsplit(".", count)[0] for count in range(name.count(".") + 1)]
            for one in [*parents, name]:
                if one not in needed and (one in paths or one == self.package):
                    path = paths.get(one, f"{self.folder}/__init__.py")
                    text = self.texts.get(path, b"")
                    needed[one] = (path, text.decode("utf-8", "replace"))
                    waiting += self._imported(path, text)
        return needed

    def _imported(self, path: str, text: bytes) -> Iterator[str]:
        """Dotted names of this suite that a module may import."""
        here = self.modules.dotted[path].split(".")
        package = here if path.endswith("__init__.py") else here[:-1]
        for found in imports_of(text):
            base = package[: len(package) - found.level + 1] if found.level else []
            name = ".".join([*base, *([found.module] if found.module else [])])
            if name.partition(".")[0] == self.package:
                yield name
                yield from (f"{name}.{one}" for one, _ in found.names or ())

    def _of_file(self, path: str) -> Iterator[Benchmark]:
        for name, definition in self.facts[path].definitions.items():
            if "." in name or name.startswith("_"):
                continue
            if definition.kind == "function" and _TIMES.fullmatch(name):
                yield self._benchmark(path, "", name, Node(path, name), [Node(path, name), Node(path, "")])
            elif definition.kind == "class":
                yield from self._of_class(path, name)

    def _of_class(self, path: str, owner: str) -> Iterator[Benchmark]:
        lineage = self.modules.lineage(Node(path, owner))
        seen: set[str] = set()
        for one in lineage:
            prefix = f"{one.name}."
            for key, definition in self.facts[one.path].definitions.items():
                name = key.removeprefix(prefix)
                own = key.startswith(prefix) and "." not in name
                if own and definition.kind == "function" and _TIMES.fullmatch(name) and name not in seen:
                    seen.add(name)
                    scopes = [Node(one.path, key), *lineage, Node(path, "")]
                    yield self._benchmark(path, owner, name, Node(one.path, key), scopes)

    def _benchmark(self, path: str, owner: str, name: str, found: Node, scopes: Sequence[Node]) -> Benchmark:
        params = self._attribute(scopes, "params")
        number = self._attribute(scopes, "number")
        fixed = number[0].value if number and isinstance(number[0], ast.Constant) else 0
        lengths = _lengths(*params) if params else ()
        return Benchmark(
            self.modules.dotted[path],
            owner,
            name,
            found.name,
            found.path,
            lengths,
            fixed if isinstance(fixed, int) and fixed else None,
        )

    def _attribute(self, scopes: Sequence[Node], name: str) -> tuple[ast.expr, _Values] | None:
        """What the first of the scopes that has an attribute gives it, and the names of its module."""
        for scope in scopes:
            values = _attributes(self.texts[scope.path])
            if name in values.get(scope.name, {}):
                return values[scope.name][name], values.get("", {})
        return None


def suite_of(tree: Path) -> Suite | None:
    """The suite of a tree; None where there is none in it."""
    configs = [tree / "asv.conf.json", *sorted(tree.glob("*/asv.conf.json")), *sorted(tree.glob("asv*.json"))]
    for config in configs:
        if not config.exists() or not is_readable(config) or not config.resolve().is_relative_to(tree.resolve()):
            continue
        folder = (config.parent / _benchmark_dir(config)).resolve()
        if folder.is_dir() and folder.is_relative_to(tree.resolve()) and folder != tree.resolve():
            relative = folder.relative_to(tree.resolve()).as_posix()
            files = [path for path in sorted(folder.rglob("*.py")) if is_readable(path)][:_MOST_FILES]
            texts = {path.relative_to(tree.resolve()).as_posix(): path.read_bytes() for path in files}
            if texts:
                return Suite(folder.name, relative, texts)
    return None


def _benchmark_dir(config: Path) -> str:
    """What the configuration says (JSON with comments); asv's default where it cannot be read."""
    text = _COMMENT.sub(lambda found: found[1] or " ", config.read_text(encoding="utf-8", errors="replace"))
    try:
        named = json.loads(_TRAILING.sub(r"\1", text)).get("benchmark_dir", "benchmarks")
    except (ValueError, AttributeError):
        return "benchmarks"
    usable = isinstance(named, str) and not PurePosixPath(named).is_absolute()
    return named if usable else "benchmarks"


def _read_attributes(text: bytes) -> dict[str, dict[str, ast.expr]]:
    """What a file assigns: by scope ('' for the module, 'Class', 'function', 'Class.method') and name."""
    tree = parse(text)
    found: dict[str, dict[str, ast.expr]] = {}

    def read(body: list[ast.stmt], scope: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef) and not scope:
                read(node.body, node.name)
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name):
                        found.setdefault(scope, {})[target.id] = node.value
                    elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                        owner = f"{scope}.{target.value.id}".lstrip(".")
                        found.setdefault(owner, {})[target.attr] = node.value

    read(tree.body if tree else [], "")
    return found


_attributes = ByContent(_read_attributes, 1000)


def _lengths(params: ast.expr, names: _Values) -> tuple[int, ...] | None:
    """Number of values of each parameter: a list of values is one parameter, a list of lists several."""
    params = _named(params, names)
    if not isinstance(params, ast.List | ast.Tuple) or not params.elts:
        return () if isinstance(params, ast.List | ast.Tuple) else _single(_length(params, names))
    first = _named(params.elts[0], names)
    if not isinstance(first, ast.List | ast.Tuple):
        may_be_list = isinstance(first, ast.Call | ast.BinOp | ast.ListComp) or (
            isinstance(first, ast.Name) and not hasattr(builtins, first.id)
        )
        return None if may_be_list else _single(_length(params, names))
    lengths = [_length(one, names) for one in params.elts]
    known = [one for one in lengths if one]
    return tuple(known) if len(known) == len(lengths) and prod(known) <= 10**6 else None


def _single(length: int | None) -> tuple[int, ...] | None:
    return (length,) if length else None


def _named(value: ast.expr, names: _Values) -> ast.expr:
    return names.get(value.id, value) if isinstance(value, ast.Name) else value


def _length(value: ast.expr, names: _Values) -> int | None:
    value = _named(value, names)
    if isinstance(value, ast.List | ast.Tuple):
        return None if any(isinstance(one, ast.Starred) for one in value.elts) else len(value.elts)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "range":
        numbers = [one.value for one in value.args if isinstance(one, ast.Constant) and isinstance(one.value, int)]
        return len(range(*numbers)) if 0 < len(numbers) == len(value.args) <= 3 and numbers[-1] else None
    if (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Name)
        and value.func.id in ("list", "tuple", "sorted")
    ):
        return _length(value.args[0], names) if len(value.args) == 1 else None
    return None
