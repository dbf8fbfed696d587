"""The public API: a home and a release as frames, and decisions on anybody's timings."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import perfquarry
from perfquarry.data.errors import InputError
from tests.system.conftest import Curated


def test_everything_public_is_there() -> None:
    assert all(getattr(perfquarry, name) for name in perfquarry.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        perfquarry.nothing  # noqa: B018


def test_a_home_and_its_release_are_frames(curated: Curated, facts: Callable[..., Any], tmp_path: Path) -> None:
    home = perfquarry.open_home(curated.home)
    assert "demo" in home.repositories() and {"changes", "tasks", "timings"} <= set(home.tables)
    (task,) = home.tasks("demo")
    rows = home.frame("tasks")
    (row,) = rows[(rows.status == "kept") & (rows.task_id == task.task_id)].to_dict("records")[-1:]
    assert row["speedup"] == task.speedup == home.task(task.task_id).speedup
    assert list(home.frame("changes", "demo", ["change_id"]).columns)[:1] == ["change_id"]
    assert home.frame("tasks", "unknown").empty
    samples = home.samples(task.task_id)
    assert set(samples.workload_id) == {one.workload_id for one in task.workloads}
    first = task.workloads[0]
    plain = samples[(samples.workload_id == first.workload_id) & ~samples.aa]
    medians = plain.groupby("side").seconds.median()
    assert medians["base"] / medians["head"] == pytest.approx(first.speedup, rel=0.3)
    for asked in (lambda: home.frame("nothing"), lambda: home.task("nothing"), lambda: home.samples("nothing")):
        with pytest.raises(InputError, match="nothing"):
            asked()

    folder = tmp_path / "release"
    facts(curated.home, "release", "--repo", "demo", "--version", "0.1.0", "--to", str(folder))
    release = perfquarry.open_release(folder)
    assert release.frame("revalidations").empty and "task_id" in release.frame("revalidations").columns
    assert [one.task_id for one in release.tasks()] == [task.task_id] == list(release.frame().task_id)
    assert release.task(task.task_id).patch == task.patch
    assert len(release.samples(task.task_id)) == release.frame("timings").samples.map(len).sum()
    for asked in (lambda: release.frame("nothing"), lambda: release.task("nothing")):
        with pytest.raises(InputError, match="nothing"):
            asked()


def test_what_is_no_home_and_no_release_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no home"):
        perfquarry.open_home(tmp_path / "none")
    with pytest.raises(InputError, match="is no release"):
        perfquarry.open_release(tmp_path)


@pytest.mark.parametrize(
    ("speedup", "noise", "verdict"),
    [(2.0, 0.02, "gain"), (1.0, 0.005, "no_gain"), (0.5, 0.02, "slower"), (1.1, 0.5, "undecided")],
)
def test_anybodys_timings_are_decided(speedup: float, noise: float, verdict: str) -> None:
    draw = random.Random(7)
    both = [draw.lognormvariate(0, 0.3) for _ in range(12)]  # noise that a pair shares cancels
    base = [one * draw.lognormvariate(0, noise) for one in both]
    head = [one / speedup * draw.lognormvariate(0, noise) for one in both]
    found = perfquarry.decide(base, head, base_again=[(one, one * 1.001) for one in both[:4]])
    assert found.verdict == verdict
    assert found.low <= found.speedup <= found.high and found.low <= speedup <= found.high
    again = perfquarry.decide([1000 * one for one in base], [1000 * one for one in head])
    assert (again.speedup, again.delta) == pytest.approx((found.speedup, found.delta)), "no unit matters"


@pytest.mark.parametrize(
    ("base", "head"),
    [([1.0] * 5, [1.0] * 5), ([1.0] * 6, [1.0] * 7), ([0.0] * 6, [1.0] * 6), ([1.0] * 6, [float("nan")] * 6)],
)
def test_what_cannot_be_decided_is_refused(base: list[float], head: list[float]) -> None:
    with pytest.raises(InputError):
        perfquarry.decide(base, head)
