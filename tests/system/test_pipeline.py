"""How changes go through the line, over the tables of the demo's history."""

from __future__ import annotations

import os
import queue
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from rich.console import Console

from perfquarry.data.claims import Claims
from perfquarry.data.display import Lines, showing
from perfquarry.data.errors import InputError, SandboxUnavailable
from perfquarry.data.records import Build
from perfquarry.flows import pipeline
from perfquarry.flows import run as flows_run
from perfquarry.flows.pipeline import go_through, run_stages, steps
from perfquarry.flows.run import OthersWait, Run
from perfquarry.flows.runner import ATTEMPTS, Failure, run_stage
from perfquarry.flows.stages import STAGES, Batch, Stage
from perfquarry.harness.contracts import Command, Limits
from perfquarry.harness.measuring import machine
from tests.system import accepted
from tests.system.judged_demo import run_over

NAMES = tuple(stage.name for stage in STAGES)


@pytest.fixture
def run(judged_demo: Path, tmp_path: Path) -> Iterator[Run]:
    """A run over a home of its own with these tables."""
    made = run_over(judged_demo, tmp_path)
    yield made
    made.close()


@dataclass
class Line:
    """Three stages whose work is done in the test, over the changes of a run."""

    run: Run
    ids: list[str]
    done: dict[str, list[str]] = field(default_factory=lambda: {"build": [], "generate": [], "measure": []})
    log: list[tuple[str, str]] = field(default_factory=list)
    decisions: int = 0
    broken: set[str] = field(default_factory=set)
    """These are not built."""
    doing: Callable[[str, str], None] = lambda stage, change: None
    decide: Callable[[], None] = lambda: None

    def stages(self) -> list[Stage]:
        """Build, generate and measure."""
        return [self._stage("build", lambda: self.ids), self._stage("generate", self._built), self._measure()]

    def deciding(self) -> list[Stage]:
        """One that has something to decide whenever it is asked."""

        def todo(run: Run) -> list[Batch]:
            return [(f"family{self.decisions}",)] if self.decisions < len(self.done["measure"]) else []

        def work(run: Run, batch: Batch) -> None:
            self.decisions = len(self.done["measure"])
            self.log.append(("select", str(self.decisions)))
            self.decide()

        return [Stage("select", todo, work, alone=True, decides=True, summary=lambda run: "decided")]

    def go(self) -> list[Failure]:
        """All of it."""
        return go_through(self.run, self.stages(), self.deciding())

    def order(self, stage: str) -> list[str]:
        """The changes that a stage did, in their order."""
        return [change for name, change in self.log if name == stage]

    def _built(self) -> list[str]:
        return [one for one in self.done["build"] if one not in self.broken]

    def _measure(self) -> Stage:
        return replace(self._stage("measure", lambda: self.done["generate"]), needs_core=True)

    def _stage(self, name: str, ready: Callable[[], list[str]]) -> Stage:
        def todo(run: Run) -> list[Batch]:
            return [(one,) for one in ready() if one not in self.done[name]]

        def work(run: Run, batch: Batch) -> None:
            self.log.append((name, batch[0]))
            self.doing(name, batch[0])
            self.done[name].append(batch[0])

        return Stage(name, todo, work, of_changes=True)


