"""Python's syntax, one text at a time.

CPython up to 3.12.0 counts the depth of nested syntax for all threads together: where two parse at once, a good text
ends in `SystemError: AST constructor recursion depth mismatch` (python/cpython#106905).
"""

from __future__ import annotations

import ast
import threading

_one_at_a_time = threading.Lock()


def parse(source: str | bytes) -> ast.Module:
    """The tree of a module.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: as `ast.parse`.
    """
    with _one_at_a_time:
        return ast.parse(source)
