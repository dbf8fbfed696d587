"""`perfquarry gc` beside processes that use the home, and stages that find their things evicted."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfquarry.data.demo import expected
from perfquarry.data.records import Build, Row, Workload
from perfquarry.data.store import TableStore

VOLATILE = {"created_at", "seconds", "share", "bytes", "log", "detail"}
"""Columns that speak of the clock, not of the work."""
HOLD = """
import sys, time
from perfquarry.flows.options import Options
from perfquarry.flows.run import Run
from perfquarry.data.records import Build
run = Run.open(Options(repo="demo", home=sys.argv[1], jobs=1).model_dump_json())
rows = list(run.store.records(Build, "demo"))
sides = run.builder.reopen([row for row in rows if row.change_id == rows[0].change_id])
print(*(side.tree for side in sides), sides[0].python, flush=True)
time.sleep(300)
"""
Program = Callable[..., subprocess.CompletedProcess[str]]
Facts = Callable[..., Any]


def heads() -> str:
    return ",".join(one.head_sha for one in [one for one in expected() if one.speedup][:2])


def content(home: Path) -> dict[str, list[str]]:
    """Rows of builds and workloads but for their times."""
    store, tables = TableStore(home / "tables"), (Build, Workload)
    found: dict[str, list[str]] = {}
    model: type[Row]
    for model in tables:
        rows = [row.model_dump(mode="json", exclude=VOLATILE) for row in store.records(model, "demo")]
        found[model.TABLE] = sorted(json.dumps(row, sort_keys=True) for row in rows)
    return found


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, perfquarry: Program) -> Path:
    home = tmp_path_factory.mktemp("home")
    for stage in ("mine", "judge", "build"):
        perfquarry(home, stage, "demo", "--no-server", "--changes", heads())
    return home


def things(home: Path) -> set[Path]:
    return {path for folder in ("trees/demo", "environments") for path in (home / folder).glob("[!.]*")}


def test_gc_spares_what_a_process_uses_until_it_is_killed(built: Path, facts: Facts, perfquarry: Program) -> None:
    everything = things(built)
    assert len(everything) >= 4
    planned = facts(built, "gc", "--all", "--dry-run")
    assert {Path(one["path"]) for one in planned["removed"]} >= everything == things(built)
    assert "gc would free 0 B" in facts(built, "doctor")[-2]["found"]

    argv = [sys.executable, "-c", HOLD, str(built)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout
            held = {Path(place) for place in holder.stdout.readline().split()}
            text = perfquarry(built, "gc", "--all").stdout
            assert "in use: stays" in text and "freed" in text
            assert all(place.exists() for place in held)
            assert len(things(built)) == 3  # two trees, their environment
        finally:
            holder.send_signal(signal.SIGKILL)
    room = facts(built, "gc", "--keep", "0")
    assert len(room["removed"]) == 3 and room["after"] == 0 and room["in_use"] == []
    assert things(built) == set()
    perfquarry(built, "gc", "--keep", "much", code=2)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_stages_give_the_same_rows_whatever_was_evicted(
    built: Path, tmp_path: Path, perfquarry: Program, facts: Facts
) -> None:
    none = tmp_path / "none.toml"
    none.write_text("[resources]\ndisk = 0\n")
    plenty, tight = tmp_path / "plenty", tmp_path / "tight"
    for home, settings in ((plenty, []), (tight, ["--settings", str(none)])):
        for stage in ("mine", "judge", "build", "generate"):
            perfquarry(home, stage, "demo", "--no-server", "--changes", heads(), *settings)
    assert things(tight) == set() != things(plenty)
    facts(built, "gc", "--all")
    perfquarry(built, "generate", "demo", "--no-server", "--changes", heads())
    assert content(plenty)["workloads"]
    assert content(tight) == content(plenty) == content(built)
