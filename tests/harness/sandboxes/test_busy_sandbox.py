"""The time limit of sandboxes on a machine that is busy with other things."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from in_sandbox import python

from perfquarry.harness.alternation import waiting
from perfquarry.harness.alternation.waiting import Thread, WaitingLimit
from perfquarry.harness.contracts import Limits, Sandbox

BURN = """
import sys, time
until = time.monotonic() + float(sys.argv[1])
while time.monotonic() < until: pass
"""
IN_A_CHILD = """
import subprocess, sys
subprocess.run([sys.executable, "-c", %r, sys.argv[1]], check=True)
"""


@pytest.mark.parametrize("code", [BURN, IN_A_CHILD % BURN], ids=["itself", "in a child"])
def test_waiting_for_a_processor_does_not_use_up_the_limit(
    sandbox: Sandbox, folder: Path, busy_core: int, code: str
) -> None:
    ended = python(sandbox, code, folder, "3.2", limits=Limits(wall_seconds=2.4), core=busy_core)
    assert ended.ok, ended
    assert ended.wall_seconds > 3.2, "wall time alone would have exceeded the limit"


@pytest.mark.parametrize("code", [BURN, "import time; time.sleep(600)"], ids=["endless", "sleeping"])
def test_on_a_busy_machine_limits_still_end_what_does_not_end(
    sandbox: Sandbox, folder: Path, busy_core: int, code: str
) -> None:
    ended = python(sandbox, code, folder, "600", limits=Limits(wall_seconds=0.7), core=busy_core)
    assert ended.timed_out and 0.7 <= ended.wall_seconds < 60


@pytest.fixture
def delays(monkeypatch: pytest.MonkeyPatch) -> dict[int, float]:
    """What the kernel says of threads: seconds waited; those of whom it says nothing new are ready."""
    known: dict[int, float] = {}

    def threads(pids: Iterable[int]) -> dict[int, Thread]:
        return {number: Thread("", 0.0, waited) for number, waited in known.items()}

    monkeypatch.setattr(waiting, "threads_of", threads)
    monkeypatch.setattr(waiting, "is_ready", lambda thread: True)
    return known


def test_of_each_look_the_longest_wait_counts(delays: dict[int, float]) -> None:
    limit = WaitingLimit(10.0, begin=100.0)
    delays.update({1: 3.0, 2: 2.0})
    assert not limit.is_over(105.0, list) and limit.end == 113.0
    delays.update({1: 3.5, 2: 6.0, 3: 1.0})
    assert not limit.is_over(112.0, list) and limit.end == 117.0
    delays.update({1: 3.6, 2: 6.1, 3: 1.1})
    assert limit.is_over(117.2, list)


def test_who_still_waits_is_credited_and_not_twice(delays: dict[int, float]) -> None:
    limit = WaitingLimit(4.0, begin=0.0)
    delays[1] = 0.5
    assert not limit.is_over(2.0, list) and limit.end == 4.5
    assert not limit.is_over(4.5, list) and limit.end == 7.0, "since the last look it was ready and did not run"
    assert not limit.is_over(6.5, list) and limit.end == 9.0
    delays[1] = 5.5  # it has run at last: five seconds of waiting, of which four and a half were known
    assert not limit.is_over(7.0, list) and limit.end == 9.5


def test_who_sleeps_does_not_wait(delays: dict[int, float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "is_ready", lambda thread: False)
    limit = WaitingLimit(4.0, begin=0.0)
    delays[1] = 0.5
    assert not limit.is_over(2.0, list)
    assert limit.is_over(4.5, list)


def test_what_the_kernel_says_of_a_thread() -> None:
    own = waiting.threads_of([os.getpid()])[threading.get_native_id()]
    assert own.ran > 0 and own.waited >= 0 and waiting.is_ready(own)
    asleep = subprocess.Popen(["sleep", "60"])
    try:
        until = time.monotonic() + 20
        while (found := waiting.threads_of([asleep.pid])) and waiting.is_ready(found[asleep.pid]):
            assert time.monotonic() < until
    finally:
        asleep.kill()
        asleep.wait()
    assert waiting.threads_of([asleep.pid]) == {} and not waiting.is_ready(found[asleep.pid])


def test_no_more_than_what_has_passed_counts(delays: dict[int, float]) -> None:
    limit = WaitingLimit(10.0, begin=0.0)
    delays[1] = 1000.0
    assert not limit.is_over(5.0, list) and limit.end == 15.0


def test_nothing_lasts_for_ever_however_busy_the_machine_is(delays: dict[int, float]) -> None:
    limit = WaitingLimit(1.0, begin=0.0)
    for tenth in range(40):
        delays[1] = tenth / 10 + 0.01
        assert not limit.is_over(tenth / 10, list)
    delays[1] = 4.0
    assert limit.is_over(4.0, list)


def test_what_is_far_from_its_limit_is_not_looked_at(delays: dict[int, float]) -> None:
    limit = WaitingLimit(10.0, begin=0.0)
    assert not limit.is_over(2.0, lambda: pytest.fail("it was looked at"))
