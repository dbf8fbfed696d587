"""`perfquarry count` on a curated home, as a user runs it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfquarry.curation import counting
from perfquarry.curation.in_force import accepted_tasks
from perfquarry.curation.rows_of_run import OwnRows
from perfquarry.flows.options import Options
from perfquarry.flows.run import Run
from perfquarry.flows.runner import run_stage
from perfquarry.flows.stages import BY_NAME
from perfquarry.harness.measuring.callgrind import Callgrind
from tests.system.conftest import Curated


@pytest.fixture
def home(curated: Curated, tmp_path: Path) -> Path:
    """A copy of its tables, which other tests read."""
    return curated.copied(tmp_path / "home")


@pytest.mark.slow
def test_the_gain_is_seen_in_the_counts(home: Path, tmp_path: Path, facts: Callable[..., Any], perfquarry: Any) -> None:
    if Callgrind.find() is None:
        pytest.skip("valgrind is not installed: the command was NOT tried")
    settings = tmp_path / "count.toml"
    settings.write_text("[count]\nseeds = [1]\nwarmups = 1\ncalls = 1\n")
    [task] = facts(home, "count", "demo", "--settings", str(settings))["tasks"]
    [accepted, *_] = task["counts"]
    assert (accepted["status"], accepted["label"]) == ("kept", "agree") and accepted["ratio"] > 1.5
    assert accepted["functions"][0]["in_patch"] and accepted["valgrind"].startswith("valgrind-")
    assert facts(home, "count", "demo", "--settings", str(settings))["tasks"] == [task], "nothing is counted twice"
    shown = facts(home, "show", task["task_id"])["counts"]
    assert {one["workload_id"]: one["label"] for one in shown} == {
        one["workload_id"]: one["label"] for one in task["counts"]
    }
    assert "agree (faster, with fewer instructions)" in perfquarry(home, "show", task["task_id"]).stdout


def test_no_task_is_begun_when_the_time_is_over(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def todo(rows: OwnRows) -> list[tuple[str, ...]]:
        return counting.uncounted(rows, accepted_tasks(rows.store, rows.name))

    monkeypatch.setattr(counting, "todo", todo)  # the demo's are counted by the command alone
    run = Run(Options(repo="demo", home=str(home), jobs=1, seconds=1e-9))
    run.begin()
    assert run_stage(run, replace(BY_NAME["count"], todo=todo)) == []
    assert counting.summary(run) == "0 workloads counted, 0 could not be; 1 task(s) left for `perfquarry count demo`"
    run.close()


def test_without_valgrind_it_says_what_to_install(
    home: Path, tmp_path: Path, perfquarry: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("git", "sh"):
        (programs / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(programs))
    assert "install valgrind" in perfquarry(home, "count", "demo", code=2).stderr