@pytest.fixture
def own_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Locks of cores that no other timing of this machine holds; looks follow each other quickly."""
    folder = tmp_path / "locks"
    folder.mkdir()
    monkeypatch.setattr(machine, "lock_folder", lambda: folder)
    monkeypatch.setattr(pipeline, "LOOK_SECONDS", 0.05)
    return folder


def alone(run: Run) -> Run:
    """The run with one job."""
    made = Run(run.options.model_copy(update={"jobs": 1}))
    made.begin()
    return made


def test_the_steps_of_a_run_are_its_stages_but_for_those_of_single_changes() -> None:
    assert [step.name for step in steps(NAMES)] == ["mine", "judge", "changes", "select", "screen", "count"]
    assert [step.name for step in steps(NAMES) if step.can_wait] == ["count"]
    assert [step.name for step in steps(["build"])] == ["build"]
    assert [step.name for step in steps(["measure", "select"])] == ["measure", "select"]


def test_each_change_once_the_most_promising_first_and_what_was_begun_goes_on(run: Run, own_cores: Path) -> None:
    ranked = run.in_scope()
    one_job = alone(run)
    line = Line(one_job, ranked, broken={ranked[1]})
    assert line.go() == []
    assert line.order("build") == ranked and line.order("measure") == [one for one in ranked if one != ranked[1]]
    first = [("build", ranked[0]), ("generate", ranked[0]), ("measure", ranked[0])]
    works = [work for work in line.log if work[0] != "select"]
    assert works[:5] == [*first, ("build", ranked[1]), ("build", ranked[2])]
    one_job.close()


def test_decisions_are_few_where_many_were_timed(run: Run, own_cores: Path) -> None:
    line = Line(run, run.in_scope())
    line.go()
    known = [int(number) for name, number in line.log if name == "select"]
    assert known[0] <= 2 and known[-1] == 20 and 5 < len(known) < 16


def test_a_slow_search_holds_nobody_else_up(run: Run, own_cores: Path) -> None:
    ranked, others = run.in_scope(), threading.Event()

    def doing(stage: str, change: str) -> None:
        if (stage, change) == ("generate", ranked[0]):
            assert others.wait(60), "it waits until all others were timed"
        if len(line.done["measure"]) == 18 and stage == "measure":
            others.set()

    line = Line(run, ranked, doing=doing)
    assert line.go() == [] and line.order("measure")[-1] == ranked[0]


def test_beside_as_many_timings_as_jobs_one_more_change_is_made_ready(run: Run, own_cores: Path) -> None:
    ready, lock, at_work = threading.Event(), threading.Lock(), Counter[str]()
    peaks: list[tuple[int, int]] = []

    def doing(stage: str, change: str) -> None:
        with lock:
            at_work[stage] += 1
            peaks.append((at_work["measure"], at_work["build"] + at_work["generate"]))
        if stage == "measure":
            assert ready.wait(60), "both timings wait until a third change was searched"
        if stage == "generate" and change == ranked[2]:
            ready.set()
        time.sleep(0.02)
        with lock:
            at_work[stage] -= 1

    ranked = run.in_scope()
    line = Line(run, ranked, doing=doing)
    assert line.go() == [] and len(line.done["measure"]) == 20
    assert (2, 1) in peaks and all(timings <= 2 for timings, _ in peaks)
    assert max(timings + others for timings, others in peaks) == 3


def test_while_no_core_is_free_others_are_built_until_enough_wait(run: Run, own_cores: Path) -> None:
    ranked = run.in_scope()
    line = Line(run, ranked)

    def times(stage: str, change: str) -> None:
        if stage == "measure":
            timings.close()
            with machine.measurement_lock():
                pass

    line.doing = times
    with ExitStack() as timings:
        for _ in range(len(os.sched_getaffinity(0))):
            timings.enter_context(machine.measurement_lock())
        line.go()
    first = next(number for number, (name, _) in enumerate(line.log) if name == "measure")
    done = Counter(name for name, _ in line.log[:first])
    assert done["build"] == 4 and done["generate"] in (3, 4), "the last of four may be searched when timings begin"
    assert len(line.order("measure")) == 20


def test_a_long_timing_is_set_aside_for_what_was_not_timed_and_goes_on(run: Run, own_cores: Path) -> None:
    ranked, left = run.in_scope(), threading.Event()

    def doing(stage: str, change: str) -> None:
        if stage != "measure":
            return
        if change == ranked[0] and not left.is_set():
            assert run.others_wait.wait(60), "two are timed, and a third is ready"
            left.set()
            raise OthersWait
        assert left.wait(60)

    line = Line(run, ranked, doing=doing)
    assert line.go() == []
    timed = line.order("measure")
    assert timed.index(ranked[2]) < len(timed) - 1 - timed[::-1].index(ranked[0]), "the third before the first again"
    assert Counter(timed) == Counter(ranked) + Counter([ranked[0]]) and sorted(line.done["measure"]) == sorted(ranked)


def test_what_another_worker_leaves_is_taken_up(run: Run, tmp_path: Path, own_cores: Path) -> None:
    other = Claims(run.home.database, tmp_path / "elsewhere", 3600.0)
    ranked = run.in_scope()
    other.take(run.scope("build"), [ranked[0]], other.now())

    def doing(stage: str, change: str) -> None:
        if (stage, change) == ("measure", ranked[-1]):
            other.close()

    line = Line(run, ranked, doing=doing)
    line.go()
    assert line.order("build")[-1] == ranked[0] and line.order("measure")[-1] == ranked[0]


def test_what_fails_is_reported_once_and_costs_nothing_else(run: Run, own_cores: Path) -> None:
    ranked = run.in_scope()

    def doing(stage: str, change: str) -> None:
        if (stage, change) == ("generate", ranked[0]):
            raise SandboxUnavailable("a fault that does not pass")

    line = Line(run, ranked, doing=doing)
    (failure,) = line.go()
    assert (failure.stage, failure.batch) == ("generate", (ranked[0],))
    assert line.order("generate").count(ranked[0]) == ATTEMPTS and len(line.done["measure"]) == 19


@pytest.mark.parametrize("fault", [InputError("a column is missing"), KeyboardInterrupt()])
def test_an_error_or_ctrl_c_ends_what_is_at_work(run: Run, own_cores: Path, fault: BaseException) -> None:
    ranked, ended = run.in_scope(), queue.Queue[str]()

    def doing(stage: str, change: str) -> None:
        if change == ranked[0]:
            try:
                run.runtime.prober.sandbox.run(Command(("sleep", "600"), own_cores, limits=Limits(wall_seconds=500)))
            except KeyboardInterrupt:
                ended.put("ended")
                raise

    def todo(run: Run) -> list[Batch]:
        raise fault

    line = Line(run, ranked, doing=doing)
    with pytest.raises(type(fault)):
        go_through(run, line.stages(), [Stage("select", todo, lambda run, batch: None, decides=True)])
    assert ended.get_nowait() == "ended" and line.order("measure")


def test_when_the_time_is_over_nothing_more_is_begun(
    judged_demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_over(judged_demo, tmp_path, seconds=1e-6)
    line = Line(run, run.in_scope())
    with showing(Console(width=200)):
        assert run.is_over and line.go() == [] and not line.log
    assert (
        "left      0 change(s) tried, 20 to go; the time is over: the same command goes on" in capsys.readouterr().out
    )
    run_stages(run, ["build"])
    assert not list(run.store.records(Build, run.name)), "neither is a single stage's"


@pytest.mark.parametrize("outlasts", ["build", "measure"])
def test_what_outlasts_the_time_is_ended_and_is_no_failure(
    judged_demo: Path,
    tmp_path: Path,
    own_cores: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    outlasts: str,
) -> None:
    monkeypatch.setattr(flows_run, "LEAST_GRACE", 0.2)
    monkeypatch.setattr(flows_run, "GRACE", 0.0)
    run = run_over(judged_demo, tmp_path, seconds=3600)
    ranked = run.in_scope()

    def doing(stage: str, change: str) -> None:
        if (stage, change) == (outlasts, ranked[2]):
            run.__dict__["_deadline"] = time.monotonic()
            run.runtime.prober.sandbox.run(Command(("sleep", "600"), own_cores, limits=Limits(wall_seconds=500)))

    line = Line(run, ranked, doing=doing)
    with showing(Console(width=200)):
        assert line.go() == []
    assert ranked[2] not in line.done[outlasts] and not run.claims.elsewhere(run.scope(outlasts))
    shown = capsys.readouterr().out.splitlines()[-1]
    tried = len(line.done["measure"])
    assert shown.startswith(f"left      {tried} change(s) tried, {20 - tried} to go: about ")
    assert shown.endswith("the time is over: the same command goes on")
    run.close()


def test_a_count_that_outlasts_the_time_is_ended_and_left_to_the_next_run(
    judged_demo: Path, tmp_path: Path, own_cores: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flows_run, "LEAST_GRACE", 0.2)
    monkeypatch.setattr(flows_run, "GRACE", 0.0)
    run = run_over(judged_demo, tmp_path, seconds=3600)
    counted: list[str] = []

    def count(run: Run, names: Batch) -> None:
        if names == ("second",):
            run.__dict__["_deadline"] = time.monotonic()
            run.runtime.prober.sandbox.run(Command(("sleep", "600"), own_cores, limits=Limits(wall_seconds=500)))
        counted.extend(names)

    def todo(run: Run) -> list[Batch]:
        return [(name,) for name in ("first", "second", "third") if name not in counted]

    assert run_stage(run, Stage("count", todo, count, alone=True, keys="task", summary=lambda run: "")) == []
    assert counted == ["first"] and not run.claims.elsewhere(run.scope("count"))
    run.close()


def test_a_timing_may_outlast_the_time_a_little(judged_demo: Path, tmp_path: Path, own_cores: Path) -> None:
    run = run_over(judged_demo, tmp_path, seconds=3600)
    ranked = run.in_scope()

    def doing(stage: str, change: str) -> None:
        if (stage, change) == ("measure", ranked[0]):
            run.__dict__["_deadline"] = time.monotonic()
            run.runtime.prober.sandbox.run(Command(("sleep", "1"), own_cores, limits=Limits(wall_seconds=500)))

    line = Line(run, ranked, doing=doing)
    assert line.go() == [] and ranked[0] in line.done["measure"] and line.decisions == len(line.done["measure"])
    run.close()


def test_what_is_still_timed_when_the_tasks_are_enough_is_ended_and_is_no_failure(
    judged_demo: Path, tmp_path: Path, own_cores: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_over(judged_demo, tmp_path, tasks=1)
    ranked = run.in_scope()

    def doing(stage: str, change: str) -> None:
        if (stage, change) == ("measure", ranked[1]):
            run.runtime.prober.sandbox.run(Command(("sleep", "600"), own_cores, limits=Limits(wall_seconds=500)))

    def decide() -> None:
        run.store.append([accepted.task(7, title="Sum [once]").model_copy(update={"repo": run.name})])

    line = Line(run, ranked, doing=doing, decide=decide)
    with showing(Console(width=200)):
        assert line.go() == []
    assert ranked[1] not in line.done["measure"] and not run.claims.elsewhere(run.scope("measure"))
    shown = capsys.readouterr().out
    assert shown.count("task      ") == 1 and "the time is over" not in shown
    assert not run.is_over, "the stages that follow go on"
    run.close()


def test_it_ends_with_so_many_tasks_and_announces_each(
    judged_demo: Path, tmp_path: Path, own_cores: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_over(judged_demo, tmp_path, tasks=1)

    def decide() -> None:
        run.store.append([accepted.task(7, title="Sum [once]").model_copy(update={"repo": run.name})])

    line = Line(run, run.in_scope(), decide=decide)
    with showing(Console(width=200)) as display:
        assert isinstance(display, Lines)
        line.go()
    assert 1 <= len(line.done["measure"]) <= 2
    printed = capsys.readouterr().out
    assert "plan      20 change(s) to try" in printed and "ends at 1 accepted task(s)" in printed
    assert printed.count("task      ") == 1 and "Sum [once]" in printed
    assert re.search(r"left      [12] change\(s\) tried, 1[89] to go: about .* at this pace$", printed, re.MULTILINE)
    run.close()
