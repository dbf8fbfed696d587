"""Runs the program from outside, as a user would."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.system.commands import command

QUICK = """
[generate]
max_workloads = 2

[measure]
blocks = 6
aa_blocks = 2
futility_blocks = 3
max_attempts = 1
min_timed_seconds = 0.005

[select]
min_blocks = 4
"""


@pytest.fixture(scope="session")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Settings with a schedule that is too short to decide small gains, for tests of everything else."""
    path = tmp_path_factory.mktemp("settings") / "quick.toml"
    path.write_text(QUICK)
    return path


@pytest.fixture(scope="session")
def perfquarry() -> Callable[..., subprocess.CompletedProcess[str]]:
    """`perfquarry(home, *arguments, code=0)` runs the command and checks its exit code."""

    def run(home: Path | None, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command(home, *arguments),
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

    def run(home: Path, *arguments: str, code: int = 0) -> Any:
        return json.loads(perfquarry(home, *arguments, "--json", code=code).stdout)

    return run
