"""The funnel counts every change once a stage, whatever the number of its rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from perfquarry.data.funnel import Provenance, by_source, funnel
from perfquarry.data.records import (
    Build,
    Change,
    Evidence,
    Reason,
    Row,
    Task,
    Timing,
    Verdict,
    Workload,
    workload_id_of,
)
from perfquarry.data.store import TableStore

THEN = datetime(2024, 1, 1, tzinfo=UTC)
MACHINE = {
    "machine_id": "m",
    "system": "Linux",
    "kernel": "6",
    "cpu": "x",
    "cores": 2,
    "memory_bytes": 1,
    "clock_resolution": 1e-9,
    "sandbox": "process",
}
FILLED: dict[type[Row], dict[str, Any]] = {
    Change: {
        "kind": "commit",
        "base_sha": "a",
        "head_sha": "b",
        "authored_at": THEN,
        "merged_at": THEN,
        "title": "",
        "message": "",
    },
    Verdict: {"judge": "heuristic", "is_performance": "yes", "probability": 0.5},
    Build: {"build_id": "b", "sha": "s"},
    Workload: {"source": "unit-test"},
    Evidence: {},
    Timing: {"session": 1, "block": 0, "position": 0, "hash_seed": 1, "machine": MACHINE},
    Task: {
        "codebase": "demo",
        "base_sha": "a",
        "head_sha": "b",
        "created_at_commit": THEN,
        "title": "",
        "message": "",
        "patch": "",
        "python": "3.11.1",
    },
}


def row(model: type[Row], change: str, reason: str | None = None, **values: Any) -> Row:
    status = "rejected" if reason else "kept"
    stamp = {"repo": "demo", "stage_version": "1", "config_hash": "aa", "created_at": THEN}
    return model.model_validate(
        {**stamp, **FILLED[model], "change_id": change, "status": status, "reason": reason, **values}
    )


@pytest.fixture
def store(tmp_path: Path) -> TableStore:
    return TableStore(tmp_path)


def count(store: TableStore, stage: str, *provenances: Provenance) -> tuple[int, int, dict[str, int], int]:
    found = {one.stage: one for one in funnel(store, "demo", *provenances).stages}[stage]
    assert found.entered == found.kept + sum(found.rejected.values()) + found.pending
    return found.entered, found.kept, found.rejected, found.pending


def through_builds(*changes: str) -> list[Row]:
    return [
        made
        for change in changes
        for made in (
            row(Change, change),
            row(Verdict, change),
            row(Build, change, side="base"),
            row(Build, change, side="head"),
        )
    ]


def test_an_empty_home_has_an_empty_funnel(store: TableStore) -> None:
    stages = ["mine", "judge", "build", "generate", "measure", "select"]
    assert funnel(store, "demo").model_dump(mode="json", by_alias=True) == {
        "repository": "demo",
        "stages": [{"stage": stage, "in": 0, "kept": 0, "rejected": {}, "pending": 0} for stage in stages],
    }


def test_a_stage_takes_in_what_the_one_before_kept(store: TableStore) -> None:
    store.append(
        [row(Change, f"c{number}") for number in range(5)]
        + [row(Change, "c5", Reason.ROOT_COMMIT), row(Change, "c6", Reason.EMPTY_DIFF)]
        + [row(Change, "c7", Reason.EMPTY_DIFF)]
    )
    store.append([row(Verdict, "c0"), row(Verdict, "c1"), row(Verdict, "c2", Reason.UNLIKELY), row(Verdict, "c5")])
    assert count(store, "mine") == (8, 5, {"empty_diff": 2, "root_commit": 1}, 0)
    assert count(store, "judge") == (5, 2, {"unlikely_performance": 1}, 2)
    assert count(store, "build") == (2, 0, {}, 2)


def test_a_build_is_kept_when_both_sides_are_and_else_rejected_for_the_base_first(store: TableStore) -> None:
    store.append([made for number in range(5) for made in (row(Change, f"c{number}"), row(Verdict, f"c{number}"))])
    store.append([row(Build, "c0", side="head"), row(Build, "c0", side="base")])
    store.append([row(Build, "c1", "build_failed", side="head"), row(Build, "c1", "no_interpreter", side="base")])
    store.append([row(Build, "c2", "import_failed", side="head"), row(Build, "c2", side="base")])
    store.append([row(Build, "c3", side="base")])
    assert count(store, "build") == (5, 1, {"import_failed": 1, "no_interpreter": 1}, 2)


def test_a_change_without_a_kept_workload_is_rejected_for_the_most_informative_reason(store: TableStore) -> None:
    store.append(through_builds("c0", "c1", "c2", "c3", "c4"))
    store.append(
        [
            row(Workload, "c0", Reason.FAILS_ON_HEAD, workload_id="w0"),
            row(Workload, "c0", workload_id="w1"),
            row(Workload, "c1", Reason.TEST_CHANGED, workload_id="w2"),
            row(Workload, "c1", Reason.FAILS_ON_BASE, workload_id="w3"),
            row(Workload, "c1", Reason.FAILS_ON_HEAD, workload_id="w4"),
            row(Workload, "c2", Reason.NO_TESTS, workload_id="w5"),
            row(Workload, "c3", "a reason of a later version", workload_id="w6"),
            row(Workload, "c3", Reason.NO_TEST_EXECUTES_CHANGE, workload_id="w7"),
        ]
    )
    rejected = {"no_test_executes_change": 1, "no_tests": 1, "tests_fail_at_head": 1}
    assert count(store, "generate") == (5, 1, rejected, 1)


def test_a_change_is_measured_when_one_workload_passed_on_both_sides_in_the_first_session(store: TableStore) -> None:
    def timing(change: str, side: str, outcome: str, workload: str = "w", **values: Any) -> Row:
        return row(Timing, change, workload_id=change + workload, side=side, outcome=outcome, **values)

    changes = [f"c{number}" for number in range(6)]
    store.append(through_builds(*changes) + [row(Workload, change, workload_id=f"{change}w") for change in changes])
    store.append(
        [
            *[timing("c0", side, "passed", block=block) for side in ("base", "head") for block in range(20)],
            *[timing("c0", side, "failed", "x") for side in ("base", "head")],
            timing("c1", "base", "passed"),
            timing("c1", "head", "timeout"),
            timing("c2", "base", "passed"),
            timing("c2", "head", "crashed"),
            timing("c3", "base", "passed"),  # the two sides of one workload, not of two, make a pair
            timing("c3", "head", "failed"),
            timing("c3", "base", "failed", "y"),
            timing("c3", "head", "passed", "y"),
            timing("c4", "base", "passed", session=2),  # the first session is still to come
            timing("c4", "head", "passed", session=2),
            timing("c4", "base", "passed", aa=True),
            timing("c4", "head", "passed", aa=True),
        ]
    )
    assert count(store, "measure") == (6, 1, {"workload_failed": 2, "workload_timeout": 1}, 2)
    store.append([row(Task, "c0", task_id="t0"), row(Task, "c1", task_id="t1")])
    assert count(store, "select") == (1, 1, {}, 0)


def test_the_newest_configuration_counts_unless_another_is_named(store: TableStore) -> None:
    newer = {"config_hash": "bb", "created_at": THEN + timedelta(seconds=1)}
    store.append([row(Change, "c0", **newer)])
    store.append([row(Change, "c0"), row(Change, "c1", Reason.ROOT_COMMIT)])
    assert count(store, "mine") == (1, 1, {}, 0)
    assert count(store, "mine", Provenance(tables={"changes": ("1", "aa")})) == (2, 1, {"root_commit": 1}, 0)
    assert count(store, "mine", Provenance(tables={"changes": ("2", "aa")})) == (0, 0, {}, 0)


def test_of_several_origins_that_counts_under_which_a_change_got_farther(store: TableStore) -> None:
    def origin(config: str) -> Provenance:
        tables = {model.TABLE: ("1", config if model in (Workload, Task) else "aa") for model in FILLED}
        return Provenance(tables=tables)

    timed = [
        row(Timing, change, workload_id=f"w{change}", block=0, position=place, side=side, outcome="passed")
        for change in ("c0", "c1", "c2")
        for place, side in enumerate(("base", "head"))
    ]
    store.append(through_builds("c0", "c1", "c2", "c3"))
    store.append(timed)
    for change in ("c0", "c1"):
        store.append([row(Workload, change, workload_id=f"w{change}"), row(Task, change, task_id=change)])
    newer = {"config_hash": "bb"}
    store.append([row(Workload, "c0", Reason.TOO_SHORT, workload_id="other", **newer)])
    for change, reason in (("c1", Reason.NO_GAIN), ("c2", None)):
        store.append([row(Workload, change, workload_id=f"w{change}", **newer)])
        store.append([row(Task, change, reason, task_id=change, **newer)])
    store.append([row(Workload, "c3", Reason.TOO_SHORT, workload_id="wc3", **newer)])
    newest_first = origin("bb"), origin("aa")
    assert count(store, "generate", *newest_first) == (4, 3, {"too_short": 1}, 0)
    assert count(store, "measure", *newest_first) == (3, 3, {}, 0)
    assert count(store, "select", *newest_first) == (3, 2, {"no_gain": 1}, 0)
    assert count(store, "select", origin("bb")) == (2, 1, {"no_gain": 1}, 0)


def test_workloads_are_counted_by_their_source(store: TableStore) -> None:
    def workload(change: str, source: str, code: str, reason: str | None = None) -> Row:
        return row(Workload, change, reason, source=source, code=code, workload_id=workload_id_of(change, source, code))

    store.append(
        [
            workload("a", "unit-test", "t1"),
            workload("a", "unit-test", "t2"),
            workload("a", "unit-test", "t3", Reason.FLAKY),
            workload("b", "unit-test", "", Reason.NO_TESTS),
            workload("c", "unit-test", "", Reason.FLAKY),  # the summary of the next one
            workload("c", "unit-test", "t1", Reason.FLAKY),
            workload("b", "generated", "s1"),
            workload("b", "generated", "s2", Reason.TOO_SHORT),
        ]
    )
    store.append(
        [
            row(Evidence, "b", workload_id=workload_id_of("b", "generated", "s1")),
            row(Evidence, "a", Reason.NO_GAIN, workload_id=workload_id_of("a", "unit-test", "t1")),
        ]
    )
    counts = {one.source: one.model_dump(exclude={"source"}) for one in by_source(store, "demo")}
    assert counts == {
        "unit-test": {
            "changes": 3, "tried": 4, "kept": 2, "kept_changes": 1, "accepted": 0, "accepted_changes": 0,
            "rejected": {"flaky": 2}, "without": {"no_tests": 1},
        },
        "generated": {
            "changes": 1, "tried": 2, "kept": 1, "kept_changes": 1, "accepted": 1, "accepted_changes": 1,
            "rejected": {"too_short": 1}, "without": {},
        },
    }  # fmt: skip
