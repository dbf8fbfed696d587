"""Whoever lets sides take turns comes before others, as long as it does."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from perfquarry.data.errors import InputError
from perfquarry.harness.sandbox.priority import TIMED_NICE, preferred, raised

GROUP = Path("/proc/self/autogroup")


def priorities() -> tuple[int, str]:
    """Of this thread, and of our session where these are weighed (elsewhere the file is empty, or there is none)."""
    thread = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    group = GROUP.read_text().split() if GROUP.exists() else []
    return thread, group[-1] if group else ""


def may_prefer() -> bool:
    return subprocess.run(["nice", "-n", "-1", "true"], capture_output=True, check=False).stderr == b""


def in_own_session(check: str, **variables: str) -> None:
    """Calls a function of this module in a session of its own: tests beside this one change the weight of theirs."""
    code = f"import sys; sys.path[:0] = [{str(Path(__file__).parent)!r}]; import test_priority; test_priority.{check}()"
    environment = {**os.environ, **variables}
    subprocess.run([sys.executable, "-c", code], start_new_session=True, env=environment, check=True, timeout=60)


def as_before() -> None:
    before = priorities()
    with preferred():
        now = priorities()
        assert now[0] == TIMED_NICE and now[1] in ("", str(TIMED_NICE // 2))
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(lambda: priorities()[0]).result() == TIMED_NICE, "begun by it"
        with preferred():
            pass
        assert priorities() == now, "another timing has ended"
    assert priorities() == before


def as_asked() -> None:
    before, value = priorities(), os.environ["PERFQUARRY_NICE"]
    with raised():
        assert priorities()[0] == (int(value) or before[0])
    with preferred():
        assert priorities() == (before if value == "0" else (int(value), before[1] and str(int(value) // 2)))
    assert priorities() == before


@pytest.mark.skipif(not may_prefer(), reason="NOT TESTED: only who may raise priorities (root) can see it")
def test_a_thread_and_its_session_are_preferred_and_all_is_as_before() -> None:
    in_own_session("as_before")


@pytest.mark.skipif(not may_prefer(), reason="NOT TESTED: only who may raise priorities (root) can see it")
@pytest.mark.parametrize("value", ["0", "-3", "-20"])
def test_whoever_shares_the_machine_says_how_much(value: str) -> None:
    in_own_session("as_asked", PERFQUARRY_NICE=value)


@pytest.mark.parametrize("value", ["5", "-21", "low", "-1.5", "--1"])
def test_another_value_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("PERFQUARRY_NICE", value)
    with pytest.raises(InputError, match="PERFQUARRY_NICE"), preferred():
        pass


def after_an_error() -> None:
    before = priorities()
    with pytest.raises(ValueError, match="no workload"), preferred():
        raise ValueError("no workload")
    assert priorities() == before


def test_an_error_undoes_it() -> None:
    in_own_session("after_an_error")


AS_NOBODY = """
import os, threading
from perfquarry.harness.sandbox.priority import preferred
os.setuid(65534)
with preferred():
    print(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: only root can become somebody else")
def test_who_may_not_goes_on_as_before() -> None:
    command = [sys.executable, "-c", AS_NOBODY]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert int(done.stdout) == os.getpriority(os.PRIO_PROCESS, 0)
