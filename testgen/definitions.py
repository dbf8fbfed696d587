"""What the tests of a file consist of: the definitions each of them uses within its file.

From a test one gets to its class, the helpers, fixtures and constants it names, and so on to
the end. The whole of it decides whether a change touched the test; the called names in it
decide which functions a test calls on purpose. Where a file has no tests, the examples in its
docstrings are: pytest's doctests.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from perfquarry.testgen.changed_lines import Function, bindings
from perfquarry.testgen.imports import ByContent, is_parsable, parse
from perfquarry.testgen.pytest_config import Naming

# Syntax that calls a method without naming it: what SortedList.__contains__ is to `x in items`.
_OPERATORS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Add: ("__add__", "__radd__", "__iadd__"),
    ast.Sub: ("__sub__", "__rsub__", "__isub__"),
    ast.Mult: ("__mul__", "__rmul__", "__imul__"),
    ast.MatMult: ("__matmul__",),
    ast.Div: ("__truediv__", "__rtruediv__"),
    ast.FloorDiv: ("__floordiv__",),
    ast.Mod: ("__mod__",),
    ast.Pow: ("__pow__", "__rpow__"),
    ast.BitAnd: ("__and__", "__iand__"),
    ast.BitOr: ("__or__", "__ior__"),
    ast.BitXor: ("__xor__", "__ixor__"),
    ast.USub: ("__neg__",),
    ast.Invert: ("__invert__",),
    ast.Eq: ("__eq__",),
    ast.NotEq: ("__ne__", "__eq__"),
    ast.Lt: ("__lt__",),
    ast.LtE: ("__le__",),
    ast.Gt: ("__gt__",),
    ast.GtE: ("__ge__",),
    ast.In: ("__contains__",),
    ast.NotIn: ("__contains__",),
    ast.Subscript: ("__getitem__", "__setitem__", "__delitem__"),
    ast.For: ("__iter__", "__next__"),
    ast.comprehension: ("__iter__", "__next__"),
    ast.With: ("__enter__", "__exit__"),
    ast.AsyncWith: ("__aenter__", "__aexit__"),
    ast.AsyncFor: ("__aiter__", "__anext__"),
}
_BUILTINS = {
    **dict.fromkeys(
        ("list", "tuple", "set", "frozenset", "sorted", "iter", "enumerate", "sum"), ("__iter__", "__len__")
    ),
    **{name: (f"__{name}__",) for name in ("len", "repr", "hash", "reversed", "next", "bool", "abs", "round", "dir")},
    "str": ("__str__", "__repr__"),
    **dict.fromkeys(("assertIn", "assertNotIn"), ("__contains__",)),
    **dict.fromkeys(("assertEqual", "assertEquals"), ("__eq__",)),
    "assertNotEqual": ("__ne__", "__eq__"),
    "assertLess": ("__lt__",),
    "assertGreater": ("__gt__",),
    "dict": ("__iter__", "keys", "__getitem__"),
}


_NUMBERED = re.compile(r"_?\d+(?:_|$)")


@dataclass(frozen=True)
class NodeId:
    """A pytest node id taken apart: 'path::Class::test[parameters]'."""

    path: str
    scopes: tuple[str, ...]
    """Names of the classes, or of the functions that stand for them, then of the test, without parameters."""

    @classmethod
    def parse(cls, node: str) -> NodeId:
        """Brackets start at the first '[' after the path: parameters may hold '::' and '/'."""
        path, _, rest = node.partition("::")
        return cls(path, tuple(rest.partition("[")[0].split("::")))


_Owner = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
"""What tests can be within: a class, or a function of pytest-describe."""


class Definitions:
    """What one test file defines at its top level, by name."""

    def __init__(self, tree: ast.Module) -> None:
        self._top = {name: part for node in tree.body for name, part in bindings(node)}
        self._autouse = [node for node in tree.body if isinstance(node, Function) and _is_autouse(node)]

    def fingerprint(self, scopes: tuple[str, ...], naming: Naming) -> str | None:
        """Equal for tests that consist of equal definitions; None where the file does not define the test."""
        owners, functions = self._find(scopes)
        if not functions:
            return None
        dumps = sorted(ast.dump(node) for node in self._closure(owners, [*functions, *self._autouse], naming))
        return hashlib.sha256("\n".join(dumps).encode("utf-8", "replace")).hexdigest()

    def called_names(self, scopes: tuple[str, ...]) -> set[str]:
        """Names called in the test and in the helpers of its file that it calls, methods by their last name."""
        owners, functions = self._find(scopes)
        called: set[str] = set()
        seen: set[int] = set()
        waiting: list[ast.AST] = list(functions)
        while waiting:
            node = waiting.pop()
            if id(node) not in seen:
                seen.add(id(node))
                names = _called(node)
                called |= names
                waiting += [helper for owner in owners for helper in self._members(owner, names)]
                waiting += [self._top[name] for name in names if isinstance(self._top.get(name), Function)]
        return called

    def _find(self, scopes: tuple[str, ...]) -> tuple[list[_Owner], list[Function]]:
        """What is around a test, and its function, which may be inherited from a class of this file."""
        owners: list[_Owner] = []
        scope = self._top
        for name in scopes[:-1]:
            owner = scope.get(_source_name(name, scope))
            if not isinstance(owner, _Owner):
                return [], []
            owners.append(owner)
            scope = {bound: part for node in owner.body for bound, part in bindings(node)}
        last: Mapping[str, ast.AST] = self._functions(owners[-1]) if owners else scope
        function = last.get(_source_name(scopes[-1], last))
        return owners, [function] if isinstance(function, Function) else []

    def _members(self, owner: _Owner, names: set[str]) -> list[Function]:
        """Functions of these names within an owner, or within its bases in this file."""
        return [function for name, function in self._functions(owner).items() if name in names]

    def _functions(self, owner: _Owner) -> dict[str, Function]:
        """Functions within an owner, or within its bases in this file."""
        found: dict[str, Function] = {}
        lineage = [owner]
        for parent in lineage:  # grows while it is walked
            found = {node.name: node for node in parent.body if isinstance(node, Function)} | found
            bases = [self._top.get(base.id) for base in getattr(parent, "bases", ()) if isinstance(base, ast.Name)]
            lineage += [base for base in bases if isinstance(base, ast.ClassDef) and base not in lineage]
        return found

    def _closure(self, owners: list[_Owner], start: Iterable[ast.AST], naming: Naming) -> list[ast.AST]:
        """The given nodes (owners and classes without their other tests) and the file's definitions they name."""
        reached: dict[int, ast.AST] = {}
        waiting = [*owners, *start]
        while waiting:
            node = waiting.pop()
            if id(node) in reached:
                continue
            reached[id(node)] = node
            named = [node]
            if isinstance(node, ast.ClassDef) or node in owners:
                block = None if isinstance(node, ast.ClassDef) else node.name
                alone = reached[id(node)] = _without_body(node)
                tests = [part for part in node.body if isinstance(part, Function) and naming.is_test(part.name, block)]
                waiting += [part for part in node.body if part not in tests]
                named = [*ast.iter_child_nodes(alone)]
            waiting += [self._top[name] for name in _used(named) if name in self._top]
        return list(reached.values())


