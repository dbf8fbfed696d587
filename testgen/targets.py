"""Realistic targets: the functions of the package that a workload calls (oracle targets: `curation.targets`).

SWE-Perf (arXiv 2507.12415), phase 5: realistic targets are the functions seen by a profiler
while the test runs, intersected with those that the test itself calls by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

_CONSTRUCTORS = ("__init__", "__new__", "__call__", "__post_init__")


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

    def in_package(function: str) -> bool:
        return not is_test(function.partition("::")[0])

    package = [function for function in dict.fromkeys(profiled) if in_package(function)]
    named = [function for function in package if _is_called(function, called)]
    return named or [one for one in package if not any(map(in_package, callers.get(one, ())))]


def _is_called(function: str, called: set[str]) -> bool:
    """A class's constructor counts as called by the class's name."""
    parts = function.rpartition("::")[2].split(".")
    if len(parts) > 1 and parts[-1] in _CONSTRUCTORS:
        return parts[-2] in called or parts[-1] in called
    return parts[-1] in called
