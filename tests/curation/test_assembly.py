"""Tasks from evidence."""

import json
from statistics import harmonic_mean

import pytest
from sample_change import BUILDS, CHANGE, NODES, REPOSITORY, VERDICT, WORKLOADS, measured
from simulated_timings import MACHINE, STAMP

from perfquarry.curation.assembly import ChangeTexts, assemble, gain_as_a_whole, most_informative
from perfquarry.curation.evidence import decide
from perfquarry.curation.settings import SelectSettings
from perfquarry.data.errors import InputError
from perfquarry.data.records import Reason, SessionStatistics, Stamp

SETTINGS = SelectSettings()
TEXTS = ChangeTexts(patch="diff --git a/pkg/old.py b/pkg/old.py\n", test_patch="diff --git a/t b/t\n", version="1.2")
NOW = Stamp(repo="sample", stage_version="9", config_hash="tasks")


def assembled(timings, change=CHANGE, verdict=VERDICT, builds=BUILDS, workloads=WORKLOADS):
    evidence = decide(timings, SETTINGS, STAMP)
    return assemble(change, verdict, builds, workloads, evidence, timings, TEXTS, REPOSITORY, SETTINGS, NOW)


def test_an_accepted_change_becomes_a_task():
    task = assembled(measured(0, 2.4, 2.0) + measured(1, 1.5, 1.25))
    assert (task.status, task.reason, task.task_id) == ("kept", None, "owner__sample-0123456789")
    assert [w.code for w in task.workloads] == NODES
    assert task.speedup == pytest.approx(harmonic_mean([2.0, 1.25]), rel=0.01)
    assert task.low < task.speedup < task.high
    assert task.delta == pytest.approx((task.workloads[0].delta + task.workloads[1].delta) / 2)
    assert task.q_value == min(w.q_value for w in task.workloads)
    assert (task.python, task.requirements) == ("3.11.7", ["pytest==8.0"])
    assert task.install_commands == ["uv pip install pytest==8.0"]
    assert task.setup_commands[-1] == f"git checkout --detach {CHANGE.base_sha}"
    assert (task.version, task.licence, task.pull_number, task.issues) == ("1.2", "MIT", 12, [3])
    assert (task.lines_changed, task.files_changed) == (8, 2)
    assert (task.stage_version, task.config_hash) == ("9", "tasks")
    assert task.detail == "2 of 2 workloads kept"


def test_apis_are_the_judges_or_else_those_the_workloads_name():
    workloads = [one.model_copy(update={"apis": ["pkg.best", "pkg.other"]}) for one in WORKLOADS]
    timings = measured(0, 2.4, 2.0)
    assert assembled(timings, workloads=workloads).apis == ["pkg.frobnicate"]
    silent = VERDICT.model_copy(update={"apis": []})
    assert assembled(timings, verdict=silent, workloads=workloads).apis == ["pkg.best", "pkg.other"]
    assert assembled(timings, verdict=silent).apis == []


def test_the_figures_of_a_workload_are_the_confirming_sessions():
    task = assembled(measured(0, 2.4, 2.0))
    (workload,) = task.workloads
    assert workload.speedup == pytest.approx(workload.base_seconds / workload.head_seconds, rel=0.01)
    assert workload.speedup == pytest.approx(2.0, rel=0.01)
    assert (task.speedup, task.low, task.high) == pytest.approx((workload.speedup, workload.low, workload.high))
    select, confirm = json.loads(task.durations)
    assert list(confirm) == NODES[:1]
    assert len(confirm[NODES[0]]["base"]) == len(confirm[NODES[0]]["head"]) == 20
    assert sorted(confirm[NODES[0]]["base"])[10] == pytest.approx(workload.base_seconds, rel=0.01)
    assert select != confirm


def test_where_the_visible_workloads_fall_a_hidden_one_is_shown_whatever_its_speedup():
    def roles(first: float, second: float, hidden) -> list[str]:
        workloads = [one.model_copy(update={"role": "hidden"}) if one in hidden else one for one in WORKLOADS]
        timings = measured(0, first, first) + measured(1, second, second)
        evidence = decide(timings, SETTINGS, STAMP)
        task = assemble(CHANGE, VERDICT, BUILDS, workloads, evidence, timings, TEXTS, REPOSITORY, SETTINGS, NOW)
        return [workload.role for workload in task.workloads]

    assert roles(2.0, 1.5, []) == ["visible", "visible"]
    assert roles(2.0, 1.5, WORKLOADS[:1]) == ["hidden", "visible"]
    assert roles(2.0, 1.0, WORKLOADS[:1]) == ["visible"]  # the visible one has no gain
    assert sorted(roles(2.0, 1.5, WORKLOADS)) == ["hidden", "visible"]
    assert roles(2.0, 1.5, WORKLOADS) == roles(1.5, 2.0, WORKLOADS)


def test_only_kept_workloads_are_part_of_a_task():
    timings = measured(0, 1.0) + measured(1, 1.5, 1.5)
    task = assembled(timings)
    assert task.measured_at == timings[-1].created_at
    assert [w.code for w in task.workloads] == NODES[1:]
    assert list(json.loads(task.durations)[-1]) == NODES[1:]
    assert task.detail == "1 of 2 workloads kept (1 no_gain)"


