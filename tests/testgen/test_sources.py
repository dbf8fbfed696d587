"""Sources of workloads together: what a change has when some of them, or none, have something for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from two_trees import STAMP, TwoTrees

from perfquarry.data.records import Reason, Source, Workload, workload_id_of
from perfquarry.harness.probing.prober import Prober
from perfquarry.harness.sandbox import choose_sandbox
from perfquarry.testgen.case import Case
from perfquarry.testgen.settings import GenerateSettings
from perfquarry.testgen.sources import WorkloadSource, gather


@dataclass
class Given:
    """A source that has rows of the given reasons by code."""

    name: Source
    rows: dict[str, Reason | None]
    asked: list[str] = field(default_factory=list)
    share: float | None = None

    def workloads(self, case: Case) -> list[Workload]:
        change_id = case.change.change_id
        self.asked.append(change_id)
        return [
            Workload(
                **STAMP.fields(), workload_id=workload_id_of(change_id, self.name, code), change_id=change_id,
                source=self.name, code=code,
                status="rejected" if reason else "kept", reason=reason, detail=f"why {code}", share=self.share,
            )
            for code, reason in self.rows.items()
        ]  # fmt: skip


@pytest.fixture
def case(tmp_path: Path) -> Case:
    prober = Prober(choose_sandbox(), tmp_path / "scratch")
    trees = TwoTrees(tmp_path, {"a.py": "x = 1\n"}, {"a.py": "x = 2\n"}, prober)
    sides = trees.built["base"], trees.built["head"]
    return Case(trees.change, trees.verdict, *sides, prober, GenerateSettings(), STAMP, {})


def seen(rows: list[Workload]) -> list[tuple[str, str, str | None]]:
    return [(row.source, row.code, row.reason) for row in rows]


def test_rows_of_all_sources_come_together(case: Case) -> None:
    sources: list[WorkloadSource] = [
        Given("unit-test", {"": Reason.NO_TESTS}),
        Given("generated", {"one": None, "two": Reason.TOO_SHORT}),
    ]
    assert seen(gather(case, sources)) == [
        ("unit-test", "", "no_tests"),
        ("generated", "one", None),
        ("generated", "two", "too_short"),
    ]


def test_a_change_without_any_has_a_summary_of_the_most_informative_reason(case: Case) -> None:
    scripts = Given("generated", {"one": Reason.UNPARSABLE, "two": Reason.DIFFERS, "three": Reason.TOO_SHORT})
    rows = gather(case, [Given("asv", {}), scripts])
    assert seen(rows)[0] == ("generated", "", "differs_at_head")
    assert rows[0].detail == f"{rows[2].node}: why two"
    assert rows[0].workload_id == workload_id_of(case.change.change_id, "generated", "")
    (row,) = gather(case, [Given("asv", {}), Given("replay", {})])
    assert seen([row]) == [("asv", "", "no_workloads")]


def test_of_a_change_that_breaks_unit_tests_no_script_is_made(case: Case) -> None:
    later = Given("generated", {"one": None})
    broken = Given("unit-test", {"": Reason.FAILS_ON_HEAD, "test": Reason.FAILS_ON_HEAD})
    assert seen(gather(case, [broken, later])) == [
        ("unit-test", "", "tests_fail_at_head"),
        ("unit-test", "test", "tests_fail_at_head"),
    ]
    assert later.asked == []
    unclear = Given("unit-test", {"": Reason.FLAKY, "test": Reason.FAILS_ON_HEAD})
    assert len(gather(case, [unclear, later])) == 3


@pytest.mark.parametrize(
    ("share", "asked"), [(0.5, []), (0.2, []), (0.1, ["asv", "replay"]), (None, ["asv", "replay"])]
)
def test_further_sources_are_asked_where_unit_tests_are_hardly_about_the_change(
    case: Case, share: float | None, asked: list[str]
) -> None:
    first = Given("unit-test", {"test": None}, share=share)
    further = [Given("asv", {}), Given("replay", {"one": None}), Given("generated", {"two": None})]
    rows = gather(case, [first], further)
    assert [one.name for one in further if one.asked] == asked
    assert ("unit-test", "test", None) in seen(rows)
    assert (("replay", "one", None) in seen(rows)) == bool(asked)


def test_further_sources_are_asked_where_there_is_no_test_and_not_where_tests_break(case: Case) -> None:
    further = Given("replay", {"": Reason.NOT_RECORDED})
    assert seen(gather(case, [Given("unit-test", {"": Reason.NO_TESTS})], [further])) == [
        ("unit-test", "", "no_tests"),
        ("replay", "", "not_recorded"),
    ]
    gather(case, [Given("unit-test", {"": Reason.FAILS_ON_HEAD})], [further])
    assert len(further.asked) == 1


@pytest.mark.parametrize(
    ("tests", "asked"),
    [
        ({"": Reason.NO_TEST_EXECUTES_CHANGE}, ["asv"]),
        ({"": Reason.NEEDS_SERVICE}, ["asv"]),
        ({"": Reason.TEST_TIMEOUT}, ["asv", "replay"]),
        ({"": Reason.NEEDS_SERVICE, "test": Reason.NEEDS_SERVICE}, ["asv", "replay"]),
        ({"": Reason.TEST_CHANGED, "test": Reason.TEST_CHANGED}, ["asv", "replay"]),
    ],
)
def test_no_call_is_recorded_where_no_test_comes_to_the_change(
    case: Case, tests: dict[str, Reason | None], asked: list[str]
) -> None:
    further = [Given("asv", {}), Given("replay", {"": Reason.NOT_RECORDED})]
    gather(case, [Given("unit-test", tests)], further)
    assert [one.name for one in further if one.asked] == asked
