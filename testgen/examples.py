"""Examples in docstrings as tests: pytest's doctests of modules that have no other tests."""

from __future__ import annotations

import ast

from perfquarry.testgen.changed_lines import Function
from perfquarry.testgen.imports import holds_tests, parse


def has_examples(content: bytes) -> bool:
    """Whether the tests of a file are the examples in its docstrings."""
    return b">>> " in content and not holds_tests(content)


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
