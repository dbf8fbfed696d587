"""Predictions, scores and reports of models, from grades made up here; `system/test_evaluate.py` grades for real."""

from __future__ import annotations

import html
import io
import json
import math
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from perfquarry.curation.evaluation.evaluating import scored
from perfquarry.curation.evaluation.known import half_of
from perfquarry.curation.evaluation.metrics import at_k, best_known, duels, orders, passes, scores
from perfquarry.curation.evaluation.outcomes import THRESHOLD, compared, graded, ungraded
from perfquarry.curation.evaluation.peers import gso_verdict, sweperf_gain
from perfquarry.curation.evaluation.predictions import Prediction, read_predictions
from perfquarry.curation.evaluation.report import merged, report_of, shown_duels, write_report
from perfquarry.data.errors import InputError
from perfquarry.data.output import show
from perfquarry.data.records import MEANING, Grade, Reason, Task
from tests.review_home import MACHINE, PATCH, STAMP, task_of

TASKS = [task_of(number, 2.0) for number in range(4)]
EXPERTS = {task.task_id: 2.0 for task in TASKS}


def row(task: Task = TASKS[0], model: str = "m", attempt: int = 1, **fields: Any) -> Grade:
    """A rewarded grade, as fast as the expert, but for `fields`."""
    whole: dict[str, Any] = {
        **STAMP.fields(),
        "dataset": "d",
        "task_id": task.task_id,
        "model": model,
        "attempt": attempt,
        "patch": "",
        "patch_id": f"{model}-{attempt}",
        "applied": True,
        "correct": True,
        "against_expert": "equal",
        "speedup": 2.0,
        "of_expert": 1.0,
        "of_expert_low": 0.97,
        "of_expert_high": 1.03,
        "delta": 0.5,
    }
    return Grade(**(whole | fields))


def failing(reason: Reason = Reason.TESTS_FAIL, **fields: Any) -> Grade:
    """A grade without reward."""
    wrong = reason in (Reason.TESTS_FAIL, Reason.WRONG_RESULT)
    figures = {"speedup": None, "of_expert": None, "delta": 0.0, "correct": False} if wrong else {}
    return row(**({"status": "rejected", "reason": reason, "against_expert": "worse"} | figures | fields))


@pytest.mark.parametrize("form", ["lines", "list", "object", "texts"])
def test_predictions_are_read_as_peers_write_them(tmp_path: Path, form: str) -> None:
    mine = [
        {"instance_id": task.task_id, "model_name_or_path": "m", "model_patch": f"patch {number}", "cost": 1}
        for number, task in enumerate(TASKS)
    ]
    strange = {"instance_id": "of_another__dataset-1", "model_name_or_path": "m", "model_patch": "x"}
    path = tmp_path / ("preds.jsonl" if form == "lines" else "m.json")
    path.write_text(
        {
            "lines": "\n".join(json.dumps(one) for one in [*mine, strange]) + "\n\n",
            "list": json.dumps([*mine, strange]),
            "object": json.dumps({one["instance_id"]: one for one in mine}),
            "texts": json.dumps({one["instance_id"]: one["model_patch"] for one in mine}),
        }[form]
    )
    found = read_predictions([str(path)], TASKS)
    assert [(one.task_id, one.model, one.attempt, one.patch) for one in found] == [
        (task.task_id, "m", 1, f"patch {number}") for number, task in enumerate(TASKS)
    ]


