"""Which rows count for a run: of its own settings, whatever runs with other settings did later."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.console import Console

from perfquarry.curation import rows_of_run
from perfquarry.curation.in_force import accepted_tasks, funnel_in_force
from perfquarry.data.funnel import funnel
from perfquarry.data.logs import log_to
from perfquarry.data.records import Build, Change, Row, Task, Verdict, Workload
from perfquarry.flows.options import Options
from perfquarry.flows.run import Run
from perfquarry.flows.runner import attempt
from perfquarry.flows.settings import Settings
from perfquarry.flows.stages import STAGES, Batch, Stage
from perfquarry.harness.settings import MeasureSettings
from perfquarry.miners.settings import MineSettings
from tests.review_home import STAMP, task_of, timings_of

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def run_with(home: Path, pairs: int) -> Run:
    """A run whose settings differ from others' by how many pairs they measure."""
    settings = Settings(measure=MeasureSettings(pairs=pairs))
    return Run(Options(repo="demo", home=str(home), jobs=1, settings=settings))


def put(run: Run, stage: str, rows: Iterable[Row], hours: float, **fields: str) -> None:
    stamp = {**run.stamp(stage).fields(), "created_at": NOON + timedelta(hours=hours), **fields}
    run.store.append([row.model_copy(update=stamp) for row in rows])


def work(run: Run, tasks: Sequence[Task], hours: float) -> None:
    """What the stages before the decision write of these tasks."""
    for task in tasks:
        common = {**STAMP.fields(), "change_id": task.change_id, "status": "kept"}
        shas = {"base_sha": task.base_sha, "head_sha": task.head_sha}
        put(
            run,
            "mine",
            [
                Change(
                    **common, **shas, kind="commit", authored_at=NOON, merged_at=NOON, title="t", message="m", patch=""
                )
            ],
            hours,
        )
        put(run, "judge", [Verdict(**common, judge="j", is_performance="yes", probability=0.9, why="w")], hours)
        put(run, "build", [Build(**common, build_id=s, side=s, sha="0" * 40) for s in ("base", "head")], hours)
        put(run, "generate", [Workload(**common, workload_id=task.task_id, source="unit-test", code="c")], hours)
        put(run, "measure", timings_of(task), hours)


def decide(run: Run, tasks: Sequence[Task], hours: float) -> None:
    family = rows_of_run.family(run, sorted(task.change_id for task in tasks))
    put(run, "select", tasks, hours, config_hash=family)


def selected(run: Run) -> tuple[int, dict[str, int], int]:
    stage = {one.stage: one for one in funnel(run.store, run.name, rows_of_run.provenance(run)).stages}["select"]
    return stage.kept, stage.rejected, stage.pending


def test_a_later_run_with_other_settings_does_not_decide_for_this_one(tmp_path: Path) -> None:
    first, other = run_with(tmp_path, 20), run_with(tmp_path, 40)
    tasks = [task_of(1, 2.0), task_of(2, 3.0)]
    lost = [task.model_copy(update={"status": "rejected", "reason": "no_gain"}) for task in tasks]
    work(first, tasks, 0)
    decide(first, tasks, 0)
    work(other, tasks, 1)
    decide(other, lost, 1)
    assert selected(other) == (0, {"no_gain": 2}, 0)
    assert selected(first) == (2, {}, 0)


def test_a_stage_tried_with_other_settings_does_not_hide_what_was_decided(tmp_path: Path) -> None:
    """`mine` with a policy for pull requests, say: the list of tasks and the funnel still say the same."""
    first = run_with(tmp_path, 20)
    tasks = [task_of(1, 2.0), task_of(2, 3.0)]
    work(first, tasks, 0)
    settings = Settings(mine=MineSettings(patch_limit=10))
    other = Run(Options(repo="demo", home=str(tmp_path), jobs=1, settings=settings))
    mined = list(first.store.records(Change, "demo"))
    refused = {"status": "rejected", "reason": "no_pull_request"}
    put(other, "mine", [row.model_copy(update=refused) for row in mined], 1)
    decide(first, tasks, 2)  # the first run went on
    assert len(accepted_tasks(first.store, "demo")) == 2
    assert [one.kept for one in funnel_in_force(first.store, "demo").stages] == [2] * 6
    assert next(one.kept for one in funnel(first.store, "demo").stages) == 0, "what the newest rows alone say"


def test_a_decision_on_fewer_changes_counts_until_that_on_all_is_made(tmp_path: Path) -> None:
    first, other = run_with(tmp_path, 20), run_with(tmp_path, 40)
    tasks = [task_of(1, 2.0), task_of(2, 3.0)]
    work(first, tasks[:1], 0)
    decide(first, tasks[:1], 0)
    before = rows_of_run.decision(first)
    work(other, tasks, 1)
    decide(other, tasks, 1)
    work(first, tasks[1:], 2)
    assert rows_of_run.decision(first) == before and selected(first) == (1, {}, 1)
    decide(first, tasks, 3)
    assert rows_of_run.decision(first) != before and selected(first) == (2, {}, 0)


def test_without_a_decision_all_is_pending(tmp_path: Path) -> None:
    run = run_with(tmp_path, 20)
    work(run, [task_of(1, 2.0)], 0)
    assert rows_of_run.decision(run) is None and selected(run) == (0, {}, 1)


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_a_log_names_what_a_key_is(stage: Stage, tmp_path: Path) -> None:
    run = run_with(tmp_path, 20)
    path = log_to(tmp_path / "logs", Console(quiet=True), "run", "demo")
    logger = logging.getLogger("perfquarry")

    def work_of(_: Run, batch: Batch) -> None:
        logging.getLogger("perfquarry.flows").info("worked")

    try:
        logged = Stage(stage.name, lambda _: [], work_of, keys=stage.keys, counts_rows=True)
        assert attempt(run, logged, ("one",), 0.0).failure is None
    finally:
        for handler in logger.handlers:
            handler.close()
        logger.handlers.clear()
        logger.propagate = True
        run.close()
    lines = [json.loads(line) for line in path.with_suffix(".jsonl").read_text().splitlines()]
    about = next(line for line in lines if line["message"] == "worked")
    named = {"change"} if stage.name in ("judge", "build", "generate", "measure") else set()
    named |= {"task"} if stage.name == "count" else set()
    assert {name for name in ("change", "task") if name in about} == named
