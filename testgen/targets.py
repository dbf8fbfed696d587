"""Realistic targets: the functions of the package that a workload calls (oracle targets: `curation.targets`).

SWE-Perf (arXiv 2507.12415), phase 5: realistic targets are the functions seen by a profiler
while the test runs, intersected with those that the test itself calls by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from perfquarry.harness.contracts import ProbeItem
from perfquarry.testgen.definitions import definitions_of
from perfquarry.testgen.pytest_config import is_test_path, python_files

_CONSTRUCTORS = ("__init__", "__new__", "__call__", "__post_init__")


def targets_of(item: ProbeItem, content: bytes, scopes: tuple[str, ...], tree: Path) -> list[str]:
    """Realistic targets of a workload that was profiled in a tree: a function of a file with this content."""
    definitions = definitions_of(content)
    if definitions is None:
        return []
    patterns = python_files(tree)
    called = definitions.called_names(scopes)
    return realistic_targets(item.functions, item.callers, called, lambda path: is_test_path(path, patterns))


def realistic_targets(
    profiled: Sequence[str], callers: Mapping[str, Sequence[str]], called: set[str], is_test: Callable[[str], bool]
) -> list[str]:
    """Functions of the package that a workload calls by name, in the profiler's order.

    Where nothing that ran is called by name (a test driven by a table of inputs, or over a
    socket), those that no other function of the package called.

    Args:
        profiled: functions of the tree that ran, 'path::Class.method'.
        callers: functions of the tree that called each of them.
        called: names called in the test (`testgen.definitions`).
        is_test: whether a path belongs to the tests.
    """

    package = [function for function in dict.fromkeys(profiled) if not is_test(_path(function))]
    named = [one for one in package if _is_called(one, called, _outer(one, callers, is_test))]
    return named or [one for one in package if all(is_test(_path(caller)) for caller in callers.get(one, ()))]


def _path(function: str) -> str:
    return function.partition("::")[0]


def _outer(function: str, callers: Mapping[str, Sequence[str]], is_test: Callable[[str], bool]) -> bool:
    """Whether a test called it, or code outside the tree did."""
    found = callers.get(function, ())
    return not found or any(is_test(_path(caller)) for caller in found)


def _is_called(function: str, called: set[str], outer: bool) -> bool:
    """A class's name calls its constructor; what operators call must not be the package's own doing."""
    *owners, name = function.rpartition("::")[2].split(".")
    if owners and name in _CONSTRUCTORS and owners[-1] in called:
        return True
    return name in called and (outer or not name.startswith("__"))
