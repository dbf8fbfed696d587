"""Limits of one call on a machine that is busy with other things."""

from __future__ import annotations

import runpy
from typing import Any

import pytest
from probed import Probe, by_name

from perfquarry.harness.probing.prober import PROBE

BURN = """
    import time

    def burn(seconds):
        until = time.perf_counter() + seconds
        while time.perf_counter() < until: pass
"""
LIMITS: dict[str, Any] = runpy.run_path(str(PROBE.parent / "perfquarry_limits.py"))


def test_waiting_for_a_processor_does_not_use_up_the_limit(probe: Probe, busy_core: int) -> None:
    code = f"""{BURN}
    def test_burns(): burn(3)
    def test_in_a_thread():
        import threading
        thread = threading.Thread(target=burn, args=(3,))
        thread.start()
        thread.join()
"""
    report = probe("test_long.py", code, test_timeout=2.0, core=busy_core)
    items = by_name(report)
    assert {name: item.outcome for name, item in items.items()} == dict.fromkeys(items, "passed")
    assert report.wall_seconds > 6.0, "each of them lasted 3 s, which by wall time alone exceeds the limit"
    assert 0 < items["test_burns"].seconds < 2.5, "what its thread waited is not its own"


def test_on_a_busy_machine_limits_still_end_what_does_not_end(probe: Probe, busy_core: int) -> None:
    code = f"""{BURN}
    def test_sleeps(): time.sleep(600)
    def test_endless(): burn(600)
    def test_good(): pass
"""
    items = by_name(probe("test_long.py", code, test_timeout=0.5, core=busy_core))
    assert {name: item.outcome for name, item in items.items()} == {
        "test_sleeps": "timeout", "test_endless": "timeout", "test_good": "passed"
    }  # fmt: skip


def test_scripts_report_the_seconds_without_those_they_waited(probe: Probe, busy_core: int) -> None:
    script = """
import time
def burn(seconds):
    until = time.perf_counter() + seconds
    while time.perf_counter() < until: pass
def setup(): burn(1)
def experiment(data): burn(2)
"""
    report = probe(
        "tree.py", "", mode="time", arguments=[], scripts={"s": script}, calls={"s": 1}, warmups=0, test_timeout=20.0,
        core=busy_core,
    )  # fmt: skip
    (item,) = report.items
    assert item.outcome == "passed" and 0 < item.samples[0] < 1.5 < 3.0 < report.wall_seconds
    assert 0 < item.call_seconds < 1.5 and 0 < item.setup_seconds < 0.8
    assert 1.0 < report.waited_seconds <= report.wall_seconds


def test_nothing_lasts_for_ever_however_busy_the_machine_is(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = LIMITS["TimeLimit"](0.01)
    inside = vars(LIMITS["TimeLimit"])["left"].__globals__
    now = inside["clock"]()
    for hundredth in range(1, 10):
        monkeypatch.setitem(inside, "delays", lambda known=hundredth / 100: {"1": 1e3 + known})
        monkeypatch.setitem(inside, "clock", lambda moment=now + hundredth / 100: moment)
        assert limit.left() > 0 and not limit.is_over()
    monkeypatch.setitem(inside, "clock", lambda: now + 0.2)
    assert limit.left() == 0


def test_what_a_thread_waited_counts_when_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = LIMITS["TimeLimit"](10.0)
    inside = vars(LIMITS["TimeLimit"])["left"].__globals__
    now = inside["clock"]()
    monkeypatch.setitem(inside, "clock", lambda: now + 9.0)
    monkeypatch.setitem(inside, "delays", lambda: {"1": 0.0, "2": 8.0})
    assert 7.9 < limit.waited() <= 8.0
    monkeypatch.setitem(inside, "delays", lambda: {"1": 0.0})
    assert 7.9 < limit.waited() <= 8.0


def test_without_figures_wall_time_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    inside = vars(LIMITS["TimeLimit"])["left"].__globals__
    monkeypatch.setitem(inside, "TASKS", "/nowhere")
    limit = LIMITS["TimeLimit"](0.01)
    assert limit.waited() == 0
    now = inside["clock"]()
    monkeypatch.setitem(inside, "clock", lambda: now + 0.02)
    assert limit.is_over()
