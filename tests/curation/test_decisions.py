"""Several decisions over a repository: of each change the newest counts, in lists, queue and release alike."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from perfquarry.curation.in_force import decisions_in_force, made_of, newest_findings_of, newest_tasks
from perfquarry.curation.release.manifest import Family
from perfquarry.curation.review.queue import Filter
from perfquarry.data.home import Home
from perfquarry.data.records import Build, Evidence, SessionStatistics
from perfquarry.data.store import TableStore
from tests.review_home import REPO, STAMP, desk_of, fill, finding, task_of

LATER = {"config_hash": "decade"}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """One decision on three changes, a later one on the last of these and one more."""
    found = Home(tmp_path)
    fill(found, [task_of(number, 2.0) for number in range(3)])
    rejected = {"status": "rejected", "reason": "no_gain", "workloads": []}
    fill(found, [task_of(2, 1.0, **LATER, **rejected), task_of(3, 3.0, **LATER)])
    return found


def test_of_each_change_the_newest_decision_counts(home: Home) -> None:
    store = TableStore(home.tables)
    tasks = {row.task_id: (row.config_hash, row.status) for row in newest_tasks(store, REPO)}
    assert tasks == {
        task_of(0, 2.0).task_id: ("c0ffee", "kept"),
        task_of(1, 2.0).task_id: ("c0ffee", "kept"),
        task_of(2, 1.0).task_id: ("decade", "rejected"),
        task_of(3, 3.0).task_id: ("decade", "kept"),
    }
    assert list(dict.fromkeys(decisions_in_force(store, REPO).values())) == ["decade", "c0ffee"]
    assert newest_tasks(store, "unknown") == []


def test_a_decision_made_again_on_old_timings_does_not_replace_one_on_newer_timings(tmp_path: Path) -> None:
    home, noon = Home(tmp_path), datetime(2026, 1, 1, 12, tzinfo=UTC)
    for config, hour in (("first", 0), ("other settings", 1), ("first, with one more change", 0)):
        fill(home, [task_of(0, 2.0, config_hash=config, measured_at=noon + timedelta(hours=hour))])
    fill(home, [task_of(1, 2.0, config_hash="first", measured_at=noon)])
    fill(home, [task_of(1, 2.0, config_hash="first, other thresholds", measured_at=noon)])
    found = decisions_in_force(TableStore(home.tables), REPO)
    assert list(found.values()) == ["other settings", "first, other thresholds"]


def test_rows_of_a_later_run_are_not_what_a_task_was_decided_on(tmp_path: Path) -> None:
    home, noon = Home(tmp_path), datetime(2026, 1, 1, 12, tzinfo=UTC)
    task = task_of(0, 2.0, measured_at=noon)
    store = TableStore(home.tables)
    for config, hour, status in (("tried", -3, "kept"), ("built", -2, "kept"), ("other settings", 1, "rejected")):
        stamp = {**STAMP.fields(), "config_hash": config, "created_at": noon + timedelta(hours=hour)}
        store.append([Build(**stamp, build_id="b", sha="0" * 40, change_id=task.change_id, side="base", status=status)])
    found = made_of(store, Build, REPO, [task])
    assert [(row.config_hash, row.status) for row in found] == [("built", "kept")]
    assert made_of(store, Build, REPO, []) == []


def test_of_each_task_the_newest_screening_counts(tmp_path: Path) -> None:
    home, noon = Home(tmp_path), datetime(2026, 1, 1, 12, tzinfo=UTC)
    one, other = task_of(0, 2.0), task_of(1, 2.0)
    rows = [
        finding(task, check, "").model_copy(update={"config_hash": config, "created_at": noon + timedelta(hours=hour)})
        for task, check, config, hour in (
            (one, "noise", "first", 0), (other, "noise", "first", 0), (one, "screened", "second", 1),
        )
    ]  # fmt: skip
    fill(home, [one, other], findings=rows)
    found = newest_findings_of(TableStore(home.tables), REPO, [one, other])
    assert {(row.task_id, row.check) for row in found} == {(one.task_id, "screened"), (other.task_id, "noise")}


@pytest.mark.parametrize("near", [None, 0.01])
def test_the_queue_holds_the_tasks_of_all_decisions_in_force(home: Home, near: float | None) -> None:
    desk = desk_of(home, near=near)
    desk.index.refresh()
    queued = {entry.task_id for entry in desk.queue("ann").page(Filter())}
    assert queued == {task_of(number, 2.0).task_id for number in (0, 1, 3)}


def evidence(workload: str, p_value: float | None, config: str = "a", rounds: int = 1, **fields: object) -> Evidence:
    figures = {"n_base": 20, "n_head": 20, "base_median": 2.0, "head_median": 1.0, "speedup": 2.0, "low": 1.9}
    sessions = [
        SessionStatistics(session=2 * rounds - 1 + place, p_value=p, high=2.1, delta=0.4, **figures)
        for place, p in enumerate((p_value, 0.01))
        if p is not None
    ]
    values = {"workload_id": workload, "change_id": workload[0], "p_value": p_value, "speedup": 2.0, **fields}
    return Evidence.model_validate(
        {**STAMP.fields(), "config_hash": config, "status": "kept", "sessions": sessions, **values}
    )


def test_a_repository_has_one_family_of_all_its_tests() -> None:
    lost = {"status": "rejected"}
    first = [evidence("c1", 0.001), evidence("d1", 0.9, **lost), evidence("d2", None, **lost)]
    alone = Family.of(first, {"c": "a", "d": "a"})
    assert alone == Family(workloads=2, accepted=1, max_p=0.001, max_confirming_p=0.01, rounds=1)
    assert alone.expected_false == pytest.approx(2 * 0.001 * 0.01)
    again = [row.model_copy(update={"config_hash": "b"}) for row in first]  # the same timings, seen once more
    assert Family.of([*first, *again], {"c": "b", "d": "b"}) == alone
    tries = [evidence("d1", p, f"try {p}", speedup=p, rounds=2, **lost) for p in (0.5, 0.6, 0.7)]
    family = Family.of([*first, *tries, evidence("d1", 0.02, "last")], {"c": "a", "d": "last"})
    assert family == Family(workloads=6, accepted=2, max_p=0.02, max_confirming_p=0.01, rounds=2)
    assert Family.of([], {}).expected_false == 0
