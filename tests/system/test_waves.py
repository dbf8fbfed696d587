"""The waves in which changes walk through the line, over the tables of the demo's history."""

from __future__ import annotations

import math
import os
import queue
import shutil
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from perfquarry.data.claims import Claims
from perfquarry.data.errors import InputError, StoreError
from perfquarry.data.records import Build, Change, Verdict
from perfquarry.flows import ahead
from perfquarry.flows.display import Lines, showing
from perfquarry.flows.options import Options, seconds_of
from perfquarry.flows.promise import Neighbours, Python3, Yields, promising
from perfquarry.flows.run import Run
from perfquarry.flows.runner import run_stages
from perfquarry.flows.stages import STAGES, Batch, Stage
from perfquarry.flows.waves import Step, steps
from perfquarry.harness.contracts import Command, Limits
from perfquarry.harness.measuring import machine
from tests.system import accepted

NAMES = tuple(stage.name for stage in STAGES)
WALKED = ("build", "generate", "measure")
DECIDING = ("select", "screen")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo, mined and judged."""
    folder = tmp_path_factory.mktemp("waves")
    run = Run(Options(repo="demo", home=str(folder), jobs=2))
    run_stages(run, ["mine", "judge"])
    run.close()
    return folder


@pytest.fixture
def run(home: Path, tmp_path: Path) -> Iterator[Run]:
    """A run over a home of its own with these tables."""
    made = _run(home, tmp_path)
    yield made
    made.close()


def _run(home: Path, folder: Path, seconds: float | None = None, tasks: int | None = None) -> Run:
    shutil.copytree(home / "tables", folder / "tables")
    (folder / "repositories").symlink_to(home / "repositories")
    made = Run(Options(repo="demo", home=str(folder), jobs=2, seconds=seconds, tasks=tasks))
    made.begin()
    return made


def fall(run: Run, changes: frozenset[str], reason: str = "import_failed") -> None:
    """Writes that no side of them can be built."""
    facts = {**run.stamp("build").fields(), "status": "rejected", "reason": reason, "seconds": 3.0}
    run.store.append(
        [Build(**facts, build_id=one, change_id=one, side="base", sha="0" * 40) for one in sorted(changes)]
    )


def walk(run: Run) -> list[Step]:
    """Does the steps; what is built falls."""
    done = []
    for stage, among in steps(run, NAMES):
        done.append((stage, among))
        if stage.name == "build" and among is not None:
            fall(run, among)
    return done


def waves(done: list[Step]) -> list[frozenset[str]]:
    return [among for stage, among in done if stage.name == "build" and among is not None]


def cores() -> int:
    return len(os.sched_getaffinity(0))


def test_while_a_core_is_free_of_timings_the_next_wave_is_built_and_searched(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(machine, "lock_folder", lambda: tmp_path)
    done: queue.Queue[tuple[str, str]] = queue.Queue()

    def attempt(of: Run, stage: Stage, batch: Batch, since: float) -> None:
        done.put((stage.name, batch[0]))
        fall(of, frozenset(batch))  # and so nothing is to be searched

    ranked = run.in_scope()
    with ExitStack() as timings:
        for _ in range(cores()):
            timings.enter_context(machine.measurement_lock())
        for stage, among in steps(run, NAMES, attempt):
            if stage.name == "build" and among is not None:
                fall(run, among)
            if stage.name == "measure" and among == {*ranked[:2]}:
                with pytest.raises(queue.Empty):
                    done.get(timeout=0.5)
                timings.close()
                assert [done.get(timeout=60) for _ in range(2)] == [("build", one) for one in ranked[2:4]]
    built = [row.change_id for row in run.store.records(Build, "demo")]
    assert sorted(built) == sorted(ranked), "each once"
    assert not [one for one in threading.enumerate() if one.name == "ahead"]


def test_an_error_ends_what_is_done_ahead_before_the_claims_are_given_back(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(machine, "lock_folder", lambda: tmp_path)
    begun, ended = threading.Event(), queue.Queue[str]()

    def attempt(of: Run, stage: Stage, batch: Batch, since: float) -> None:
        begun.set()
        try:
            command = Command(("sleep", "600"), tmp_path, limits=Limits(wall_seconds=500))
            of.prober.sandbox.run(command)
        except KeyboardInterrupt:
            ended.put("ended")
            raise

    with pytest.raises(StoreError, match="full"):
        for stage, among in steps(run, NAMES, attempt):
            if stage.name == "build" and among is not None:
                fall(run, among)
            if stage.name == "measure" and among is not None:
                assert begun.wait(60)
                raise StoreError("the disk is full")
    assert ended.get_nowait() == "ended"
    assert not [one for one in threading.enumerate() if one.name == "ahead"]


def test_who_runs_one_batch_at_a_time_runs_nothing_ahead(home: Path, tmp_path: Path) -> None:
    run = _run(home, tmp_path)
    alone = Run(run.options.model_copy(update={"jobs": 1}))
    alone.begin()
    for stage, among in steps(alone, NAMES, lambda *_: pytest.fail("something was done ahead")):
        if stage.name == "build" and among is not None:
            fall(alone, among)
    alone.close()
    run.close()


def test_small_waves_first_each_change_once_and_all_in_the_end(run: Run) -> None:
    ranked = run.in_scope()
    assert len(ranked) == 20
    done = walk(run)
    found = waves(done)
    assert [len(wave) for wave in found] == [2, 4, 14] and sorted(one for wave in found for one in wave) == sorted(
        ranked
    )
    assert found[0] == set(ranked[:2]), "nothing is known but the judge's probability"
    a_wave = [*WALKED, *DECIDING]
    assert [stage.name for stage, _ in done] == ["mine", "judge", *a_wave, *a_wave, *a_wave, "count"]
    assert all(among is None for stage, among in done if stage.name in ("mine", "judge", *DECIDING, "count"))
    assert walk(run)[2:] == [(stage, None) for stage in STAGES[2:]], "without a change, each stage looks once"


def test_what_another_worker_is_at_is_waited_for(run: Run, tmp_path: Path) -> None:
    other = Claims(run.home.database, tmp_path / "elsewhere", 3600.0)
    last = run.in_scope()[-1]
    other.take(run.scope("build"), [last], other.now())
    done = []
    for stage, among in steps(run, NAMES):
        done.append((stage, among))
        if stage.name == "build" and among is not None:
            fall(run, among - {last})
    assert [among for stage, among in done if stage.name == "build"][-1] is None
    other.close()


def test_a_stage_by_itself_does_all(run: Run) -> None:
    assert [(stage.name, among) for stage, among in steps(run, ["build"])] == [("build", None)]


def test_what_falls_makes_its_neighbours_less_promising(run: Run) -> None:
    """In a history of 20 changes all are neighbours: the chance falls for all alike, a cost for some."""
    ranked = run.in_scope()
    assert promising(run, ranked) == ranked and promising(run, []) == []
    merged = {row.change_id: row.merged_at.timestamp() for row in run.store.records(Change, run.name)}
    at = [merged[one] for one in ranked]
    fell = [float(time > sorted(at)[10]) for time in at]
    chance = Neighbours(at, fell, empty=0.5)
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
    fall(run, frozenset(tried), reason)
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


def test_when_the_time_is_over_nothing_more_is_begun(home: Path, tmp_path: Path) -> None:
    run = _run(home, tmp_path, seconds=1e-6)
    assert run.is_over and not waves(list(steps(run, NAMES)))
    run_stages(run, ["build"])
    assert not list(run.store.records(Build, run.name)), "neither is a single stage's"


def test_it_ends_with_so_many_tasks_and_tells_each(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = _run(home, tmp_path, tasks=1)
    done = []
    with showing(Console(width=200)) as display:
        assert isinstance(display, Lines)
        for stage, among in steps(run, NAMES):
            done.append((stage, among))
            if stage.name == "select":
                run.store.append([accepted.task(7, title="Sum [once]").model_copy(update={"repo": run.name})])
            if stage.name == "build" and among:
                fall(run, among)
    assert len(waves(done)) == 1
    told = capsys.readouterr().out
    assert "plan      20 change(s) to try" in told and "ends at 1 accepted task(s)" in told
    assert told.count("task      ") == 1 and "Sum [once]" in told
    assert "left      2 change(s) tried, 18 to go" in told


def test_a_wave_that_the_end_of_the_time_cuts_is_not_counted_as_tried(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = _run(home, tmp_path, seconds=3600)
    begun = 0
    with showing(Console(width=200)):
        for stage, among in steps(run, NAMES):
            if stage.name == "build" and among:
                begun += 1
                if begun == 1:
                    fall(run, among)
                else:
                    run.__dict__["_deadline"] = 0.0  # the time is over before anything of the second wave is done
    first, last = (line for line in capsys.readouterr().out.splitlines() if line.startswith("left "))
    assert begun == 2 and "2 change(s) tried, 18 to go: about" in first
    assert "2 change(s) tried, 18 to go: about" in last and last.endswith("the time is over: the same command goes on")


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("30m", 1800), ("1.5h", 5400), (" 2 D ", 172800)])
def test_durations(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "30", "m", "0m", "-3m", "3 weeks", "1h30m"])
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InputError, match="such as 90s"):
        seconds_of(text)
