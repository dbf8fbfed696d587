"""Two workers against one on forty changes of the demo, build and generate; both give the same rows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.same_tables import content
from perfquarry.data.demo import build_demo
from perfquarry.data.records import Attempt, Build, Workload
from perfquarry.data.registry import resolve
from perfquarry.flows.options import Options
from perfquarry.flows.pipeline import run_stages
from perfquarry.flows.run import Run

REPOSITORIES = ("demo-a", "demo-b")
TABLES = (Attempt, Build, Workload)


def work(home: Path, sources: Path, stages: list[str]) -> None:
    """What one worker does: the stages of both repositories, one batch at a time."""
    for name in REPOSITORIES:
        run = Run.open(Options(repo=str(sources / name), home=str(home), jobs=1).model_dump_json())
        run_stages(run, stages)
        run.close()


def together(number: int, home: Path, sources: Path) -> float:
    """Seconds until all of so many workers have ended, each on a core of its own, as on machines of their own."""
    command = [sys.executable, "-m", "benchmarks.scale_workers", str(home), str(sources)]
    began = time.monotonic()
    pair = []
    for core in sorted(os.sched_getaffinity(0))[:number]:
        pair.append(subprocess.Popen(command))
        os.sched_setaffinity(pair[-1].pid, {core})
    assert [process.wait() for process in pair] == [0] * number
    return time.monotonic() - began


def workers(folder: Path) -> str:
    """The section's text."""
    sources, judged = folder / "sources", folder / "judged"
    for name in REPOSITORIES:
        build_demo(sources / name)
    work(judged, sources, ["mine", "judge"])
    homes = {number: folder / str(number) for number in (2, 1)}
    for home in homes.values():
        shutil.copytree(judged / "tables", home / "tables")
        shutil.copytree(judged / "repositories", home / "repositories")
    taken = {number: together(number, home, sources) for number, home in homes.items()}
    names = [resolve(str(sources / name)).name for name in REPOSITORIES]
    two, one = ([content(home, name, TABLES) for name in names] for home in homes.values())
    assert one == two and all(rows for tables in one for rows in tables.values()), "two workers gave other tables"
    changes = sum(len({row[0] for row in tables["builds"]}) for tables in two)
    return (
        f"Build and generate of {changes} changes (the demo twice), one batch at a time, one core a worker, one home: "
        f"{taken[1]:.0f} s with one worker, {taken[2]:.0f} s with two, {taken[1] / taken[2]:.2f}×. "
        "Environments, trees and process starts are included; the two run first, on colder caches. "
        "The tables are the same."
    )


if __name__ == "__main__":
    work(Path(sys.argv[1]), Path(sys.argv[2]), ["build", "generate"])
