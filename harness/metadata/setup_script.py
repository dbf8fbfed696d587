"""setup.py read by its syntax tree: never run, because it is hostile and may need what is not installed."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from perfquarry.data import syntax

_KEYS = {
    "name",
    "python_requires",
    "install_requires",
    "setup_requires",
    "tests_require",
    "extras_require",
    "classifiers",
    "entry_points",
    "package_dir",
    "packages",
    "py_modules",
}
_NATIVE_CALLS = {
    "Extension",
    "cythonize",
    "RustExtension",
    "CMakeExtension",
    "Pybind11Extension",
    "CFFIExtension",
    "add_extension",
}
_NATIVE_KEYS = {"ext_modules", "rust_extensions", "cffi_modules", "cmake_source_dir"}
_REQUIREMENTS_FILE = re.compile(r"(?i)\.(?:txt|in|pip|reqs?)$")
_NOMINAL = (3, 6)
"""Tests of `sys.version_info` are decided as this version does: none of our interpreters is older."""

_PLATFORM = {"sys.platform": "linux", "os.name": "posix", "platform.system()": "Linux"}

_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


@dataclass
class SetupScript:
    """Literal values given to the keywords of `setup(...)`, however they get there."""

    values: dict[str, Any] = field(default_factory=dict)
    native: bool = False
    finds_packages: bool = False
    """Whether it calls `find_packages`."""
    runtime_files: list[str] = field(default_factory=list)
    """Names of the files that its `install_requires` is read from, without their folders where these are computed."""
    notes: list[str] = field(default_factory=list)

    def text(self, key: str) -> str | None:
        """A value that is a string."""
        value = self.values.get(key)
        return value if isinstance(value, str) else None

    def texts(self, key: str) -> list[str]:
        """The strings of a value that is a list, a tuple, or lines of one string."""
        value = self.values.get(key)
        if isinstance(value, str):
            return [line.strip() for line in value.splitlines() if line.strip()]
        return [v for v in value if isinstance(v, str)] if isinstance(value, list | tuple) else []

    def lists(self, name: str) -> dict[str, list[str]]:
        """The texts of an argument whose value is a dictionary of them or of lists of them."""
        value = self.values.get(name)
        if not isinstance(value, dict):
            return {}
        named = {str(k): [v] if isinstance(v, str) else v for k, v in value.items()}
        return {k: [v for v in lines if isinstance(v, str)] for k, lines in named.items() if isinstance(lines, list)}

    def package_dir(self) -> dict[str, str]:
        """Folders of packages by their names; '' stands for all."""
        value = self.values.get("package_dir")
        return {k: v for k, v in value.items() if isinstance(v, str)} if isinstance(value, dict) else {}


def folders_of(package_dir: Mapping[str, str]) -> list[str]:
    """The folders that hold the packages of a `package_dir`: 'src' of {'': 'src'} and of {'lib.sub': 'src/lib/sub'}."""
    found = []
    for package, folder in package_dir.items():
        parts, places = tuple(filter(None, package.split("."))), PurePosixPath(folder).parts
        if places[len(places) - len(parts) :] == parts:
            found.append(str(PurePosixPath(*places[: len(places) - len(parts)])))
    return found


def renamed_of(package_dir: Mapping[str, str]) -> dict[str, str]:
    """Packages at the top whose folder has another name, with it: 'lib' of {'pkg': 'lib'}."""
    named = {package: PurePosixPath(folder).parts for package, folder in package_dir.items() if package.isidentifier()}
    return {
        package: "/".join(parts) for package, parts in named.items() if parts and parts[-1] not in (package, "..", "/")
    }


def setup_script_of(text: str) -> SetupScript:
    """The literal facts of a setup.py's text."""
    try:
        tree = syntax.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return SetupScript(notes=[f"setup.py ignored: it does not parse ({error})"])
    reader = _Reader()
    try:
        reader.visit(tree)
    except RecursionError:
        return SetupScript(notes=["setup.py ignored: too deeply nested"])
    return SetupScript(reader.found, reader.native, reader.finds_packages, list(reader.runtime_files))


