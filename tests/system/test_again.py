"""What only a time limit rejected is tried again by later runs, on a small real repository."""

from __future__ import annotations

import math
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from perfquarry.curation import again, rows_of_run, sessions
from perfquarry.curation.in_force import newest_tasks
from perfquarry.data.records import Build, Change, Evidence, Reason, Renewal, Stamp, Task, Timing, Workload
from perfquarry.flows import stages
from perfquarry.flows.options import Options
from perfquarry.flows.pipeline import run_stages
from perfquarry.flows.run import OthersWait, Run, TimeIsOver
from perfquarry.flows.settings import Settings
from perfquarry.flows.stages import STAGES
from perfquarry.flows.watermarks import Watermark
from perfquarry.harness.building.builder import Builder
from perfquarry.harness.measuring.unfinished import Unfinished
from perfquarry.harness.settings import BuildSettings, MeasureSettings
from perfquarry.testgen.settings import GenerateSettings
from tests.review_home import MACHINE, task_of, timings_of

pytestmark = pytest.mark.timeout(600)
SHORT = MeasureSettings(aa_every=6, warmups=1, turn_seconds=0.05, most_turns=96)
"""Enough for what is much faster."""
SLOW_UNTIL_FREED = """\
    import os, time
    def wait():
        if not os.path.exists(os.path.join(os.path.dirname(__file__), "freed")):
            time.sleep(600)
"""
WORK = """\
    def total(values):
        result = 0
        for value in values:
            result += value
        return result
"""
FASTER = """\
    def total(values):
        return sum(values)
"""
TESTS = """\
    import time
    from work import total
    from work.busy import wait
    def test_freed():
        assert total(range(10)) == 45
        wait()
    def test_endless():
        total([])
        time.sleep(600)
"""


class Repository:
    """A repository with one change that makes a function faster, and runs over it."""

    def __init__(
        self,
        folder: Path,
        package: str = "",
        before: str = WORK,
        after: str = FASTER,
        tests: str = TESTS,
        measure: MeasureSettings = SHORT,
    ) -> None:
        self.path, self.home = folder / "work", folder / "home"
        self._write("setup.cfg", "[metadata]\nname = work\n[options]\npackages = work\n")
        self._write("setup.py", "from setuptools import setup\nsetup()\n")
        self._write("work/__init__.py", package + textwrap.dedent(before))
        self._write("work/busy.py", SLOW_UNTIL_FREED)
        self._write("tests/test_work.py", tests)
        self._git("init", "-q", "-b", "main")
        self._commit("First")
        self._write("work/__init__.py", package + textwrap.dedent(after))
        self._commit("Speed up total(): much faster, performance of the loop optimized")
        settings = Settings(
            build=BuildSettings(timeout=30.0), generate=GenerateSettings(test_timeout=1.0), measure=measure
        )
        self.run = Run(Options(repo=str(self.path), home=str(self.home), jobs=1, settings=settings))

    def _write(self, name: str, text: str) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))

    def _git(self, *words: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", *words], cwd=self.path, check=True
        )

    def _commit(self, message: str) -> None:
        self._git("add", "-A")
        self._git("commit", "-q", "-m", message)

    def change(self, message: str, code: str) -> None:
        """One more commit, with other code of the package."""
        self._write("work/__init__.py", code)
        self._commit(message)

    def free(self) -> None:
        """From now on the machine is not busy."""
        places = [path.parent for path in self.home.rglob("busy.py")]
        assert places
        for place in places:
            (place / "freed").touch()

    def next_run(self, *stages: str) -> None:
        self.run.close()
        run_stages(self.run, stages)

    def todo(self, name: str) -> int:
        return len(next(stage for stage in STAGES if stage.name == name).todo(self.run))

    def tests(self) -> dict[str, tuple[str | None, int]]:
        """Reason and tries of each unit test."""
        rows = self.run.store.records(Workload, self.run.name, where=pc.field("source") == "unit-test")
        return {row.code.rpartition("::")[2]: (row.reason, row.tries) for row in rows}


