"""A task that is measured again: when it holds, and how sure the share of those that hold is."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from screened_task import task as a_task
from screened_task import workload
from simulated_timings import STAMP, session_rows

from perfquarry.curation.revalidation import judge_again, no_longer_held, outcome, read_tasks, share_that_holds
from perfquarry.curation.settings import SelectSettings
from perfquarry.data.errors import InputError
from perfquarry.data.records import Revalidation, Task
from perfquarry.data.records.task import TaskWorkload
from perfquarry.data.schema import to_table


def published(name: str, speedup: float = 2.0) -> TaskWorkload:
    figures = {"speedup": speedup, "low": speedup * 0.95, "high": speedup * 1.05, "head_seconds": 1 / speedup}
    return workload(f"test_{name}.py::test", workload_id=name).model_copy(update=figures)


def task() -> Task:
    return a_task(workloads=[published("w"), published("v", 1.5)], speedup=None)


def again(*speedups: tuple[str, float], noise: float = 0.01, **fields: object) -> Revalidation:
    """The task measured again, in one look."""
    rows = [row for name, speedup in speedups for row in session_rows(name, 1, speedup=speedup, noise=noise, **fields)]
    return judge_again(task(), rows, SelectSettings(), STAMP, "run", "3.11.7", 1.0)


def test_a_task_holds_when_all_its_workloads_do() -> None:
    row = again(("w", 2.0), ("v", 1.5))
    assert (row.status, row.reason) == ("kept", None)
    assert row.speedup == pytest.approx(2 / (1 / 2 + 1 / 1.5), rel=0.03)
    assert row.low and row.high and row.speedup and row.low < row.speedup < row.high
    assert row.published_speedup is None and row.machine.machine_id == "m1"


def test_one_lost_workload_loses_the_task() -> None:
    row = again(("w", 2.0), ("v", 1.0))
    assert (row.status, row.reason) == ("rejected", "no_gain")
    assert [one.held for one in row.workloads] == [True, False]


@pytest.mark.parametrize(
    ("here", "reason"),
    [(1.5, None), (1.44, None), (1.3, "another_speedup"), (1.8, "another_speedup"), (1.0, "no_gain"), (0.7, "no_gain")],
)
def test_a_workload_holds_when_it_gains_and_meets_what_was_published(here: float, reason: str | None) -> None:
    """Published: 1.5, [1.425, 1.575]."""
    one = again(("w", 2.0), ("v", here)).workloads[1]
    assert (one.held, one.reason) == (reason is None, reason)
    assert one.speedup == pytest.approx(here, rel=0.02) and one.published == 1.5


def test_noise_does_not_hold_and_is_no_fact() -> None:
    row = again(("w", 2.0), ("v", 1.5), noise=0.9, blocks=7)
    assert (row.status, row.reason) == ("rejected", "undecided")
    assert all(one.low is not None and one.high is not None for one in row.workloads)
    assert outcome(row).startswith("does not hold: undecided")


def test_a_workload_that_fails_does_not_hold() -> None:
    row = again(("w", 2.0), ("v", 1.5), outcome="failed")
    assert (row.status, row.reason) == ("rejected", "workload_failed")


def test_a_workload_that_was_never_timed_does_not_hold() -> None:
    row = again(("w", 2.0))
    assert (row.status, row.reason, row.speedup) == ("rejected", "too_few_samples", None)
    with pytest.raises(InputError, match="nothing was measured"):
        again()


def test_the_share_that_holds_has_an_exact_interval() -> None:
    held, lost = again(("w", 2.0), ("v", 1.5)), again(("w", 2.0), ("v", 1.0))
    share, low, high = share_that_holds([held] * 9 + [lost])
    assert share == 0.9 and low == pytest.approx(0.555, abs=1e-3) and high == pytest.approx(0.9975, abs=1e-4)
    with pytest.raises(InputError):
        share_that_holds([])


def test_a_task_of_which_no_workload_holds_would_be_none() -> None:
    one = task()
    held, partly, lost = [again(("w", first), ("v", second)) for first, second in ((2.0, 1.5), (1.0, 1.5), (1.0, 1.0))]
    day = (one.measured_at or one.created_at) + timedelta(days=1)
    assert no_longer_held([], [one]) == no_longer_held([held], [one]) == no_longer_held([partly], [one]) == {}
    (why,) = no_longer_held([row_of(lost, day)], [one]).values()
    assert why == f"measured again on {day:%Y-%m-%d}, none of its workloads holds (no_gain)"
    assert not no_longer_held([row_of(lost, day - timedelta(days=2))], [one]), "the task was measured later"
    assert not no_longer_held([row_of(lost, day, disturbed=0.6)], [one]), "that says nothing"
    assert not no_longer_held([row_of(lost, day)], []), "another task's"
    later = row_of(held, day + timedelta(days=1))
    assert not no_longer_held([later, row_of(lost, day)], [one]), "the newest row counts"
    elsewhere = later.machine.model_copy(update={"machine_id": "m2"})
    assert no_longer_held([later.model_copy(update={"machine": elsewhere}), row_of(lost, day)], [one]), (
        "of each machine"
    )


def row_of(row: Revalidation, created_at: datetime, **facts: float) -> Revalidation:
    return row.model_copy(update={"created_at": created_at, **facts})


def test_tasks_are_found_among_other_files_of_a_release(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    kept, rejected = task(), task().model_copy(update={"task_id": "a__b-x", "status": "rejected", "reason": "no_gain"})
    pq.write_table(to_table([kept, rejected]), tmp_path / "data" / "tasks.parquet")
    pq.write_table(to_table([kept]).select(["task_id", "patch"]), tmp_path / "data" / "other.parquet")
    assert read_tasks(tmp_path) == [kept] == read_tasks(tmp_path / "data" / "tasks.parquet")
    with pytest.raises(InputError, match="holds no tasks"):
        read_tasks(tmp_path / "data" / "other.parquet")


def test_what_a_row_says_in_words() -> None:
    row = again(("w", 2.0), ("v", 1.5))
    assert outcome(row) == "holds"
    published = {"published_low": 1.65, "published_high": 1.75}
    assert outcome(row.model_copy(update=published)) == "holds"
    other = row.model_copy(update={"published_low": 2.9, "published_high": 3.1, "disturbed": 0.9})
    assert outcome(other).startswith("holds; the speedup is another one here; others disturbed")
    assert outcome(again(("w", 2.0), ("v", 1.0))) == "does not hold: no_gain"
