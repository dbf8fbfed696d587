"""kill -9 at any moment and a rerun give the same tables as an undisturbed run."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfquarry.curation.rows_of_run import MOST_ROUNDS
from perfquarry.data.demo import expected
from perfquarry.data.records import (
    Attempt,
    Build,
    Change,
    Evidence,
    Reason,
    Row,
    Task,
    Timing,
    Verdict,
    Workload,
)
from perfquarry.data.store import TableStore
from tests.system.commands import command
from tests.system.conftest import Curated, curate_gain

VOLATILE = {
    "created_at",
    "seconds",
    "share",
    "bytes",
    "log",
    "detail",
    "sessions",
    "speedup",
    "low",
    "high",
    "delta",
    "p_value",
}
"""Columns that speak of the clock, not of the work."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, quick: Path, facts: Callable[..., Any]) -> Curated:
    """With the demo's largest gain: a smaller one can be undecided after a short schedule, and gets further rounds."""
    gain = max((one for one in expected() if one.speedup), key=lambda one: one.speedup or (0, 0))
    home = tmp_path_factory.mktemp("undisturbed") / "home"
    return Curated(home, **curate_gain(home, gain.head_sha, quick, facts))


def content(home: Path) -> dict[str, Any]:
    """What an undisturbed run and a killed one must have in common, by table; fails on rows that are there twice."""
    store, found = TableStore(home / "tables"), {}
    tables: tuple[type[Row], ...] = (Change, Verdict, Attempt, Build, Workload)
    for model in tables:
        rows = [row.model_dump(mode="json", exclude=VOLATILE) for row in store.records(model, "demo")]
        found[model.TABLE] = sorted(json.dumps(row, sort_keys=True) for row in rows)
    # a short schedule may decide alike on every change and not on each of its workloads
    for model, columns in ((Timing, ["change_id"]), (Evidence, ["change_id", "workload_id"]), (Task, ["change_id"])):
        table = store.scan(model, "demo", columns=columns)
        found[model.TABLE] = sorted(set(zip(*(column.to_pylist() for column in table.columns), strict=True)))
    found["twice"] = [name for name, rows in found.items() if len(rows) != len(set(rows))]
    return found


def curate_and_kill(home: Path, heads: str, quick: Path, after: float) -> bool:
    """Runs `curate` and kills it with everything it started after some seconds; true if it ended before."""
    process = subprocess.Popen(
        command(home, "curate", "demo", "--no-server", "--changes", heads, "--settings", str(quick)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _, errors = process.communicate(timeout=after)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        return False
    assert process.returncode == 0, errors.decode(errors="replace")[-4000:]
    return True


def killed_run(home: Path, curated: Curated, quick: Path, seed: int, most: int) -> int:
    """Kills at random moments, so often at most, until a run comes through; returns the number of kills."""
    chance, kills = random.Random(seed), 0
    while not curate_and_kill(
        home, curated.heads, quick, curated.seconds * chance.uniform(0.05, 0.6) if kills < most else 280
    ):
        kills += 1
    return kills


def parts(home: Path) -> dict[Path, int]:
    """When each part of the tables was written."""
    return {path: path.stat().st_mtime_ns for path in (home / "tables").rglob("*.parquet")}


def check_same(curated: Curated, home: Path, quick: Path, seed: int, most: int = 4) -> int:
    kills = killed_run(home, curated, quick, seed, most)
    want, got = content(curated.home), content(home)
    assert want["twice"] == got["twice"] == []
    for table, rows in want.items():
        assert got[table] == rows, f"{table} differs after {kills} kills (seed {seed})"
    return kills


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_killed_runs_end_with_the_same_tables(undisturbed: Curated, tmp_path: Path, quick: Path) -> None:
    assert check_same(undisturbed, tmp_path / "home", quick, 1, most=2) >= 1


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_killed_runs(undisturbed: Curated, tmp_path: Path, quick: Path, seed: int) -> None:
    kills = check_same(undisturbed, tmp_path / "home", quick, seed)
    print(f"seed {seed}: same tables after {kills} kills")


def test_a_finished_run_has_nothing_left_to_do(
    curated: Curated, tmp_path: Path, perfquarry: Callable[..., Any], quick: Path
) -> None:
    home = curated.copied(tmp_path / "home")  # further rounds decide anew, and others read what the first one decided
    arguments = ("--no-server", "--changes", curated.heads, "--settings", str(quick))
    for _ in range(MOST_ROUNDS - 1):  # a short schedule leaves workloads undecided, which each run measures once more
        rows = sorted(TableStore(home / "tables").records(Evidence, "demo"), key=lambda row: row.created_at)
        if Reason.UNDECIDED not in {row.workload_id: row.reason for row in rows}.values():
            break
        perfquarry(home, "curate", "demo", *arguments)
    before = parts(home)
    perfquarry(home, "curate", "demo", *arguments)
    assert parts(home) == before
