"""How the tests themselves are run: by pytest with several workers, and by make."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import WHOLE
from tests.running import SECONDS

ROOT = Path(__file__).parents[1]
ENDS = """
import os
import pytest

@pytest.mark.parametrize("number", range(6))
def test_one(number):
    if number == {ends}:
        os.abort()
"""
STUB = """#!/bin/sh
echo "$@" >> "$0.asked"
exit "$(cat "$0.code")"
"""


@pytest.mark.slow
def test_workers_that_end_at_once_end_nothing_else(tmp_path: Path) -> None:
    """The second and third file are given to workers that have finished others; xdist's own scheduler hangs there."""
    for name, ends in {"a": 9, "b": 9, "c": 4, "d": 4, "e": 0, "f": 5}.items():
        (tmp_path / f"test_{name}.py").write_text(ENDS.format(ends=ends))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.running", "-c", str(tmp_path / "pytest.ini")]
    command += ["-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", str(tmp_path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert "4 failed, 32 passed" in ended.stdout, ended.stdout[-3000:]
    crashed = set(re.findall(r"crashed while running '(.*?)'", ended.stdout))
    seconds = json.loads((tmp_path / ".pytest_cache" / "v" / SECONDS).read_text())
    assert len(seconds) == 36 and all(took >= 0 for took in seconds.values())
    assert ended.returncode == 1 and len(crashed) == 4, "pytest names each once more at the end where CI is set"


def test_a_lane_that_came_to_no_end_is_run_whole_again(tmp_path: Path) -> None:
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    (tmp_path / ".pytest_cache").mkdir()
    (tmp_path / "Makefile").write_text((ROOT / "Makefile").read_text())
    python.write_text(STUB)
    python.chmod(0o755)
    asked = Path(f"{python}.asked")

    def lane(code: int, *again: str) -> str:
        asked.write_text("")
        Path(f"{python}.code").write_text(str(code))
        command = ["make", "--silent", "--old-file", ".venv/.dev", "test-unit", *again]
        ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert (ended.returncode == 0) == (code == 0 or not asked.read_text()), ended.stderr
        return asked.read_text()

    assert "--last-failed" not in lane(3), "the first run"
    assert "-m pytest" in lane(137, "AGAIN=1") and "--last-failed" not in asked.read_text(), "it came to no end"
    assert "--last-failed" not in lane(1, "AGAIN=1"), "nor did that"
    assert "--last-failed" in lane(1, "AGAIN=1"), "tests failed"
    assert "--last-failed" in lane(0, "AGAIN=1")
    assert lane(1, "AGAIN=1") == "", "it has passed"
    assert "-m pytest" in lane(1) and "--last-failed" not in asked.read_text(), "not again: whole"


def test_each_file_that_is_moved_to_the_last_lane_is_there_once() -> None:
    there = [path.stem for path in (ROOT / "tests").rglob("test_*.py") if path.stem in WHOLE]
    assert sorted(there) == sorted(WHOLE)
