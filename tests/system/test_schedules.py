"""Nightly deployments: the file, the commands, and a run by a worker."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from webhook import Webhook, serving

from perfquarry.data.home import Home
from perfquarry.data.registry import names
from perfquarry.flows.deployments import nightlies
from perfquarry.flows.server import address
from tests.system.commands import command

TREE = Path(__file__).parents[2]
Program = Callable[..., Any]


def test_prefect_yaml_is_that_of_the_registry(perfquarry: Program) -> None:
    text = (TREE / "prefect.yaml").read_text()
    assert perfquarry(None, "schedule", "yaml").stdout == text, "run: perfquarry schedule yaml > prefect.yaml"
    deployments = yaml.safe_load(text)["deployments"]
    assert [one["name"] for one in deployments] == names()
    assert all(f"repo:{one['name']}" in one["tags"] for one in deployments)
    assert {one["concurrency_limit"]["limit"] for one in deployments} == {1}


def test_starts_are_spread_over_the_night() -> None:
    starts = []
    for one in nightlies():
        match = re.fullmatch(r"(\d+) (\d+) \* \* \*", one.cron)
        assert match, one.cron
        starts.append(int(match[2]) * 60 + int(match[1]))
    gaps = [later - earlier for earlier, later in pairwise(starts)]
    assert starts[0] >= 0 and starts[-1] < 6 * 60 and max(gaps) - min(gaps) <= 1 and min(gaps) > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("apply", "nosuchrepo"), "no repository of the registry"),
        (("remove",), "--all"),
    ],
)
def test_bad_usage(tmp_path: Path, perfquarry: Program, arguments: tuple[str, ...], words: str) -> None:
    assert words in perfquarry(tmp_path, "schedule", *arguments, code=2).stderr


ORPHAN = """
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from prefect import get_client
from prefect.states import Pending, Running, Scheduled
from perfquarry.data.home import Home
from perfquarry.flows.prefect_deployments import settle_ended
from perfquarry.data.runs import RunRecord

home = Home(Path(sys.argv[1]))
with get_client(sync_client=True) as client:
    deployment = client.read_deployment_by_name("nightly/demo")
    later = Scheduled(scheduled_time=datetime.now(UTC) + timedelta(days=1))
    made = client.create_flow_run_from_deployment(deployment.id, state=later)
    for state in (Pending(), Running()):
        client.set_flow_run_state(made.id, state)
    record = RunRecord(
        run="demo-of-power-cut", repository="demo", stages=["mine"], pid=1, host="h", flow_run=str(made.id),
        began=datetime.now(UTC), outcome="interrupted",
    )
    (home.runs / "demo" / "demo-of-power-cut.json").write_text(record.model_dump_json())
    before = client.read_flow_run(made.id).state.type.value
    first = settle_ended(home, ["demo"])
    after, second = client.read_flow_run(made.id).state.type.value, settle_ended(home, ["demo"])
print(before, first, after, second)
"""
"""A run that Prefect takes for running, though its process has ended, and what is made of it."""


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[tuple[Path, Webhook]]:
    """A worker of a home whose failures are reported to a webhook."""
    (tmp_path / "s.toml").write_text('[notify]\nwebhook = "PQ_HOOK"\n')
    home = tmp_path / "home"
    with serving(Webhook()) as webhook:
        process = subprocess.Popen(
            command(home, "worker", "--settings", str(tmp_path / "s.toml"), "--name", "w"),
            env={**os.environ, "PQ_HOOK": webhook.url, "NO_PROXY": "127.0.0.1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield home, webhook
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()


def start(api: str, parameters: dict[str, str]) -> str:
    """Starts a run of the demo's deployment; its id."""
    found = httpx.get(f"{api}/deployments/name/nightly/demo", trust_env=False, timeout=30).raise_for_status().json()
    made = httpx.post(
        f"{api}/deployments/{found['id']}/create_flow_run",
        json={"parameters": parameters},
        trust_env=False,
        timeout=30,
    )
    return str(made.raise_for_status().json()["id"])


def ended(api: str, run: str) -> dict[str, Any]:
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        state: dict[str, Any] = httpx.get(f"{api}/flow_runs/{run}", trust_env=False, timeout=30).json()["state"]
        if state["type"] in ("COMPLETED", "FAILED", "CRASHED", "CANCELLED"):
            return state
        time.sleep(1)
    raise AssertionError(f"the run is still {state['name']}")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_worker_does_the_runs_of_a_deployment(
    worker: tuple[Path, Webhook], perfquarry: Program, facts: Program
) -> None:
    home, webhook = worker
    perfquarry(home, "schedule", "apply", "demo")
    (deployed,) = facts(home, "schedule", "list")
    assert deployed["cron"] == next(one.cron for one in nightlies() if one.repository == "demo") and deployed["active"]
    deadline = time.monotonic() + 120
    while not facts(home, "schedule", "list")[0]["next_run"]:
        assert time.monotonic() < deadline, "Prefect's scheduler made no run"
        time.sleep(2)
    api = address(Home(home))
    assert api
    first = start(api, {"changes": "0" * 40})  # no such commit: fails
    state = ended(api, first)
    assert state["type"] == "FAILED" and "no commit" in state["message"]
    while not webhook.messages:  # the hook follows the state
        assert time.monotonic() < deadline + 120
        time.sleep(0.5)
    assert "no commit" in webhook.messages[0]["text"] and first in webhook.messages[0]["text"]
    head = _head(home)
    second = start(api, {"changes": head})
    assert ended(api, second)["type"] == "COMPLETED"
    third = start(api, {"changes": head})
    assert ended(api, third)["message"] == "nothing new"
    found = httpx.post(f"{api}/artifacts/filter", json={}, trust_env=False, timeout=30).json()
    for run in (second, third):
        assert {one["key"] for one in found if one["flow_run_id"] == run} >= {"funnel-demo", "tasks-demo"}
    wanted = {"logs": {"flow_run_id": {"any_": [second]}}}
    lines = httpx.post(f"{api}/logs/filter", json=wanted, trust_env=False, timeout=30).json()
    assert "mine: 0 kept, 1 rejected" in {one["message"] for one in lines}, "of all stages, on the run's own page"
    left = subprocess.run(
        [sys.executable, "-c", ORPHAN, str(home)],
        env={**os.environ, "PREFECT_API_URL": api, "NO_PROXY": "127.0.0.1"},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert re.search(r"^(PENDING|RUNNING) 1 CRASHED 0$", left.stdout, re.M), left.stdout + left.stderr
    (fourth,) = facts(home, "schedule", "run", "demo")
    named = {"flow_runs": {"name": {"any_": [fourth]}}}
    while not (made := httpx.post(f"{api}/flow_runs/filter", json=named, trust_env=False, timeout=30).json()) or (
        made[0]["state_type"] not in ("PENDING", "RUNNING", "COMPLETED")
    ):
        assert time.monotonic() < deadline + 400, "the worker did not take the run"
        time.sleep(1)
    assert "nosuch has no deployment" in perfquarry(home, "schedule", "run", "nosuch", code=2).stderr
    assert facts(home, "schedule", "remove", "--all") == ["demo"]
    assert facts(home, "schedule", "list") == []


def _head(home: Path) -> str:
    """A commit of the demo that the judge passes over, so that nothing is built."""
    clone = home / "repositories" / "demo.git"
    return subprocess.run(
        ["git", "-C", clone, "rev-list", "--max-parents=0", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
