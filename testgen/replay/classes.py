"""Whether a class's instances have the same attributes on both sides of a change."""

from __future__ import annotations

import ast

from perfquarry.testgen.case import Case
from perfquarry.testgen.imports import parse
from perfquarry.testgen.traced import content_of, is_python_source, path_at


def unchanged(case: Case, name: str) -> bool:
    """Whether no changed file defines a class of this qualified name otherwise than before.

    Setting attributes directly is sound only then: who changes a class may change what its
    attributes mean.
    """
    for file in case.change.files:
        if is_python_source(file):
            before = _definitions(content_of(case.base.tree, path_at(file, "base")), name)
            after = _definitions(content_of(case.head.tree, path_at(file, "head")), name)
            if before != after:
                return False
    return True


def _definitions(content: bytes, name: str) -> list[str]:
    """What a file defines under a class's qualified name."""
    tree = parse(content)
    nodes: list[ast.AST] = [tree] if tree else []
    for part in name.split("."):
        nodes = [child for node in nodes for child in _bodies(node) if getattr(child, "name", "") == part]
    return [ast.dump(node) for node in nodes]


def _bodies(node: ast.AST) -> list[ast.AST]:
    """Definitions directly in a module or class, those under if and try included."""
    found: list[ast.AST] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.append(child)
        elif not isinstance(child, ast.expr):
            found += _bodies(child)
    return found