def test_a_test_is_tried_again_once_a_run_and_three_times_in_all(tmp_path: Path) -> None:
    made = Repository(tmp_path)
    run_stages(made.run, ["mine", "judge", "build", "generate"])
    late = str(Reason.TEST_TIMEOUT)
    assert made.tests() == dict.fromkeys(["", "test_freed", "test_endless"], (late, 1))
    assert made.todo("generate") == 0
    assert again.left(made.run, ["generate"], made.run.in_scope), "it is for the next run"

    made.free()
    made.next_run("generate")
    assert made.tests()["test_freed"] == (None, 2) and made.tests()["test_endless"] == (late, 2)
    assert made.todo("generate") == 0

    made.next_run("generate")
    assert made.tests()["test_freed"] == (None, 2) and made.tests()["test_endless"] == (late, 3)
    rows = list(made.run.store.records(Workload, made.run.name))
    assert not again.left(made.run, ["generate"], made.run.in_scope)

    made.next_run("generate")
    assert list(made.run.store.records(Workload, made.run.name)) == rows


@pytest.mark.slow
def test_a_build_is_tried_again(tmp_path: Path) -> None:
    made = Repository(tmp_path, package="from work.busy import wait\nwait()\n")
    run_stages(made.run, ["mine", "judge", "build", "generate"])
    builds = list(made.run.store.records(Build, made.run.name))
    assert [(row.reason, row.tries) for row in builds] == [(Reason.BUILD_TIMEOUT, 1)] * 2, builds[0].log
    assert made.todo("build") == 0 and again.left(made.run, ["build"], made.run.in_scope)
    made.free()
    made.next_run("build")
    builds = list(made.run.store.records(Build, made.run.name))
    assert [(row.status, row.tries) for row in builds] == [("kept", 2)] * 2, builds[0].log
    assert not again.left(made.run, ["build"], made.run.in_scope)


def test_measured_changes_with_new_workloads_are_measured_once_more(tmp_path: Path) -> None:
    run = Run(Options(repo="demo", home=str(tmp_path), jobs=1))
    task = task_of(1, 2.0, repo="demo")
    late = Workload.of(run.stamp("generate"), task.change_id, "unit-test", "test_a", reason=Reason.TEST_TIMEOUT)
    kept = Workload.of(run.stamp("generate"), task.change_id, "unit-test", "test_a")
    assert again.wishes(run, task.change_id, [late], [kept], again.WISHED_BY) == [], "it was not measured yet"
    run.store.append([row.model_copy(update=run.stamp("measure").fields()) for row in timings_of(task)])
    (wish,) = again.wishes(run, task.change_id, [late], [kept], again.WISHED_BY)
    assert (wish.stage, wish.change_id) == ("measure", task.change_id)
    assert (
        again.wishes(run, task.change_id, [kept], [kept], again.WISHED_BY)
        == again.wishes(run, task.change_id, [late], [late], again.WISHED_BY)
        == []
    )