@pytest.mark.parametrize(("near", "kept"), [(1.02, 1), (1.04, 2)])
def test_the_overall_speedup_does_not_jump_where_a_gain_is_near_the_smallest(near, kept):
    task = assembled(measured(0, 2.7, 2.7) + measured(1, near, near))
    assert (len(task.workloads), task.timed_workloads) == (kept, 2)
    assert task.overall_speedup == pytest.approx(harmonic_mean([2.7, near]), rel=0.01)
    assert task.overall_low < task.overall_speedup < task.overall_high


def test_what_failed_is_no_part_of_the_overall_speedup():
    task = assembled(measured(0, 2.0, 2.0) + measured(1, 1.0, outcome="failed"))
    assert (task.overall_speedup, task.timed_workloads) == (task.speedup, 1)


@pytest.mark.parametrize(
    ("first", "second", "whole"),
    [(2.0, 0.8, None), (1.28, 0.67, Reason.MIXED), (1.1, 0.97, None), (1.06, 0.98, Reason.MIXED), (1.05, 1.0, None)],
)
def test_a_change_gains_as_a_whole_or_is_mixed(first, second, whole):
    """Geometric mean over the workloads that it touches; what it leaves alone takes nothing from it."""
    task = assembled(measured(0, first, first) + measured(1, second))
    assert (task.status, task.reason) == ("rejected" if whole else "kept", whole)
    assert task.timed_workloads == 2 and len(task.workloads) == 1, "what was found is reported in either case"
    if whole:
        assert "over all workloads that the change touches" in task.detail


def test_the_gain_as_a_whole_is_over_touched_workloads():
    def one(speedup: float, wide: float = 1.01) -> SessionStatistics:
        figures = {"low": speedup / wide, "high": speedup * wide, "delta": 0.0, "p_value": 0.0}
        return SessionStatistics(
            session=2, n_base=8, n_head=8, base_median=1.0, head_median=1.0, speedup=speedup, **figures
        )

    assert gain_as_a_whole([one(2.0), one(0.5)]) == pytest.approx(1.0)
    assert gain_as_a_whole([one(2.0), one(1.0), one(1.1, wide=1.2)]) == pytest.approx(2.0)
    assert gain_as_a_whole([one(1.21), one(1.0, wide=3.0), one(1.0)]) == pytest.approx(1.21)
    assert gain_as_a_whole([]) == gain_as_a_whole([one(1.0)]) == 1.0


def test_targets_leave_out_tests_added_functions_and_the_module():
    task = assembled(measured(0, 1.5, 1.5))
    assert task.oracle_targets == ["pkg/old.py::Frob.run"]
    assert task.realistic_targets == ["pkg/old.py::frobnicate", "pkg/old.py::test_frob"]
    module_only = VERDICT.model_copy(update={"functions": VERDICT.functions[:1]})
    task = assembled(measured(0, 1.5, 1.5), verdict=module_only)
    assert task.oracle_targets == ["pkg/old.py::<module>"]
    assert "the top level of `pkg/old.py`" in task.problem_oracle


def test_the_problems_name_the_targets_and_reveal_nothing_of_the_fix():
    task = assembled(measured(0, 1.5, 1.5))
    assert "`Frob.run` in `pkg/old.py`" in task.problem_oracle
    assert "`frobnicate` in `pkg/old.py`" in task.problem_realistic
    assert "Frob.run" not in task.problem_realistic
    for text in (task.problem_oracle, task.problem_realistic):
        for leak in ("emoi", "memo", "dictionary", "new.py", CHANGE.head_sha[:7], "diff --git"):
            assert leak not in text


@pytest.mark.parametrize(
    ("timings", "reason"),
    [
        (measured(0, 1.5, 1.0) + measured(1, 1.0), Reason.NOT_CONFIRMED),
        (measured(0, 0.7) + measured(1, 1.0), Reason.SLOWER),
        (measured(0, 1.5, 1.5, noise=0.5, blocks=7) + measured(1, 1.0), Reason.UNDECIDED),
        (measured(0, 1.0) + measured(1, 1.0), Reason.NO_GAIN),
        (measured(0, 1.0, outcome="failed") + measured(1, 1.0), Reason.NO_GAIN),
        (measured(0, 1.0, outcome="failed"), Reason.WORKLOAD_FAILED),
        (measured(0, 1.0, cold_speedup=2.0) + measured(1, 0.7), Reason.COLD_ONLY),
    ],
)
def test_a_change_without_kept_workloads_says_why(timings, reason):
    task = assembled(timings)
    assert (task.status, task.reason) == ("rejected", reason)
    assert task.workloads == []
    assert task.speedup is None
    assert task.detail.startswith("0 of ")
    assert task.problem_oracle


def test_every_reason_of_the_stage_has_its_place():
    reasons = list(Reason)
    stage = reasons[reasons.index(Reason.WORKLOAD_FAILED) : reasons.index(Reason.MIXED)]  # mixed is of changes
    assert [most_informative([reason]) for reason in stage] == stage
    assert most_informative([Reason.NO_GAIN, Reason.UNSTABLE, Reason.SLOWER]) == Reason.UNSTABLE


def test_workloads_of_another_machine_stay_out():
    other = MACHINE.model_copy(update={"machine_id": "m2"})
    task = assembled(measured(0, 1.5, 1.5) + measured(1, 3.0, 3.0, machine=other))
    assert len({w.workload_id for w in task.workloads}) == 1
    assert task.machine_id in {"m1", "m2"}


def test_a_change_that_was_not_measured_is_no_rejection():
    with pytest.raises(InputError, match="measure it first"):
        assembled([])
