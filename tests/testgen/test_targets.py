"""Oracle and realistic targets."""

from typing import Literal

from data.records import TouchedFunction, Verdict
from testgen.targets import oracle_targets, realistic_targets


def is_test(path: str) -> bool:
    return path.startswith("tests/")


def verdict(*touched: tuple[str, str, Literal["modified", "added", "deleted"]]) -> Verdict:
    functions = [TouchedFunction(path=path, name=name, change=change) for path, name, change in touched]
    return Verdict(
        repo="r",
        stage_version="1",
        config_hash="0",
        change_id="c",
        judge="heuristic",
        is_performance="yes",
        probability=0.9,
        functions=functions,
    )


def test_oracle_targets_exist_at_the_base() -> None:
    found = oracle_targets(
        verdict(
            ("pkg/a.py", "A.f", "modified"),
            ("pkg/a.py", "A.f", "modified"),
            ("pkg/a.py", "<module>", "modified"),
            ("pkg/a.py", "g", "added"),
            ("pkg/b.py", "h", "deleted"),
            ("tests/test_a.py", "test_f", "modified"),
        ),
        is_test,
    )
    assert found == ["pkg/a.py::A.f", "pkg/b.py::h"]


def test_new_functions_are_targets_where_there_is_no_other() -> None:
    assert oracle_targets(verdict(("pkg/a.py", "g", "added")), is_test) == ["pkg/a.py::g"]
    assert oracle_targets(verdict(), is_test) == []


PROFILED = ["tests/test_a.py::test_x", "pkg/a.py::Heap.push", "pkg/a.py::Heap.__init__", "pkg/a.py::_sift"]
CALLERS = {"pkg/a.py::Heap.push": ["tests/test_a.py::test_x"], "pkg/a.py::_sift": ["pkg/a.py::Heap.push"]}


def test_realistic_targets_are_those_called_by_name() -> None:
    assert realistic_targets(PROFILED, CALLERS, {"push", "test_x"}, is_test) == ["pkg/a.py::Heap.push"]
    assert realistic_targets(PROFILED, CALLERS, {"Heap"}, is_test) == ["pkg/a.py::Heap.__init__"]


def test_outermost_functions_where_nothing_is_called_by_name() -> None:
    found = realistic_targets(PROFILED, CALLERS, {"fetch"}, is_test)
    assert found == ["pkg/a.py::Heap.push", "pkg/a.py::Heap.__init__"]
