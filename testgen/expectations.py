"""Tests whose expected values a change edits and nothing else: they say that it alters behaviour."""

from __future__ import annotations

import ast
from pathlib import Path

from perfquarry.data.records import Change
from perfquarry.testgen.changed_lines import Function, is_text, named_functions
from perfquarry.testgen.imports import parse
from perfquarry.testgen.traced import content_of, path_at

_EXPECTED = ast.Name("expected value", ast.Load())
_LONGEST = 80
_COMPUTED = (ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.Await, ast.comprehension)


def edited_expectations(change: Change, base: Path, head: Path) -> list[str]:
    """Tests that are equal at both sides but for literals that results are compared with, with one such literal each.

    Args:
        change: its test files are looked at.
        base: tree of the base.
        head: tree of the head.
    """
    found = []
    for file in change.files:
        if file.role == "test" and file.path.endswith(".py") and file.status in ("modified", "renamed"):
            before, after = content_of(base, path_at(file, "base")), content_of(head, path_at(file, "head"))
            found += edited_between(file.path, before, after)
    return sorted(found)


def edited_between(path: str, base: bytes, head: bytes) -> list[str]:
    """The same for the contents of one file of tests."""
    before, after = _tests(base), _tests(head)
    found = []
    for name in before.keys() & after.keys():
        (frame, old), (other, new) = before[name], after[name]
        edits = [pair for pair in zip(old, new, strict=False) if pair[0] != pair[1]] if frame == other else []
        found += [f"{path}::{name} expects {b[:_LONGEST]}, not {a[:_LONGEST]}" for a, b in edits[:1]]
    return found


def _tests(content: bytes) -> dict[str, tuple[str, list[str]]]:
    """By name of a test: all of it but the expected literals, and these."""
    tree = parse(content)
    return {name: _split(node) for name, node in named_functions(tree) if "test" in name.lower()} if tree else {}


def _split(function: Function) -> tuple[str, list[str]]:
    taker = _Taker()
    body = [taker.visit(node) for node in function.body if not is_text(node)]
    return "\n".join(ast.dump(node) for node in body), taker.taken


class _Taker(ast.NodeTransformer):
    """Takes literals out of comparisons for equality: of `assert`, and of methods and functions of that name."""

    def __init__(self) -> None:
        self.taken: list[str] = []

    def visit_Assert(self, node: ast.Assert) -> ast.Assert:
        """`assert result == 3`."""
        test = node.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq | ast.Is):
            left, right = self._pair(test.left, test.comparators[0])
            return ast.Assert(ast.Compare(left, test.ops, [right]))
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """`self.assertEqual(result, 3)`, `assert_equal(result, 3)`."""
        name = str(getattr(node.func, "attr", None) or getattr(node.func, "id", ""))
        if "equal" in name.lower() and name.lower().startswith("assert") and len(node.args) >= 2:
            return ast.Call(node.func, [*self._pair(node.args[0], node.args[1]), *node.args[2:]], node.keywords)
        return self.generic_visit(node)

    def _pair(self, one: ast.expr, other: ast.expr) -> tuple[ast.expr, ast.expr]:
        """Both sides, the literal one of them replaced; as they are where none or both are literals."""
        if _is_literal(one) == _is_literal(other):
            return one, other
        self.taken.append(ast.unparse(one if _is_literal(one) else other))
        return (_EXPECTED, other) if _is_literal(one) else (one, _EXPECTED)


def _is_literal(node: ast.expr) -> bool:
    return not any(isinstance(part, _COMPUTED) for part in ast.walk(node))
