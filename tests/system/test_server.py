"""Runs on the home's own Prefect server: what a killed one leaves behind there."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from perfquarry.data.home import Home
from perfquarry.flows.server import address, announced
from tests.system.commands import command


def states(home: Path) -> Counter[str]:
    """States of the flow runs on the home's server; empty while there is none."""
    url = address(Home(home))
    if url is None:
        return Counter()
    runs = httpx.post(f"{url}/flow_runs/filter", json={}, timeout=10, trust_env=False).json()
    return Counter(run["state_type"] for run in runs)


def test_a_server_takes_back_its_own_announcement_only(tmp_path: Path) -> None:
    """A home may be removed and made anew before the server of the first has ended."""
    home = Home(tmp_path)
    state = home.server / "server.json"
    home.server.mkdir()
    with announced(home, 1, 11):
        with announced(home, 2, 22):
            assert json.loads(state.read_text()) == {"port": 2, "pid": 22}
        assert not state.exists()
        state.write_text("of another")
    assert state.read_text() == "of another"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_home_is_removed_and_made_anew_at_once(tmp_path: Path, perfquarry: Callable[..., Any]) -> None:
    """The first server, which ends some time later, does not take the second one's address with it."""
    home = tmp_path / "home"
    for _ in range(2):
        said = perfquarry(home, "mine", "demo").stdout
        assert said.index("kept") < said.index("answers"), "the history is read while the server starts"
        first = address(Home(home))
        assert first, "the server stays up for a while"
        shutil.rmtree(home)
    perfquarry(home, "mine", "demo")
    deadline = time.monotonic() + 60
    with contextlib.suppress(httpx.ConnectError):
        while httpx.get(f"{first}/health", timeout=10, trust_env=False):
            assert time.monotonic() < deadline, "the server of a home that was removed ends"
            time.sleep(0.5)
    assert address(Home(home))


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_a_killed_run_is_marked_as_crashed_by_the_next(tmp_path: Path, perfquarry: Callable[..., Any]) -> None:
    first = subprocess.Popen(
        command(tmp_path, "curate", "demo"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 90
    while not states(tmp_path)["RUNNING"]:
        assert first.poll() is None and time.monotonic() < deadline, "no flow run was seen"
        time.sleep(0.2)
    api = address(Home(tmp_path))
    assert api and httpx.get(f"{api.removesuffix('/api')}/ui-settings", trust_env=False).json()["api_url"] == api
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    assert states(tmp_path)["RUNNING"], "a killed run still shows as running"
    perfquarry(tmp_path, "mine", "demo")
    after = states(tmp_path)
    assert after["RUNNING"] == after["PENDING"] == 0
    assert after["CRASHED"] >= 1 and after["COMPLETED"] >= 1
    runs = httpx.post(f"{address(Home(tmp_path))}/flow_runs/filter", json={}, timeout=10, trust_env=False).json()
    assert {"curate-demo", "mine-demo"} <= {run["name"] for run in runs}