def _source_name(name: str, defined: Mapping[str, ast.AST]) -> str:
    """The name in the source of what a decorator made: `test_it_0_first` of parameterized, `TestIt_0` of paramunittest.

    With what the decorator was given it is part of the test.
    """
    if name in defined:
        return name
    decorated = [one for one, node in defined.items() if getattr(node, "decorator_list", None)]
    made = [one for one in decorated if name.startswith(one) and _NUMBERED.match(name, len(one))]
    return max(made, key=len, default=name)


def _definitions(content: bytes) -> Definitions | None:
    tree = parse(content)
    return Definitions(tree) if tree is not None else None


definitions_of = ByContent(_definitions, 200)
"""The definitions of a test file's content; None where it does not parse."""


def _used(nodes: Iterable[ast.AST]) -> set[str]:
    """Names read in the nodes, and parameters, which pytest fills with fixtures of those names."""
    parts = [part for node in nodes for part in ast.walk(node)]
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    return names | {part.arg for part in parts if isinstance(part, ast.arg)}


def _without_body(node: _Owner) -> ast.AST:
    alone = copy.copy(node)
    alone.body = []
    return alone


def _is_autouse(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    keywords = [keyword for part in node.decorator_list if isinstance(part, ast.Call) for keyword in part.keywords]
    return any(keyword.arg == "autouse" for keyword in keywords)


def _called(node: ast.AST) -> set[str]:
    """Names called in a function: of functions, classes and methods, and those that operators stand for."""
    called: set[str] = set()
    for part in ast.walk(node):
        called.update(_OPERATORS.get(type(part), ()))
        if isinstance(part, ast.Call):
            name = getattr(part.func, "id", None) or getattr(part.func, "attr", None)
            called.update([name, *_BUILTINS.get(name, ())] if isinstance(name, str) else ())
    return called


def has_examples(content: bytes, naming: Naming) -> bool:
    """Whether the tests of a file are the examples in its docstrings."""
    return b">>> " in content and not (naming.are_in(content) and is_parsable(content))


def docstring_of(content: bytes, node: str) -> str | None:
    """The docstring that a doctest's node id names, 'lib/core.py::lib.core.Class.method'; None where there is none."""
    path, _, name = node.partition("::")
    tree = parse(content)
    return _find(tree, _within(path, name)) if tree is not None else None


def _within(path: str, name: str) -> list[str]:
    """The parts of a dotted name behind that of its module, which ends as the path does."""
    module = path.removesuffix(".py").removesuffix("/__init__").split("/")
    parts = name.split(".")
    ends = [count for count in range(1, len(parts) + 1) if parts[:count] == module[-count:]]
    return parts[max(ends, default=0) :]


def _find(node: ast.Module | ast.ClassDef | Function, names: list[str]) -> str | None:
    for name in names:
        inner = [one for one in ast.walk(node) if isinstance(one, ast.ClassDef | Function) and one.name == name]
        if not inner:
            return None
        node = inner[-1]
    return ast.get_docstring(node)
