"""Loads modules of the grader, which is no package, or of the measuring core beside it."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from perfquarry.harness.grading.task_folder import ALTERNATION, GRADER


@contextlib.contextmanager
def load_part() -> Iterator[Callable[[str], Any]]:
    """A function that loads a module by its name.

    The names are short: none of the modules stays for tests that have one of the same name.
    """
    before = set(sys.modules)
    sys.path[:0] = [str(GRADER), str(ALTERNATION)]
    try:
        yield importlib.import_module
    finally:
        sys.path.remove(str(GRADER))
        sys.path.remove(str(ALTERNATION))
        flat = {path.stem for folder in (GRADER, ALTERNATION) for path in folder.glob("*.py")}
        for name in flat & (set(sys.modules) - before):
            del sys.modules[name]
