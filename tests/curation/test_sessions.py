"""Both sessions of a change, with real processes in the sandbox."""

import itertools
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from sample_change import CHANGE_ID, workload
from simulated_timings import MACHINE, STAMP, session_rows

from curation.blocks import runs_of
from curation.evidence import decide
from curation.sessions import futile, in_turn, measure
from data.records import Reason, Timing
from data.settings import MeasureSettings, SelectSettings
from harness.contracts import BuiltSide, ProbeReport, ProbeRequest
from harness.prober import SandboxProber
from harness.sandbox import choose_sandbox

FASTER, SAME, SLOWER, BROKEN = (f"test_naps.py::test_{name}" for name in ("faster", "same", "slower", "broken"))
TESTS = """
    from naps import naps
    import os
    import time

    def test_exit():
        os._exit(3)

    def test_faster():
        time.sleep(naps["faster"])

    def test_same():
        time.sleep(naps["same"])

    def test_slower():
        time.sleep(naps["slower"])

    def test_broken():
        assert naps["broken"] == "no"
"""
BASE = {"faster": 0.03, "same": 0.02, "slower": 0.01, "broken": "no"}
HEAD = {"faster": 0.01, "same": 0.02, "slower": 0.02, "broken": "yes"}
SELECTION = SelectSettings(min_blocks=6)
SETTINGS = MeasureSettings(blocks=6, aa_blocks=2, warmups=0, min_timed_seconds=0.001, max_calls=1, max_attempts=1)


def built(folder: Path, side: str, naps: dict) -> BuiltSide:
    tree = folder / f"tree-{side}"
    tree.mkdir()
    (tree / "naps.py").write_text(f"naps = {naps!r}\n")
    (tree / "test_naps.py").write_text(dedent(TESTS))
    return BuiltSide(side, side * 10, tree, Path(sys.executable), "environment", (tree,))


@pytest.fixture(scope="module")
def timings(tmp_path_factory: pytest.TempPathFactory) -> list[Timing]:
    folder = tmp_path_factory.mktemp("change").resolve()
    base, head = built(folder, "base", BASE), built(folder, "head", HEAD)
    prober = SandboxProber(choose_sandbox(), tmp_path_factory.mktemp("scratch"))
    workloads = [workload(node) for node in (FASTER, SAME, SLOWER, BROKEN)]
    workloads.append(workload("test_naps.py::test_rejected").model_copy(update={"status": "rejected"}))
    return measure(CHANGE_ID, workloads, base, head, prober, MACHINE, SETTINGS, SELECTION, STAMP)


def of(timings: list[Timing], node: str) -> list[Timing]:
    return [row for row in timings if row.workload_id == workload(node).workload_id]


def test_only_what_passes_the_first_session_is_measured_again(timings: list[Timing]):
    assert {row.workload_id for row in timings if row.session == 2} == {workload(FASTER).workload_id}
    blocks = {(row.session, row.aa, row.block) for row in of(timings, FASTER)}
    assert len(blocks) == 2 * (6 + 2)
    assert not of(timings, "test_naps.py::test_rejected")


def test_a_workload_that_got_slower_is_stopped_after_five_blocks(timings: list[Timing]):
    assert {row.block for row in of(timings, SLOWER) if not row.aa} == set(range(5))


def test_the_sessions_lead_to_the_decisions(timings: list[Timing]):
    reasons = {e.workload_id: e.reason for e in decide(timings, SELECTION, STAMP)}
    assert reasons == {
        workload(FASTER).workload_id: None,
        workload(SAME).workload_id: Reason.NO_GAIN,
        workload(SLOWER).workload_id: Reason.SLOWER,
        workload(BROKEN).workload_id: Reason.WORKLOAD_FAILED,
    }
    kept = next(e for e in decide(timings, SELECTION, STAMP) if e.status == "kept")
    assert 1.2 < kept.speedup < 3.2  # sleeps last longer on a busy machine
    (run,) = runs_of(of(timings, FASTER))
    assert kept.sessions[1].n_base <= len(run.sessions[1].plain) == 6


def test_the_sessions_differ_in_order_and_seeds(timings: list[Timing]):
    seeds = [[row.hash_seed for row in of(timings, FASTER) if row.session == session] for session in (1, 2)]
    assert not set(seeds[0]) & set(seeds[1])


