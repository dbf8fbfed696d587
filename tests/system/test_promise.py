"""Which change is taken up next, over the tables of the demo's history."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from perfquarry.curation.promise import Neighbours, Python3, Yields, promising
from perfquarry.data.records import Change, Verdict
from perfquarry.flows.run import Run
from tests.system import accepted
from tests.system.judged_demo import reject, run_over


@pytest.fixture
def run(judged_demo: Path, tmp_path: Path) -> Iterator[Run]:
    """A run over a home of its own with these tables."""
    made = run_over(judged_demo, tmp_path)
    yield made
    made.close()


def test_what_fails_makes_its_neighbours_less_promising(run: Run) -> None:
    """In a history of 20 changes all are neighbours: the chance falls for all alike, a cost for some."""
    ranked = run.in_scope()
    assert promising(run, ranked) == ranked and promising(run, []) == []
    merged = {row.change_id: row.merged_at.timestamp() for row in run.store.records(Change, run.name)}
    at = [merged[one] for one in ranked]
    failed = [float(time > sorted(at)[10]) for time in at]
    chance = Neighbours(at, failed, empty=0.5)
    assert chance.near(max(at)) > 0.7 > 0.3 > chance.near(min(at))


def test_a_chance_is_learned_from_the_nearest_and_drawn_to_all() -> None:
    nothing = Neighbours([], [], empty=0.5)
    assert nothing.near(3.0) == 0.5
    one = Neighbours([1.0], [0.0], empty=0.5)
    assert 0.1 < one.near(1.0) < 0.5
    times = np.arange(1000.0)
    many = Neighbours(list(times), list((times >= 500).astype(float)), empty=0.5)
    assert many.near(-50.0) < 0.1 and many.near(1050.0) > 0.9 and math.isclose(many.near(499.5), 0.5, abs_tol=0.1)


@pytest.mark.parametrize("reason", ["import_failed", "needs_python_2"])
def test_only_code_of_python_2_speaks_against_all_that_is_older(run: Run, reason: str) -> None:
    merged = {row.change_id: row.merged_at for row in run.store.records(Change, run.name)}
    in_time = sorted(run.in_scope(), key=lambda one: merged[one])
    tried, older, newer = in_time[8:12], in_time[:8], in_time[12:]

    def newer_ahead() -> int:
        ranked = promising(run, older + newer)
        return sum(ranked.index(one) < ranked.index(other) for one in newer for other in older)

    before = newer_ahead()
    reject(run, frozenset(tried), reason)
    assert (newer_ahead() > before) == (reason == "needs_python_2")


def test_a_yield_is_what_came_over_what_was_expected() -> None:
    assert Yields([]).factor("title_speed") == 1.0
    some = Yields([("title_speed", 0.9, True)] * 9 + [("caching", 0.8, False)] * 10)
    assert some.factor("caching") < 0.3 < some.factor("never seen") < 1.0 < some.factor("title_speed")
    once = Yields([("caching", 0.8, False)])
    assert 0.4 < once.factor("caching") < once.factor("never seen") < 1.0, "one change proves little"


def test_signals_that_brought_no_task_come_later(run: Run) -> None:
    verdicts = {row.change_id: row for row in run.store.records(Verdict, run.name, **run.where("judge"))}
    ranked = promising(run, run.in_scope())
    led_by = {one: next((s.name for s in verdicts[one].signals if s.weight > 0), "") for one in ranked}
    signal = led_by[ranked[0]]
    same = [one for one in ranked if led_by[one] == signal]
    others = [one for one in ranked if led_by[one] != signal]
    assert len(same) > 3 and len(others) > 3
    tried, left = same[:2], [one for one in ranked if one not in same[:2]]

    def ahead() -> int:
        order = promising(run, left)
        return sum(order.index(one) < order.index(other) for one in same[2:] for other in others)

    before = ahead()
    rejected = accepted.task(7, accepted=False)
    run.store.append([rejected.model_copy(update={"change_id": one, "task_id": one}) for one in tried])
    assert ahead() < before


def test_python_3_once_begun_does_not_end() -> None:
    assert Python3([], []).chance(1.0) == Python3([], [1.0]).chance(0.0) == 1.0
    learned = Python3(old=[3.0, 1.0, 2.0], built=[2.5, 5.0, 4.0])
    assert [learned.chance(at) for at in (0.0, 1.5, 2.7, 3.1, 9.0)] == [1 / 4, 1 / 3, 2 / 3, 1.0, 1.0]
