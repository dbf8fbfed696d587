"""Realistic targets."""

from perfquarry.testgen.targets import realistic_targets


def is_test(path: str) -> bool:
    return path.startswith("tests/")


PROFILED = ["tests/test_a.py::test_x", "pkg/a.py::Heap.push", "pkg/a.py::Heap.__init__", "pkg/a.py::_sift"]
CALLERS = {"pkg/a.py::Heap.push": ["tests/test_a.py::test_x"], "pkg/a.py::_sift": ["pkg/a.py::Heap.push"]}


def test_realistic_targets_are_those_called_by_name() -> None:
    assert realistic_targets(PROFILED, CALLERS, {"push", "test_x"}, is_test) == ["pkg/a.py::Heap.push"]
    assert realistic_targets(PROFILED, CALLERS, {"Heap"}, is_test) == ["pkg/a.py::Heap.__init__"]


def test_outermost_functions_where_nothing_is_called_by_name() -> None:
    found = realistic_targets(PROFILED, CALLERS, {"fetch"}, is_test)
    assert found == ["pkg/a.py::Heap.push", "pkg/a.py::Heap.__init__"]
