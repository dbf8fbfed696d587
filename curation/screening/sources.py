"""Source of unit tests, from the text of their file."""

from __future__ import annotations

import ast
import textwrap

from perfquarry.data import syntax


def test_source(content: str, node: str) -> str:
    """Text of the function that a pytest node id names; empty where the file does not define it by itself."""
    names = node.partition("::")[2].partition("[")[0].split("::")
    try:
        found: ast.AST | None = syntax.parse(content)
    except (SyntaxError, ValueError):
        return ""
    for name in names:
        inside = [one for one in ast.iter_child_nodes(found) if getattr(one, "name", None) == name] if found else []
        found = inside[-1] if inside else None
    return textwrap.dedent(ast.get_source_segment(content, found, padded=True) or "") if found else ""