class Measured:
    """A repository that was really mined, with simulated timings: each round as it is given, of what is asked for."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made = Repository(folder)
        self.asked: list[tuple[set[str], int]] = []
        """Tests and first session of each measurement."""
        self.rounds: list[dict[str, float | str]] = []
        """By test the spread of the pairs' log ratios about a gain of 1.5, or the outcome of all processes."""
        monkeypatch.setattr(stages, "measure", self._measure)
        monkeypatch.setattr(Builder, "reopen", lambda *_: (None, None))  # no process is started
        run = self.made.run
        run_stages(run, ["mine", "judge"])
        (change,) = [row for row in run.store.records(Change, run.name) if row.change_id in run.in_scope()]
        stamp = run.stamp("build").fields()
        facts = {"change_id": change.change_id, "python": "3.11.7"}
        builds = [
            Build(**stamp, **facts, build_id=side, side=side, sha=sha)
            for side, sha in (("base", change.base_sha), ("head", change.head_sha))
        ]
        tests = [f"tests/test_work.py::test_{name}" for name in ("first", "second")]
        run.store.append(builds)
        run.store.append([Workload.of(run.stamp("generate"), change.change_id, "unit-test", test) for test in tests])

    def _measure(
        self, change: str, workloads: list[Workload], *given: Any, first_session: int, **_: Any
    ) -> list[Timing]:
        stamp = next(one for one in given if isinstance(one, Stamp))
        names = {one.code.rpartition("::")[2]: one.workload_id for one in workloads}
        self.asked.append((set(names), first_session))
        rows = []
        for name, given_round in self.rounds[len(self.asked) - 1].items():
            for session in (first_session, first_session + 1):
                rows += simulated(names[name], change, session, given_round, stamp)
        return rows

    def next_run(self, *names: str) -> dict[str, tuple[str | None, list[int]]]:
        """Measures and decides in a new run; reason and sessions that decided, by test."""
        self.made.next_run(*(names or ("measure", "select")))
        run = self.made.run
        codes = {one.workload_id: one.code.rpartition("::")[2] for one in run.store.records(Workload, run.name)}
        return {
            codes[row.workload_id]: (row.reason, [one.session for one in row.sessions])
            for row in run.store.records(Evidence, run.name)
        }

    def left(self) -> bool:
        return again.left(self.made.run, ["measure", "select"], self.made.run.in_scope)


def simulated(workload: str, change: str, session: int, given_round: float | str, stamp: Stamp) -> list[Timing]:
    spread, outcome = (0.0, given_round) if isinstance(given_round, str) else (given_round, "passed")
    passed = outcome == "passed"
    rows = []
    for block in range(6):
        for position, side in enumerate(("base", "head")):
            seconds = 1.5 if side == "base" else math.exp(spread * (block - 2.5))
            reason = None if passed else Reason.WORKLOAD_TIMEOUT
            facts: dict[str, Any] = {"samples": [seconds] * passed, "outcome": outcome, "reason": reason}
            facts |= {"workload_id": workload, "change_id": change, "session": session, "side": side}
            facts |= {"block": block, "position": position, "hash_seed": block, "machine": MACHINE}
            rows.append(Timing(**stamp.fields(), status="kept" if passed else "rejected", **facts))
    return rows


CALM, NOISY = 0.001, 0.5
KEPT, OPEN, LATE = None, str(Reason.UNDECIDED), str(Reason.WORKLOAD_TIMEOUT)


def test_what_noise_left_open_is_measured_again_once_a_run_and_three_times_in_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Measured(tmp_path, monkeypatch)
    home.rounds = [{"test_first": CALM, "test_second": NOISY}, {"test_second": NOISY}, {"test_second": NOISY}]
    assert home.next_run() == {"test_first": (KEPT, [1, 2]), "test_second": (OPEN, [1, 2])}
    assert home.made.todo("measure") == home.made.todo("select") == 0 and home.left(), "it is for the next run"
    run_stages(home.made.run, ["measure", "select"])
    assert home.asked == [({"test_first", "test_second"}, 1)], "once a run"

    assert home.next_run() == {"test_first": (KEPT, [1, 2]), "test_second": (OPEN, [3, 4])}
    assert home.asked[1:] == [({"test_second"}, 3)]
    assert home.left()
    assert home.next_run() == {"test_first": (KEPT, [1, 2]), "test_second": (OPEN, [5, 6])}
    assert home.asked[2:] == [({"test_second"}, 5)]

    assert not home.left(), "three rounds are enough"
    tables = home.made.run.store.state(home.made.run.name)
    home.next_run()
    assert len(home.asked) == 3 and home.made.run.store.state(home.made.run.name) == tables


