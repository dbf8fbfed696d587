"""Runs the program from outside, as a user would."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from perfquarry.data.demo import expected
from perfquarry.flows.options import Options
from perfquarry.flows.pipeline import run_stages
from perfquarry.flows.run import Run

QUICK = """
[generate]
max_workloads = 2

[measure]
pairs = 6
max_pairs = 6
aa_every = 3
warmups = 2
turn_seconds = 0.02
most_turns = 5
fresh_seconds = 0.005
"""


@pytest.fixture(scope="session")
def judged_demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home of the demo, mined and judged."""
    folder = tmp_path_factory.mktemp("judged")
    run = Run(Options(repo="demo", home=str(folder), jobs=2))
    run_stages(run, ["mine", "judge"])
    run.close()
    return folder


@pytest.fixture(scope="session")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Settings with a schedule that is too short to decide small gains, for tests of everything else."""
    path = tmp_path_factory.mktemp("settings") / "quick.toml"
    path.write_text(QUICK)
    return path


GAIN = "23b2933d37"
"""Of the demo, a clear one; the pages show it."""


@dataclass(frozen=True)
class Curated:
    """A home in which a gain of the demo and two decoys, `heads`, were curated."""

    home: Path
    heads: str
    printed: Any
    seconds: float

    def copied(self, to: Path) -> Path:
        """A copy to write into, without what the tests beside this one hold open."""
        of_now = shutil.ignore_patterns("*.lock", "claims.sqlite*", "locks", "review", "scratch", "server")
        return Path(shutil.copytree(self.home, to, symlinks=True, ignore=of_now))


def curate_gain(home: Path, gain: str, quick: Path, facts: Callable[..., Any]) -> dict[str, Any]:
    """Curates a gain of the demo and two decoys; what `Curated` says of it, but its home."""
    (task,) = [one for one in expected() if one.head_sha.startswith(gain)]
    decoys = [one for one in expected() if one.stage == "generate"][:2]
    heads = ",".join(one.head_sha for one in (task, *decoys))
    began = time.monotonic()
    printed = facts(home, "curate", "demo", "--changes", heads, "--settings", str(quick), "--no-server")
    return {"heads": heads, "printed": printed, "seconds": time.monotonic() - began}


@pytest.fixture(scope="session")
def curated(tmp_path_factory: pytest.TempPathFactory, quick: Path, facts: Callable[..., Any]) -> Curated:
    """Made once for all workers of pytest, which only add to it."""
    base = tmp_path_factory.getbasetemp()
    folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    home, record = folder / "curated", folder / "curated.json"
    with FileLock(f"{record}.lock"):
        if not record.exists():
            record.write_text(json.dumps(curate_gain(home, GAIN, quick, facts)))
    return Curated(home, **json.loads(record.read_text()))


@pytest.fixture(scope="session")
def perfquarry(forked: list[str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`perfquarry(home, *arguments, code=0)` runs the command and checks its exit code."""

    def run(home: Path | None, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*forked, *arguments, *(["--home", str(home)] if home else [])],
            capture_output=True,
            text=True,
            timeout=280,
            env={**os.environ, "COLUMNS": "160"},
            check=False,
        )
        assert done.returncode == code, f"exit {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return done

    return run


@pytest.fixture(scope="session")
def facts(perfquarry: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[..., Any]:
    """The same with --json, parsed."""

    def run(home: Path | None, *arguments: str, code: int = 0) -> Any:
        return json.loads(perfquarry(home, *arguments, "--json", code=code).stdout)

    return run