class _Reader(ast.NodeVisitor):
    """Collects keyword arguments, dict entries, assignments and appends under the names that `setup` takes."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}
        self.native = self.finds_packages = False
        self.runtime_files: dict[str, None] = {}
        self._names: dict[str, Any] = {}
        self._tests: dict[str, bool | None] = {}
        self._sources: dict[str, list[ast.AST]] = {}
        """By name: what it was bound to, or made longer by."""
        self._undecided = 0

    def visit_If(self, node: ast.If) -> None:
        """Only the branch that an interpreter of ours would take, where that is known."""
        decided = self._decide(node.test)
        self._undecided += decided is None
        for child in node.body if decided is not False else []:
            self.visit(child)
        for child in node.orelse if decided is not True else []:
            self.visit(child)
        self._undecided -= decided is None

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """`def requirements(): ...`, by which a file may be read."""
        self._sources[node.name] = [node]
        self.generic_visit(node)

    def visit_With(self, node: ast.With) -> None:
        """`with open('requirements.txt') as file:`."""
        for item in node.items:
            self._bind(item.optional_vars, item.context_expr)
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        """`for line in open('requirements.txt'):`."""
        self._bind(node.target, node.iter)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """`install_requires = [...]` and `kwargs['install_requires'] = [...]`."""
        for target in node.targets:
            self._assign(target, node.value)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """`install_requires += [...]`."""
        if isinstance(node.target, ast.Name):
            self._extend(node.target.id, self._value(node.value), node.value)
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        """`{'install_requires': [...]}`."""
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                self._record(key.value, value)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """`setup(install_requires=[...])`, `install_requires.append('x')`, `Extension(...)`."""
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name in _NATIVE_CALLS:
            self.native = True
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and node.args:
            value = self._value(node.args[0])
            if name in ("append", "extend"):
                self._extend(function.value.id, [value] if name == "append" else value, node.args[0])
        if name in ("find_packages", "find_namespace_packages"):
            self.finds_packages = True
            self._take_where(node)
        if name in ("setup", "dict"):
            for keyword in node.keywords:
                self._record(keyword.arg or "", keyword.value)
        self.generic_visit(node)

    def _take_where(self, node: ast.Call) -> None:
        named = [keyword.value for keyword in node.keywords if keyword.arg == "where"]
        for value in [*node.args[:1], *named]:
            if isinstance(where := self._value(value), str):
                self.found.setdefault("where", []).append(where)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            known = self._value(value)
            if known is not None:
                self._names[target.id] = known
            self._tests[target.id] = self._decide(value)
            self._bind(target, value)
            self._record(target.id, value)
        elif isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
            self._record(str(target.slice.value), value)

    def _record(self, key: str, value: ast.expr) -> None:
        empty = isinstance(value, ast.List | ast.Tuple) and not value.elts
        if key in _NATIVE_KEYS and not empty:
            self.native = True
        if key == "configuration":  # numpy.distutils
            self.native = True
        if key in _KEYS:
            known = self._value(value)
            if known is not None:
                self.found[key] = known
        if key == "install_requires":
            self._take_files(value, set())

    def _bind(self, target: ast.expr | None, value: ast.expr) -> None:
        if isinstance(target, ast.Name) and not self._undecided:
            self._sources[target.id] = [value]

    def _take_files(self, node: ast.AST, seen: set[str]) -> None:
        """Names of files of requirements in what a value is made from, names and functions followed."""
        if self._undecided:
            return
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _REQUIREMENTS_FILE.search(node.value):
            self.runtime_files[node.value] = None
        elif isinstance(node, ast.Name) and node.id not in seen:
            seen.add(node.id)
            for source in self._sources.get(node.id, ()):
                self._take_files(source, seen)
        elif isinstance(node, ast.IfExp) and (decided := self._decide(node.test)) is not None:
            self._take_files(node.body if decided else node.orelse, seen)
        else:
            for child in ast.iter_child_nodes(node):
                self._take_files(child, seen)

    def _extend(self, name: str, more: Any, source: ast.expr) -> None:
        if name == "install_requires":
            self._take_files(source, set())
        elif not self._undecided:
            self._sources.setdefault(name, []).append(source)
        known = self._names.get(name)
        if isinstance(known, list) and isinstance(more, list):
            known.extend(v for v in more if v is not None)
            if name in _KEYS:
                self.found[name] = known

    def _value(self, node: ast.expr) -> Any:
        """The value of a literal, a name bound to one, or a sum of such; None for anything else."""
        if isinstance(node, ast.Name):
            return self._names.get(node.id)
        if isinstance(node, ast.List | ast.Tuple):
            return [v for v in map(self._value, node.elts) if v is not None]
        if isinstance(node, ast.Dict):
            pairs = (
                (self._value(k) if k else None, self._value(v)) for k, v in zip(node.keys, node.values, strict=True)
            )
            return {k: v for k, v in pairs if isinstance(k, str)}
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = self._value(node.left), self._value(node.right)
            if type(left) is type(right) and isinstance(left, str | list):
                return left + right
            return left if right is None else right if left is None else None
        if isinstance(node, ast.IfExp):
            decided = self._decide(node.test)
            return None if decided is None else self._value(node.body if decided else node.orelse)
        return node.value if isinstance(node, ast.Constant) else None

    def _decide(self, test: ast.expr) -> bool | None:
        """A test of the interpreter or the platform, as `_compare` decides it, or a name bound to one; None for others.

        Args:
            test: also negated, or several joined by `and` or `or`.
        """
        if isinstance(test, ast.Name):
            return self._tests.get(test.id)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            decided = self._decide(test.operand)
            return None if decided is None else not decided
        if isinstance(test, ast.BoolOp):
            found, one_is_enough = {self._decide(one) for one in test.values}, isinstance(test.op, ast.Or)
            return one_is_enough if one_is_enough in found else None if None in found else not one_is_enough
        return _compare(test)


def _compare(test: ast.expr) -> bool | None:
    """A comparison with a literal, of `sys.version_info` as `_NOMINAL` decides it, of the platform as Linux does; None
    for other tests."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    left = ast.unparse(test.left)
    platform = _PLATFORM.get(left)
    if platform is not None and isinstance(test.ops[0], ast.Eq | ast.NotEq):
        other = getattr(test.comparators[0], "value", None)
        return (other == platform) is isinstance(test.ops[0], ast.Eq) if isinstance(other, str) else None
    if "version_info" not in left or left.endswith(("[1]", ".minor")):
        return None
    try:
        other = ast.literal_eval(test.comparators[0])
    except (ValueError, TypeError):
        return None
    ours: Any = _NOMINAL[0] if isinstance(other, int) else _NOMINAL
    if not isinstance(other, int) and not (isinstance(other, tuple) and all(isinstance(n, int) for n in other)):
        return None
    if isinstance(test.ops[0], ast.Eq):
        return bool(ours[: len(other)] == other) if isinstance(other, tuple) else bool(ours == other)
    compare = _COMPARISONS.get(type(test.ops[0]))
    return compare(ours, other) if compare else None