def test_the_newest_round_decides_and_nothing_is_measured_again_when_nothing_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Measured(tmp_path, monkeypatch)
    home.rounds = [{"test_first": NOISY, "test_second": NOISY}, {"test_first": CALM, "test_second": CALM}]
    assert home.next_run("measure") == {}
    assert home.next_run("measure") == {} and len(home.asked) == 1, "what is not decided yet is not open"
    assert home.next_run() == dict.fromkeys(["test_first", "test_second"], (OPEN, [1, 2]))
    assert len(home.asked) == 1
    assert home.next_run() == dict.fromkeys(["test_first", "test_second"], (KEPT, [3, 4]))
    assert not home.left()
    home.next_run()
    assert home.asked == [({"test_first", "test_second"}, 1), ({"test_first", "test_second"}, 3)]
    (task,) = [row for row in home.made.run.store.records(Task, home.made.run.name) if row.status == "kept"]
    assert len(task.workloads) == 2


def test_a_change_that_is_sent_back_is_measured_as_a_whole_although_a_part_was_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Measured(tmp_path, monkeypatch)
    both = {"test_first": CALM, "test_second": NOISY}
    home.rounds = [both, both, {"test_second": CALM}]
    home.next_run()
    run = home.made.run
    (change,) = {row.change_id for row in run.store.records(Timing, run.name)}
    stamp = run.stamp("measure").fields()
    run.store.append([Renewal(**stamp, change_id=change, stage="measure", wished_by="a curator")])
    assert home.next_run() == {"test_first": (KEPT, [1, 2]), "test_second": (OPEN, [1, 2])}
    assert home.asked[1:] == [({"test_first", "test_second"}, 1)], "older timings of the others count no more"
    assert home.next_run() == {"test_first": (KEPT, [1, 2]), "test_second": (KEPT, [3, 4])}


def test_a_measurement_that_met_its_limit_is_tried_again_once_a_run_and_three_times_in_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Measured(tmp_path, monkeypatch)
    late: dict[str, float | str] = {"test_first": CALM, "test_second": "timeout"}
    home.rounds = [late] * 3
    for tries in (1, 2, 3):
        assert home.next_run() == {"test_first": (KEPT, [1, 2]), "test_second": (LATE, [])}
        assert home.asked == [({"test_first", "test_second"}, 1)] * tries
        assert home.left() == (tries < 3) and home.made.todo("measure") == 0, "it is for the next run"
        run_stages(home.made.run, ["measure", "select"])
        assert len(home.asked) == tries, "once a run"
    tables = home.made.run.store.state(home.made.run.name)
    home.next_run()
    assert len(home.asked) == 3 and home.made.run.store.state(home.made.run.name) == tables
    wishes = [row.wished_by for row in home.made.run.store.records(Renewal, home.made.run.name)]
    assert wishes == ["a time limit, try 2", "a time limit, try 3"]


def test_a_late_measurement_that_ends_in_time_is_decided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Measured(tmp_path, monkeypatch)
    home.rounds = [{"test_first": "timeout", "test_second": CALM}, {"test_first": CALM, "test_second": CALM}]
    assert home.next_run()["test_first"] == (LATE, [])
    assert home.next_run() == dict.fromkeys(["test_first", "test_second"], (KEPT, [1, 2]))
    assert not home.left()


@pytest.mark.slow
def test_a_measurement_that_was_set_aside_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Repository(tmp_path)
    run_stages(made.run, ["mine", "judge", "build", "generate"])
    made.free()
    made.next_run("generate")
    (change,) = made.run.kept("generate")
    measure = next(stage for stage in STAGES if stage.name == "measure")
    monkeypatch.setattr(stages, "ASIDE_SECONDS", 0.0)
    monkeypatch.setattr(sessions, "settled", lambda timings, **_: set())
    monkeypatch.setattr(stages, "shows_gain", lambda *_: False)
    for pairs in (6, 7):
        made.run.others_wait.set()
        with pytest.raises(OthersWait):
            measure.work(made.run, (change,))
        (kept,) = (made.home / "cache" / "timings").iterdir()
        rows = Unfinished(kept).rows()
        assert {row.block for row in rows} == set(range(pairs)) and not made.run.column("measure")
    made.run.others_wait.clear()
    hurried = Run(made.run.options.model_copy(update={"seconds": 1e-6}))
    with pytest.raises(TimeIsOver):
        measure.work(hurried, (change,))
    hurried.close()
    rows = Unfinished(kept).rows()
    assert {row.block for row in rows} == set(range(8)), "one pair more, and it shows no gain yet"
    monkeypatch.undo()
    monkeypatch.setattr(stages, "ASIDE_SECONDS", 0.0)
    monkeypatch.setattr(stages, "shows_gain", lambda *_: True)
    made.run.others_wait.set()
    made.next_run("measure")
    stored = made.run.rows_of(Timing, "measure", change)
    assert stored[: len(rows)] == rows and len({(row.session, row.block) for row in stored}) >= 6
    assert not kept.exists()