@dataclass
class Restless:
    """A real prober under which the base takes much longer or shorter each time while its first processes run.

    The head lies between, so that no order of the processes makes it look faster.
    """

    inner: SandboxProber
    noisy: int
    _naps: Iterator[float] = field(default_factory=lambda: itertools.cycle((0.003, 0.09)))

    def run(self, side: BuiltSide, request: ProbeRequest, **how: Any) -> ProbeReport:
        self.noisy -= 1
        naps = json.loads((side.tree / "naps.json").read_text())
        if self.noisy >= 0:
            naps["same"] = next(self._naps) if side.side == "base" else 0.017
        (side.tree / "naps.py").write_text(f"naps = {naps!r}\n")
        return self.inner.run(side, request, **how)


@pytest.fixture(scope="module")
def restless(tmp_path_factory: pytest.TempPathFactory) -> list[Timing]:
    """FASTER is faster, and so is SAME, which noise hides in the first session."""
    folder = tmp_path_factory.mktemp("restless").resolve()
    sides = built(folder, "base", BASE | {"same": 0.03}), built(folder, "head", HEAD | {"same": 0.01})
    for side, naps in zip(sides, (BASE | {"same": 0.03}, HEAD | {"same": 0.01}), strict=True):
        (side.tree / "naps.json").write_text(json.dumps(naps))
    inner = SandboxProber(choose_sandbox(), tmp_path_factory.mktemp("scratch"))
    prober = Restless(inner, 1 + SETTINGS.blocks * 2 + SETTINGS.aa_blocks)
    return measure(CHANGE_ID, [workload(FASTER), workload(SAME)], *sides, prober, MACHINE, SETTINGS, SELECTION, STAMP)


def test_what_noise_hid_is_measured_again(restless: list[Timing]):
    assert {row.session for row in of(restless, FASTER)} == {1, 2}
    assert {row.session for row in of(restless, SAME)} == {1, 3, 4}


def test_the_last_round_decides(restless: list[Timing]):
    first = [row for row in restless if row.session <= 2]
    assert {e.workload_id: e.status for e in decide(first, SELECTION, STAMP)} == {
        workload(FASTER).workload_id: "kept",
        workload(SAME).workload_id: "rejected",
    }
    kept = {e.workload_id: e for e in decide(restless, SELECTION, STAMP)}
    assert {e.status for e in kept.values()} == {"kept"}
    assert [s.session for s in kept[workload(SAME).workload_id].sessions] == [3, 4]
    assert 1.2 < kept[workload(SAME).workload_id].speedup < 3.2


def test_nothing_to_measure(tmp_path: Path):
    side = built(tmp_path, "base", BASE)
    prober = SandboxProber(choose_sandbox(), tmp_path / "scratch")
    assert measure(CHANGE_ID, [], side, side, prober, MACHINE, SETTINGS, SELECTION, STAMP) == []


def test_a_workload_that_ends_its_process_takes_no_other_with_it(tmp_path: Path):
    side = built(tmp_path.resolve(), "base", BASE)
    prober = SandboxProber(choose_sandbox(), tmp_path / "scratch")
    once = SETTINGS.model_copy(update={"blocks": 1, "aa_blocks": 0})
    workloads = [workload("test_naps.py::test_exit"), workload(FASTER)]
    rows = measure(CHANGE_ID, workloads, side, side, prober, MACHINE, once, SELECTION, STAMP)
    assert {row.outcome for row in of(rows, "test_naps.py::test_exit")} == {"crashed"}
    assert [row.outcome for row in of(rows, FASTER)] == ["passed", "passed"]


def test_futility_is_failure_only():
    rows = [
        *session_rows("hopeless", 1, blocks=5),
        *session_rows("promising", 1, blocks=5, speedup=1.5),
        *session_rows("unclear", 1, blocks=5, noise=0.3),
        *session_rows("early", 1, blocks=3),
    ]
    assert futile(rows, 0.05) == {"hopeless"}


def test_each_source_and_role_gets_its_turn():
    def made(name: str, **columns: str):
        return workload(name).model_copy(update={"code": name, **columns})

    tests = [made(f"test {number}") for number in range(5)]
    visible = [made(f"visible {number}", source="generated") for number in range(2)]
    hidden = [made("hidden", source="generated", role="hidden")]
    assert [one.code for one in in_turn([*tests, *visible, *hidden], 6)] == [
        "test 0", "visible 0", "hidden", "test 1", "visible 1", "test 2",
    ]  # fmt: skip
    assert in_turn(tests, 12) == tests
