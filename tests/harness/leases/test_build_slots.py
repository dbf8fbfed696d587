"""How many builds run at once, over processes."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from perfquarry.harness.leases.build_slots import build_slot

ROOT = Path(__file__).parents[3]
BUILD = """
import sys, time
from pathlib import Path
from perfquarry.harness.leases.build_slots import build_slot
with build_slot(Path(sys.argv[1]), int(sys.argv[2])):
    begin = time.monotonic()
    print("in", flush=True)
    time.sleep(float(sys.argv[3]))
    print(begin, time.monotonic(), flush=True)
"""


def start(locks: Path, memory: int, seconds: float) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", BUILD, str(locks), str(memory), str(seconds)]
    return subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def times(child: subprocess.Popen[str]) -> tuple[float, float]:
    begin, end = child.communicate(timeout=60)[0].splitlines()[-1].split()
    return float(begin), float(end)


def test_builds_that_do_not_fit_into_memory_wait_for_each_other(tmp_path: Path) -> None:
    most = int(psutil.virtual_memory().total * 0.8)  # at least one runs, whatever is available
    spans = sorted(times(child) for child in [start(tmp_path, most, 0.3) for _ in range(3)])
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core: builds never run at once")
def test_builds_that_fit_run_at_once(tmp_path: Path) -> None:
    children = [start(tmp_path, 1024**2, 300) for _ in range(2)]
    try:
        for child in children:
            assert child.stdout
            assert child.stdout.readline() == "in\n"  # the second one, too, while the first still runs
    finally:
        for child in children:
            child.kill()
            child.communicate()


def test_a_killed_build_frees_its_slot(tmp_path: Path) -> None:
    for _ in range(len(os.sched_getaffinity(0)) + 1):
        child = start(tmp_path, 0, 300)
        assert child.stdout
        assert child.stdout.readline() == "in\n"
        child.send_signal(signal.SIGKILL)
        child.communicate()
    with build_slot(tmp_path, 0):
        pass
