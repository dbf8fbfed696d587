"""Python's syntax, one text at a time.

CPython up to 3.12.1 counts the depth of nested syntax for all threads together: where two parse at once, a good text
ends in `SystemError: AST constructor recursion depth mismatch` (python/cpython#106905). Libraries parse, too, in
threads of their own: what they disturb is read again.
"""

from __future__ import annotations

import ast
import threading
import warnings

from tenacity import retry, retry_if_exception_type, stop_after_attempt

UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What `parse` raises for text that is not Python of this version."""
_one_at_a_time = threading.Lock()


@retry(retry=retry_if_exception_type(SystemError), stop=stop_after_attempt(5), reraise=True)
def parse(source: str | bytes) -> ast.Module:
    """The tree of a module; raises `UNPARSABLE`."""
    with _one_at_a_time, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in old files are not ours to report
        return ast.parse(source)