def test_several_files_are_attempts_and_two_models_are_known(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text(json.dumps({"instance_id": TASKS[0].task_id, "model_name_or_path": "m", "model_patch": None}))
    found = read_predictions([str(path), str(path), "expert", "nop"], TASKS[:1])
    assert [(one.model, one.attempt, one.patch) for one in found] == [
        ("m", 1, ""),
        ("m", 2, ""),
        ("expert", 1, TASKS[0].patch),
        ("nop", 1, ""),
    ]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("none.jsonl", None, "cannot read predictions"),
        ("a.jsonl", "{", "a.jsonl, line 1: no JSON"),
        ("a.jsonl", '{"instance_id": "x"}', "line 1: model_patch: Field required"),
        ("a.jsonl", '{"instance_id": "x", "model_patch": 3}', "line 1: model_patch: Input should be a valid string"),
        ("a.jsonl", "[1]", "line 1"),
        ("a.json", "3", "neither a list of predictions nor an object"),
        ("a.json", "{]", "is no JSON"),
        ("a.json", '{"x": 3}', "entry 'x'"),
        ("a.jsonl", '{"instance_id": "x", "model_patch": ""}', "no prediction is for a task of the dataset"),
        ("a.jsonl", "", "no prediction is for a task of the dataset"),
        ("a.jsonl", b"\xff\xfe", "cannot read predictions"),
    ],
)
def test_bad_predictions_are_named_by_place(tmp_path: Path, name: str, text: str | bytes | None, said: str) -> None:
    if text is not None:
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=said):
        read_predictions([str(tmp_path / name)], TASKS)


def test_the_rules_of_gso_and_sweperf_are_theirs() -> None:
    """The figures are what the projects' public code says of these samples (benchmarks/agreement.py runs it)."""
    cases = json.loads((Path(__file__).parent / "peers_metrics.json").read_text())
    assert {one["opt_commit"] for one in cases} == {one["opt_base"] for one in cases} == {True, False}
    for one in cases:
        said = gso_verdict(one["base"], one["patch"], one["commit"])
        assert (said.opt_base, said.opt_commit) == (one["opt_base"], one["opt_commit"])
        assert said.geometric_over_base == pytest.approx(one["gm"], abs=1e-9)
        assert said.harmonic_over_expert == pytest.approx(one["hm"], abs=1e-9)
        assert sweperf_gain(one["base"], one["patch"]) == pytest.approx(one["gain"], abs=1e-9)


@given(st.integers(1, 7), st.data())
def test_opt_at_k_is_the_share_of_all_choices_of_k_attempts(n: int, data: st.DataObject) -> None:
    good, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    choices = list(combinations(range(n), k))
    share = sum(any(one < good for one in choice) for choice in choices) / len(choices)
    assert math.isclose(at_k(n, good, k), share)


def test_more_attempts_than_there_are_cannot_be_asked_for() -> None:
    with pytest.raises(ValueError, match="2 attempts say nothing of 3"):
        at_k(2, 1, 3)


def test_tiers_opt_and_ratios_of_a_model() -> None:
    rows = [
        row(TASKS[0]),
        row(TASKS[0], attempt=2, of_expert=2.0, speedup=4.0, delta=0.7),
        failing(task=TASKS[1]),
        failing(Reason.BELOW_EXPERT, task=TASKS[1], attempt=2, of_expert=0.75, speedup=1.5, delta=0.3),
        failing(Reason.NOT_APPLIED, task=TASKS[2], applied=False, correct=False, of_expert=None, speedup=None, delta=0),
    ]
    (score,) = scores(rows, EXPERTS)
    assert (score.tasks, score.graded, score.attempts, score.k) == (4, 3, 5, 2)
    assert score.apply.value == pytest.approx((1 + 1 + 0 + 0) / 4), "no prediction is one that does not apply"
    assert score.correctness.value == pytest.approx((1 + 0.5 + 0 + 0) / 4)
    assert score.performance.value == pytest.approx((0.6 + 0.15 + 0 + 0) / 4)
    assert [score.opt[k].value for k in (1, 2)] == pytest.approx([1 / 4, 1 / 4])
    assert score.opt_curve[0.0] == pytest.approx((1 + 0.5) / 4) and score.opt_curve[0.75] == pytest.approx(1.5 / 4)
    inverse = [np.mean([1.0, 0.5]), np.mean([2.0, 1 / 0.75]), 2.0, 2.0]
    assert score.of_expert.value == pytest.approx(1 / np.mean(inverse)), "not correct: as fast as the base"
    assert score.geometric.value == pytest.approx(np.exp(np.mean(np.log(1 / np.asarray(inverse)))))
    assert score.worst_weight == 1.0, "there are fewer than ten tasks"
    assert score.speedup == pytest.approx(1 / np.mean([np.mean([0.5, 0.25]), np.mean([1, 1 / 1.5]), 1, 1]))


