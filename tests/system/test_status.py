"""`perfquarry status` and the logs of runs, from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Program = Callable[..., Any]

HOLDER = """
import sys, time
from pathlib import Path
from perfquarry.data.home import Home
from perfquarry.data.runs import recorded
with recorded(Home(Path(sys.argv[1])), "demo-run", "demo", ["measure"]) as record:
    record.stage("measure", 13)
    record.advance(4)
    record.set(note="another timing runs here: 20 s")
    print("up", flush=True)
    time.sleep(600)
"""


@pytest.fixture(scope="module")
def mined(tmp_path_factory: pytest.TempPathFactory, perfquarry: Program) -> Path:
    home: Path = tmp_path_factory.mktemp("home")
    perfquarry(home, "mine", "demo", "--no-server")
    return home


def test_what_is_done_waited_for_and_to_do(mined: Path, tmp_path: Path, perfquarry: Program, facts: Program) -> None:
    (before,) = facts(mined, "status")
    assert before["repository"] == "demo" and before["last"]["outcome"] == "done" and before["waiting"] == ""
    stages = {stage["stage"]: stage for stage in before["stages"]}
    assert (stages["mine"]["kept"], stages["judge"]["pending"]) == (33, 33)
    perfquarry(
        mined, "judge", "demo", "--no-server", "--judge", "cascade", "--llm", f"exchange:{tmp_path / 'x'}", code=1
    )
    (after,) = facts(mined, "status")
    assert after["last"]["outcome"] == "waiting" and "waiting for 18 of 18 answers" in after["waiting"]
    text = perfquarry(mined, "status", "--once").stdout
    assert "15 +18" in text and "waiting for 18 of 18" in text and "demo" in text


def test_what_runs_and_what_was_killed(mined: Path, facts: Program, perfquarry: Program) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(mined)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout and holder.stdout.readline() == "up\n"
        (one,) = facts(mined, "status")
        (run,) = one["running"]
        assert (run["stage"], run["done"], run["total"], run["pid"]) == ("measure", 4, 13, holder.pid)
        text = perfquarry(mined, "status").stdout  # no terminal: as with --once
        assert "measure 4 of 13 another timing runs here: 20 s" in text
    finally:
        os.kill(holder.pid, signal.SIGKILL)
        holder.communicate()
    (one,) = facts(mined, "status")
    assert one["running"] == [] and one["last"]["outcome"] == "killed" and one["waiting"] == ""


def test_log_lines_for_machines(mined: Path) -> None:
    path = next(iter(sorted((mined / "logs").glob("*.jsonl"))))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert {line["repository"] for line in lines} == {"demo"} and {line["run"] for line in lines} == {path.stem}
    assert {line.get("stage") for line in lines} == {None, "mine"} and lines[-1][
        "message"
    ] == "mine: 33 kept, 1 rejected"
    assert len(path.with_suffix(".log").read_text().splitlines()) == len(lines)


def test_an_empty_home(tmp_path: Path, facts: Program, perfquarry: Program) -> None:
    assert facts(tmp_path, "status") == []
    assert "nothing was run" in perfquarry(tmp_path, "status", "--once").stdout
