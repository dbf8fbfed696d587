"""Changes that were sent back: what is to do again, which rows count, and the flows themselves."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from perfquarry.curation import rows_of_run
from perfquarry.curation.review.send_back import SendBackRunner
from perfquarry.data.records import Renewal, Row, Timing, Workload
from perfquarry.data.store import TableStore
from perfquarry.flows.options import Options
from perfquarry.flows.run import Run
from tests.review_home import task_of, timings_of
from tests.system.commands import command

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(Options(repo="demo", home=str(tmp_path), jobs=1))


def put(run: Run, stage: str, rows: list[Row], hours: int) -> None:
    stamp = {**run.stamp(stage).fields(), "created_at": NOON + hours * HOUR}
    run.store.append([row.model_copy(update=stamp) for row in rows])


def wish(run: Run, stage: str, change: str, hours: int) -> None:
    common = {**run.stamp(stage).fields(), "created_at": NOON + hours * HOUR}
    run.store.append([Renewal(**common, change_id=change, stage=stage, wished_by=f"event {hours}")])


def test_a_wish_makes_a_stage_do_its_change_once_more(run: Run) -> None:
    first, second = task_of(1, 2.0), task_of(2, 2.0)
    put(run, "measure", timings_of(first) + timings_of(second), 0)
    assert rows_of_run.done(run, "measure") == {first.change_id, second.change_id}
    before = rows_of_run.family(run, [first.change_id, second.change_id])
    wish(run, "measure", first.change_id, 1)
    assert rows_of_run.done(run, "measure") == {second.change_id}
    assert rows_of_run.family(run, [first.change_id, second.change_id]) == before
    assert len(rows_of_run.timings_in_force(run)) == len(timings_of(first)) * 2
    newer = [row.model_copy(update={"block": row.block + 100}) for row in timings_of(first, seed=1)]
    put(run, "measure", newer, 2)
    assert rows_of_run.done(run, "measure") == {first.change_id, second.change_id}
    assert rows_of_run.family(run, [first.change_id, second.change_id]) != before
    in_force = [row for row in rows_of_run.timings_in_force(run) if row.change_id == first.change_id]
    assert {row.block for row in in_force} == {row.block for row in newer}
    wish(run, "measure", first.change_id, 3)
    assert rows_of_run.done(run, "measure") == {second.change_id}


def test_timings_of_workloads_that_were_rejected_since_do_not_count(run: Run) -> None:
    task = task_of(1, 2.0)
    [one] = task.workloads
    row = Workload(
        **run.stamp("generate").fields(),
        workload_id=one.workload_id,
        change_id=task.change_id,
        source="unit-test",
        code=one.code,
    )
    put(run, "generate", [row], 0)
    put(run, "measure", timings_of(task), 0)
    wish(run, "generate", task.change_id, 1)
    assert rows_of_run.done(run, "generate") == set() and rows_of_run.timings_in_force(run)
    put(run, "generate", [row.model_copy(update={"status": "rejected", "reason": "flaky"})], 2)
    assert rows_of_run.done(run, "generate") == {task.change_id} and not rows_of_run.timings_in_force(run)


def test_a_task_of_other_settings_is_not_sent_back(run: Run) -> None:
    runner = SendBackRunner(run.home, 1, lambda name: run, [], [], {})
    with pytest.raises(ValueError, match="other settings"):
        runner.run(task_of(1, 2.0, repo="demo"), "measure-again", "event", print)
    assert not list(run.store.records(Renewal, "demo"))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_sending_back_starts_the_flows(tmp_path: Path, quick: Path, perfquarry: Callable[..., Any]) -> None:
    settings = ["--settings", str(quick)]
    perfquarry(tmp_path, "curate", "demo", "--changes", "23b2933d37", "--no-server", *settings)
    store = TableStore(tmp_path / "tables")
    workloads, timings = store.count(Workload, "demo"), store.count(Timing, "demo")
    assert timings
    arguments = command(tmp_path, "review", "--near", "--port", "0", "--json", *settings)
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        try:
            address = json.loads(server.stdout.readline())["address"]
            with httpx.Client(base_url=address, trust_env=False, timeout=60, follow_redirects=True) as client:
                outcome = sent_back(client, "more-tests")
        finally:
            server.terminate()
    assert "workloads kept" in outcome
    assert store.count(Workload, "demo") > workloads and store.count(Timing, "demo") > timings


def sent_back(client: httpx.Client, action: str) -> str:
    """Sends the only candidate back and waits for the end; returns what the page says then."""
    [place] = set(re.findall(r'href="(/tasks/[^"?]+)', client.get("/").text))
    [csrf] = set(re.findall(r'name="csrf" value="(\w+)"', client.get(place).text))
    form = {"csrf": csrf, "seen": "0", "action": action, "note": "one workload is too few"}
    assert client.post(f"{place}/decide", data=form).status_code == 200
    while True:
        page = client.get(f"{place}/runs").text
        assert "failed" not in page, page
        if "done" in page:
            return page
        time.sleep(1)