@pytest.mark.parametrize(("tasks", "low"), [(1, 0.025), (3, 0.292), (4, 0.398)])
def test_tasks_that_agree_say_how_few_they_are(tasks: int, low: float) -> None:
    experts = {task.task_id: 2.0 for task in TASKS[:tasks]}
    (good,) = scores([row(task) for task in TASKS[:tasks]], experts)
    (bad,) = scores([failing(task=task) for task in TASKS[:tasks]], experts)
    assert (good.opt[1].value, good.opt[1].high) == (1.0, 1.0) and (bad.opt[1].value, bad.opt[1].low) == (0.0, 0.0)
    assert good.opt[1].low == pytest.approx(low, abs=1e-3) and bad.opt[1].high == pytest.approx(1 - low, abs=1e-3)


def test_one_task_gives_a_ratio_no_interval() -> None:
    (score,) = scores([row(TASKS[0])], {TASKS[0].task_id: 2.0})
    assert (score.of_expert.low, score.of_expert.high, score.geometric.low) == (None, None, None)


def test_missing_attempts_of_k_are_failures() -> None:
    rows = [row(TASKS[0], attempt=number) for number in (1, 2)] + [row(TASKS[1])]
    (score,) = scores(rows, {task.task_id: 2.0 for task in TASKS[:2]})
    assert score.opt[1].value == pytest.approx((1 + 0.5) / 2) and score.opt[2].value == 1.0


def test_a_fault_of_the_machine_is_nobodys_failure() -> None:
    lost = ungraded(TASKS[1], Prediction(task_id=TASKS[1].task_id, model="m", attempt=1, patch="p"), "d", STAMP,
                    Reason.NOT_GRADED, "no core")  # fmt: skip
    assert lost.correct is None and lost.against_expert == "undecided"
    (score,) = scores([row(TASKS[0]), lost], {task.task_id: 2.0 for task in TASKS[:2]})
    assert (score.tasks, score.not_graded, score.opt[1].value) == (1, 1, 1.0)


@pytest.mark.parametrize(
    ("grade", "at_zero", "at_half", "at_95"),
    [
        (row(), True, True, True),
        (failing(), False, False, False),
        (failing(Reason.BELOW_EXPERT, of_expert=0.7), True, True, False),
        (failing(Reason.BELOW_EXPERT, of_expert=0.9, of_expert_hidden=0.4), True, False, False),
        (failing(Reason.NOT_FASTER, of_expert=0.6), True, False, False),
        (failing(Reason.CONTRADICTED, of_expert=5.0), True, False, False),
        (failing(Reason.LATER_CALLS_ONLY, of_expert=5.0), True, False, False),
    ],
)
def test_what_passes_at_p(grade: Grade, at_zero: bool, at_half: bool, at_95: bool) -> None:
    assert (passes(grade, 0), passes(grade, 0.5), passes(grade, THRESHOLD)) == (at_zero, at_half, at_95)


def test_a_contradicted_speedup_counts_as_none() -> None:
    (score,) = scores([failing(Reason.CONTRADICTED, of_expert=50.0, speedup=100.0)], {TASKS[0].task_id: 2.0})
    assert (score.speedup, score.of_expert.value) == (1.0, 0.5)


@pytest.mark.parametrize(
    ("reason", "low", "high", "said"),
    [
        (None, 1.01, 1.2, "better"),
        (None, 0.96, 1.2, "equal"),
        (Reason.BELOW_EXPERT, 0.5, 0.9, "worse"),
        (None, 0.9, 1.1, "undecided"),
        (Reason.WRONG_RESULT, None, None, "worse"),
        (Reason.CONTRADICTED, 2.0, 3.0, "worse"),
    ],
)
def test_against_the_expert(reason: Reason | None, low: float | None, high: float | None, said: str) -> None:
    assert compared(reason, low, high) == said


def test_models_are_paired_by_task() -> None:
    tasks = [task_of(number, 2.0) for number in range(12)]
    experts = {task.task_id: 2.0 for task in tasks}
    good = [row(task, "good", of_expert=1.1) for task in tasks]
    bad = [failing(task=task, model="bad") for task in tasks]
    same = [one.model_copy(update={"model": "same"}) for one in good]
    first, second, third = duels([*good, *bad, *same], experts)
    assert (first.first, first.second, first.opt, first.faster) == ("bad", "good", -1.0, 0.0)
    assert first.p_value <= first.q_value < 0.01
    assert (second.first, second.second) == ("bad", "same")
    assert (third.opt, third.p_value, third.faster) == (0.0, 1.0, 0.5)


