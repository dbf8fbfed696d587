"""What users of a Python module can see of it: names, signatures, bases, exceptions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from perfquarry.data import syntax

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_PATTERN_NAME = re.compile(r"(?:^|_)(?:RE|REGEX|PATTERN)$|(?:^|_)re$")
_BLOCKS = (ast.If, ast.Try, ast.With, ast.ExceptHandler)


@dataclass(frozen=True)
class Parameter:
    """One parameter of a function."""

    name: str
    default: str | None
    """Its default as a dump of the syntax; None: it has none."""
    constant: bool
    """The default is a literal."""
    positional: bool


@dataclass
class Surface:
    """One module. Names are 'function', 'Class', 'Class.method'."""

    bound: set[str] = field(default_factory=set)
    """Names of the module that are defined, assigned or imported."""
    functions: dict[str, tuple[Parameter, ...]] = field(default_factory=dict)
    bodies: dict[str, str] = field(default_factory=dict)
    """By name of a function all of it but its docstring, as a dump of the syntax."""
    returning: set[str] = field(default_factory=set)
    """Functions that return or yield a value."""
    bases: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By name of a class."""
    defined: set[str] = field(default_factory=set)
    """Functions, classes, methods and variables of the module."""
    exports: frozenset[str] | None = None
    """`__all__`, where it is one literal."""
    imported: set[str] = field(default_factory=set)
    attributes: dict[str, set[str]] = field(default_factory=dict)
    """By class what its methods assign to `self`."""
    raises: set[str] = field(default_factory=set)
    """Names of exceptions that the module raises."""
    prints: int = 0
    patterns: dict[str, str] = field(default_factory=dict)
    """Regular expressions by the name that they are assigned to."""

    def members(self, owner: str) -> set[str]:
        """Methods of a class and of its bases in this module."""
        found: set[str] = set()
        for one in self.lineage(owner):
            found |= {name.rpartition(".")[2] for name in self.functions if name.rpartition(".")[0] == one}
        return found

    def lineage(self, owner: str) -> list[str]:
        """A class and all its bases; of those that are defined elsewhere the names alone."""
        found = [owner]
        for one in found:  # grows while it is walked
            found += [base for base in self.bases.get(one, ()) if base not in found]
        return found


def surface_of(content: bytes) -> Surface | None:
    """What a module shows; None where this Python cannot parse it."""
    try:
        tree, surface = syntax.parse(content), Surface()
        _read(surface, tree.body, "")
        _walk(surface, tree)
    except syntax.UNPARSABLE:
        return None
    return surface


def _read(surface: Surface, body: Iterable[ast.AST], owner: str) -> None:
    for node in body:
        if isinstance(node, _Function | ast.ClassDef):
            name = f"{owner}{node.name}"
            surface.defined.add(name)
            _bind(surface, node.name, owner)
            if isinstance(node, ast.ClassDef):
                surface.bases[name] = tuple(ast.unparse(base).rpartition(".")[2] for base in node.bases)
                _read(surface, node.body, f"{name}.")
            else:
                _function(surface, node, name, owner)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.asname or alias.name.partition(".")[0] for alias in node.names]
            surface.imported.update(names)
            for one in names:
                _bind(surface, one, owner)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            _assign(surface, node, owner)
        elif isinstance(node, _BLOCKS):
            _read(surface, ast.iter_child_nodes(node), owner)


def _bind(surface: Surface, name: str, owner: str) -> None:
    if not owner:
        surface.bound.add(name)


def _function(surface: Surface, node: _Function, name: str, owner: str) -> None:
    surface.functions[name] = tuple(_parameters(node, method=bool(owner)))
    first = node.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    surface.bodies[name] = "\n".join(ast.dump(one) for one in node.body[documented:])
    values = (one.value for one in ast.walk(node) if isinstance(one, ast.Return | ast.Yield | ast.YieldFrom))
    if any(value is not None for value in values):
        surface.returning.add(name)
    if owner:
        stored = (one for one in ast.walk(node) if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store))
        of_self = {one.attr for one in stored if isinstance(one.value, ast.Name) and one.value.id == "self"}
        surface.attributes.setdefault(owner[:-1], set()).update(of_self)


def _parameters(node: _Function, *, method: bool) -> Iterator[Parameter]:
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults)) + [*arguments.defaults]
    static = any(isinstance(one, ast.Name) and one.id == "staticmethod" for one in node.decorator_list)
    start = int(method and not static)
    for argument, default in list(zip(positional, defaults, strict=True))[start:]:
        yield _parameter(argument, default, positional=True)
    for argument, keyword_default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _parameter(argument, keyword_default, positional=False)


def _parameter(argument: ast.arg, default: ast.expr | None, *, positional: bool) -> Parameter:
    constant = isinstance(default, ast.Constant)
    return Parameter(argument.arg, None if default is None else ast.unparse(default), constant, positional)


def _assign(surface: Surface, node: ast.Assign | ast.AnnAssign | ast.AugAssign, owner: str) -> None:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    parts = [part for target in targets for part in ast.walk(target)]
    names = [part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]
    if "__all__" in names and not owner:
        surface.exports = _exports(node.value) if isinstance(node, ast.Assign) else None
    for name in names:
        _bind(surface, name, owner)
        if not owner:
            surface.defined.add(name)
        if node.value is not None and (_PATTERN_NAME.search(name) or _compiles(node.value)):
            surface.patterns[f"{owner}{name}"] = ast.unparse(node.value)


def _exports(value: ast.expr) -> frozenset[str] | None:
    parts = value.elts if isinstance(value, ast.List | ast.Tuple) else []
    names = [one.value for one in parts if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return frozenset(names) if names and len(names) == len(parts) else None


def _compiles(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func) in ("re.compile", "compile")


def _walk(surface: Surface, tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc is not None:
            raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            name = ast.unparse(raised).rpartition(".")[2]
            if name[:1].isupper():
                surface.raises.add(name)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            surface.prints += 1
