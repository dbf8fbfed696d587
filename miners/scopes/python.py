"""Scopes of Python files, by `ast`."""

from __future__ import annotations

import ast

from perfquarry.data import syntax
from perfquarry.miners.scopes.scope import MODULE, Scope

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def scopes_of_python(source: bytes) -> list[Scope] | None:
    """The module's and every function's and class's own code, in order; None when it does not parse.

    A definition's decorators, arguments, defaults and bases are its own; what is defined inside it is
    not. A module or class without own code (only definitions and a docstring) has an empty one.
    """
    try:
        cutter = _Cutter()
        cutter.cut(syntax.parse(source), MODULE)
    except syntax.UNPARSABLE:
        return None
    return cutter.scopes


class _Cutter(ast.NodeTransformer):
    """Takes definitions out of the tree, innermost last, and notes each one's remaining code."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self._inside = ""

    def cut(self, node: ast.Module | _Definition, name: str) -> None:
        """Notes the scope of `node` and of all definitions in it."""
        place = len(self.scopes)
        outer, self._inside = self._inside, "" if name == MODULE else f"{name}."
        _drop_docstring(node)
        self.generic_visit(node)
        self._inside = outer
        code = "\n".join(ast.dump(child) for child in node.body) if name == MODULE else ast.dump(node)
        self.scopes.insert(place, Scope(name, code))

    def _visit_definition(self, node: _Definition) -> None:
        self.cut(node, self._inside + node.name)

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _visit_definition


def _drop_docstring(node: ast.Module | _Definition) -> None:
    first = node.body[0] if node.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        node.body = node.body[1:]