def test_of_many_models_those_beside_the_best_are_compared_on_the_page() -> None:
    rows = [row(task, f"m{number}") for task in TASKS for number in range(9)]
    few, many = (report_of(rows[:count], TASKS, {}, "d", "p") for count in (4, len(rows)))
    assert shown_duels(few) == few.duels and len(few.duels) == 6 and len(many.duels) == 36
    shown = shown_duels(many)
    assert len(shown) == 6 and all(many.scores[0].model in (one.first, one.second) for one in shown)


def test_the_best_known_is_better_than_the_expert_for_certain() -> None:
    better = row(model="a", against_expert="better", of_expert_low=1.1)
    best = row(model="b", against_expert="better", of_expert_low=1.3)
    noisy = row(model="c", against_expert="better", of_expert_low=2.0, noisy=True)
    equal = row(TASKS[1], "d")
    assert best_known([better, best, noisy, equal]) == {TASKS[0].task_id: best}


TWO = PATCH + PATCH.replace("pkg/words.py", "pkg/other.py")


def test_half_of_a_patch_is_every_other_hunk() -> None:
    assert half_of(PATCH) == "" == half_of("no patch"), "one hunk has no half"
    assert half_of(TWO) == PATCH.partition("\n")[2]
    assert half_of(TWO.replace("pkg/other.py", "docs/other.rst")) == "", "docs are no half of a change"
    found = read_predictions(["half", "nop"], [TASKS[0], TASKS[1].model_copy(update={"patch": TWO})])
    assert [(one.task_id, one.model) for one in found if one.patch] == [(TASKS[1].task_id, "half")]


@pytest.mark.parametrize(
    ("half", "said"),
    [
        (None, "nop < expert"),
        (failing(model="half"), "nop < expert"),
        (failing(Reason.BELOW_EXPERT, model="half", speedup=1.4, low=1.3, of_expert=0.7), "nop < half <= expert"),
        (failing(Reason.NOT_FASTER, model="half", speedup=1.0, low=0.9, of_expert=0.5), "nop = half < expert"),
        (row(model="half"), "! half of the expert's patch has the reward"),
        (row(model="half", of_expert_low=1.1), "! half of the expert's patch is faster"),
    ],
)
def test_a_task_tells_solutions_apart(half: Grade | None, said: str) -> None:
    nop = failing(Reason.EMPTY_PATCH, model="nop", applied=False, correct=False, speedup=None, of_expert=None)
    (order,) = orders([row(model="expert"), nop, *([half] if half else [])]).values()
    assert order.startswith(said)
    (order,) = orders([failing(model="expert"), nop]).values()
    assert order == "! the expert's patch has no reward: tests_fail"