DISTINCT = """\
    def distinct(values):
        found = []
        for value in values:
            if value not in found:
                found.append(value)
        return found
"""
FASTER_IF_MANY = DISTINCT.replace(
    "found = []", "if len(values) > 100:\n            return list(dict.fromkeys(values))\n        found = []"
)
OF_FEW = """\
    from work import distinct
    def test_distinct():
        values = list(range(40))
        assert distinct(values) == values
"""
AS_FAST = DISTINCT.replace("found", "kept")
ALL = [stage.name for stage in STAGES if stage.name != "count"]


def with_time(made: Repository, **settings: Any) -> Run:
    """The next run, which is given time."""
    made.run.close()
    return Run(made.run.options.model_copy(update={"seconds": 600.0, **settings}))


@pytest.mark.slow
@pytest.mark.parametrize(("after", "reason"), [(FASTER_IF_MANY, None), (AS_FAST, Reason.NO_GAIN)])
def test_where_unit_tests_show_no_gain_a_run_with_time_asks_other_sources_once(
    tmp_path: Path, after: str, reason: Reason | None
) -> None:
    made = Repository(tmp_path, before=DISTINCT, after=after, tests=OF_FEW)
    run_stages(made.run, ALL)
    store, name = made.run.store, made.run.name
    (task,) = newest_tasks(store, name)
    assert task.reason in again.WITHOUT_GAIN, (
        "by the unit test alone; one comparison more can be seen on a quiet machine"
    )
    assert not list(store.records(Renewal, name)) and not Watermark(with_time(made), ALL).reached()
    made.run = with_time(made)
    run_stages(made.run, ALL)
    (task,) = newest_tasks(store, name)
    assert task.reason == reason
    kept = {row.source for row in store.records(Workload, name) if row.status == "kept"}
    assert kept == {"unit-test", "replay"}
    assert {(row.stage, row.wished_by) for row in store.records(Renewal, name)} == {
        ("generate", again.GAINLESS),
        ("measure", again.GAINLESS),
    }
    if reason is None:
        assert task.speedup > 1.2 and {one.source for one in task.workloads} == {"replay"}
    asked, tables = [list(store.records(model, name)) for model in (Renewal, Workload)], store.state(name)
    made.run = with_time(made)
    open_still = rows_of_run.undecided(made.run)
    run_stages(made.run, ALL)
    assert [list(store.records(model, name)) for model in (Renewal, Workload)] == asked
    assert open_still or store.state(name) == tables, "only what was undecided is measured again"


@pytest.mark.slow
def test_where_other_sources_have_nothing_it_is_known_that_they_were_asked(tmp_path: Path) -> None:
    made = Repository(tmp_path, before=DISTINCT, after=AS_FAST, tests=OF_FEW)
    made.run = with_time(made, settings=Settings(generate=GenerateSettings(then="asv"), measure=SHORT))
    run_stages(made.run, ALL)
    assert [row.wished_by for row in made.run.store.records(Renewal, made.run.name)] == [again.GAINLESS]
    assert made.todo("generate") == made.todo("measure") == 0
    assert {row.source for row in made.run.store.records(Workload, made.run.name)} == {"unit-test"}
