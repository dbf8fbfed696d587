"""Runs over copies of the tables of the demo, mined and judged (fixture `judged_demo`)."""

from __future__ import annotations

import shutil
from pathlib import Path

from perfquarry.data.records import Build
from perfquarry.flows.options import Options
from perfquarry.flows.run import Run


def run_over(home: Path, folder: Path, seconds: float | None = None, tasks: int | None = None) -> Run:
    shutil.copytree(home / "tables", folder / "tables")
    (folder / "repositories").symlink_to(home / "repositories")
    made = Run(Options(repo="demo", home=str(folder), jobs=2, seconds=seconds, tasks=tasks))
    made.begin()
    return made


def reject(run: Run, changes: frozenset[str], reason: str = "import_failed") -> None:
    """Writes that no side of them can be built."""
    facts = {**run.stamp("build").fields(), "status": "rejected", "reason": reason, "seconds": 3.0}
    run.store.append(
        [Build(**facts, build_id=one, change_id=one, side="base", sha="0" * 40) for one in sorted(changes)]
    )