def test_a_grade_is_what_the_grader_says() -> None:
    task, prediction = TASKS[0], Prediction(task_id=TASKS[0].task_id, model="m", attempt=1, patch="p")
    node = task.workloads[0].node
    side = {"base": 0.02, "gold": 0.01, "cand": 0.005}
    pairs = [{"workloads": {node: {role: {"seconds": one * (1 + 0.001 * number)} for role, one in side.items()}}}
             for number in range(8)]  # fmt: skip
    facts = {
        "reward": 1, "code": "rewarded", "why": "fast", "workloads": {node: {"clock": "outside", "data": "drawn"}},
        "candidate": {"low": 3.9, "ratio": 4.0, "high": 4.1}, "expert": {"low": 1.9, "ratio": 2.0, "high": 2.1},
        "of_expert": {"low": 1.9, "ratio": 2.0, "high": 2.1}, "pair_values": pairs, "seconds": 9.0,
        "reasons_to_look": {"a.py": ["exec"]}, "left_out": {"conftest.py": "tests stay"},
    }  # fmt: skip
    alone = task.model_copy(update={"workloads": task.workloads[:1]})
    grade = graded(alone, prediction, "d", STAMP, facts, MACHINE)
    assert (grade.status, grade.reason, grade.against_expert, grade.correct) == ("kept", None, "better", True)
    assert (grade.speedup, grade.expert_speedup, grade.of_expert_low) == (4.0, 2.0, 1.9)
    assert grade.delta == pytest.approx(0.75, abs=0.01) and grade.expert_delta == pytest.approx(0.5, abs=0.01)
    assert grade.reasons_to_look == ["a.py: exec"] and grade.left_out == ["conftest.py: tests stay"]
    wrong = {"reward": 0, "code": "wrong_result", "why": "other", "workloads": {}, "seconds": 1.0}
    grade = graded(alone, prediction, "d", STAMP, wrong, MACHINE)
    assert (grade.status, grade.reason, grade.correct, grade.delta) == ("rejected", "wrong_result", False, 0.0)


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """`written(name, rows)` writes a report's folder."""

    def write(name: str, rows: list[Grade], dataset: str = "d", protocol: str = "p") -> Path:
        folder = tmp_path / name
        folder.mkdir()
        write_report(report_of(rows, TASKS, {}, dataset, protocol), rows, folder)
        return folder

    return write


def test_reports_are_merged(written: Callable[..., Path]) -> None:
    one, other = written("one", [row(model="a")]), written("other", [failing(model="b"), row(model="a")])
    report, rows = merged([one, other])
    assert [score.model for score in report.scores] == ["a", "b"] and len(rows) == 2 and len(report.duels) == 1


def test_the_same_tasks_in_another_folder_are_the_same_dataset(written: Callable[..., Path]) -> None:
    one = written("one", [row(model="a")], dataset="demo@5eccd5c8a97d25b1")
    report, _ = merged([one, written("other", [row(model="b")], dataset="release@5eccd5c8a97d25b1")])
    assert [score.model for score in report.scores] == ["a", "b"]
    with pytest.raises(InputError, match="another dataset"):
        merged([one, written("more", [row(model="b")], dataset="demo@577cc1aa00aa00aa")])


def test_models_without_a_common_task_and_without_a_grade_can_be_read_back(written: Callable[..., Path]) -> None:
    lost = failing(Reason.NOT_GRADED, model="c", correct=None)
    one, other = written("one", [row(model="a")]), written("other", [row(TASKS[1], "b"), lost])
    report, rows = merged([one, other])
    assert [score.model for score in report.scores] == ["a", "b"] and not report.duels and len(rows) == 3


@pytest.mark.parametrize(("name", "other"), [("dataset", {"dataset": "e"}), ("protocol", {"protocol": "q"})])
def test_reports_that_cannot_be_compared_refuse(written: Callable[..., Path], name: str, other: dict[str, str]) -> None:
    with pytest.raises(InputError, match=f"other has another {name}"):
        merged([written("one", [row()]), written("other", [row(model="b")], **other)])


def test_two_models_of_one_name_refuse(written: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give the models different names"):
        merged([written("one", [row()]), written("other", [row(patch_id="x")])])
    with pytest.raises(InputError, match="holds no report"):
        merged([tmp_path / "none"])


def test_the_page_escapes_what_models_write(written: Callable[..., Path]) -> None:
    evil = "<script>alert(1)</script>\u202e"
    rows = [row(model=evil, patch=evil, why=evil, reasons_to_look=[evil]), failing(model="b", why=evil)]
    page = (written("one", rows) / "report.html").read_text()
    assert "<script" not in page and "\u202e" not in page and "&lt;script&gt;" in page and "U+202E" in page
    assert html.escape(MEANING[Reason.TESTS_FAIL]).replace("&#x27;", "&#39;") in page


def test_the_terminal_obeys_no_model() -> None:
    rows = [row(task, f"\x1b[2Jmo[b]del{number}") for task in TASKS for number in range(2)]
    console = Console(file=io.StringIO(), width=160)
    show(*scored(report_of(rows, TASKS, {}, "d", "p"), None).parts, console=console)
    said = console.file.getvalue()
    assert "\x1b" not in said and "U+001B" in said and "mo[b]del1" in said
