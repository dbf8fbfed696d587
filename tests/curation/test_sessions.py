"""Both sessions of a change, with real processes in the sandbox."""

from functools import partial
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
from sample_change import CHANGE_ID, workload
from simulated_timings import MACHINE, STAMP, rows_of_pairs, session_rows

from perfquarry.curation.blocks import runs_of
from perfquarry.curation.evidence import decide
from perfquarry.curation.sessions import in_turn, measure, settled, shows_gain
from perfquarry.curation.settings import SelectSettings
from perfquarry.data.records import Reason, Timing
from perfquarry.harness.contracts import BuiltSide
from perfquarry.harness.measuring.schedule import run_session
from perfquarry.harness.probing.prober import Prober
from perfquarry.harness.settings import MeasureSettings

FASTER, SAME, SLOWER, BROKEN, ENDS = (
    f"test_naps.py::test_{name}" for name in ["faster", "same", "slower", "broken", "ends"]
)
TESTS = """
    from naps import naps
    import os
    import time

    others = []

    def test_ends():
        if others:
            os._exit(3)
        time.sleep(naps["faster"])

    def test_faster():
        others.append(1)
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
SELECTION = SelectSettings()
SETTINGS = MeasureSettings(
    pairs=6, max_pairs=6, aa_every=3, warmups=1, turn_seconds=0.02, most_turns=5, fewest_turns=3, fresh_seconds=0.01
)


def built(folder: Path, side: str, naps: dict, python: Path) -> BuiltSide:
    tree = folder / f"tree-{side}"
    tree.mkdir()
    (tree / "naps.py").write_text(f"naps = {naps!r}\n")
    (tree / "test_naps.py").write_text(dedent(TESTS))
    return BuiltSide(side, side * 10, tree, python, "environment", (tree,))


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory, bare_python: Path) -> tuple[BuiltSide, BuiltSide]:
    folder = tmp_path_factory.mktemp("change").resolve()
    return built(folder, "base", BASE, bare_python), built(folder, "head", HEAD, bare_python)


@pytest.fixture(scope="module")
def timings(sides: tuple[BuiltSide, BuiltSide], prober: Prober) -> list[Timing]:
    workloads = [workload(node) for node in (FASTER, SAME, SLOWER, BROKEN)]
    workloads.append(workload("test_naps.py::test_rejected").model_copy(update={"status": "rejected"}))
    return measure(CHANGE_ID, workloads, *sides, prober, MACHINE, SETTINGS, SELECTION, STAMP, core=None)


def of(timings: list[Timing], node: str) -> list[Timing]:
    return [row for row in timings if row.workload_id == workload(node).workload_id]


def test_only_what_passes_the_first_session_is_measured_again(timings: list[Timing]):
    again = {row.workload_id for row in timings if row.session == 2}
    assert workload(FASTER).workload_id in again
    assert not again & {workload(SLOWER).workload_id, workload(BROKEN).workload_id}
    pairs = {(row.session, row.aa, row.block) for row in of(timings, FASTER)}
    assert len(pairs) == 2 * (6 + 2)
    assert not of(timings, "test_naps.py::test_rejected")


def test_the_sessions_lead_to_the_decisions(timings: list[Timing]):
    reasons = {e.workload_id: e.reason for e in decide(timings, SELECTION, STAMP)}
    # what others do to a nap of 20 ms may leave a few percent open, but is never taken for a gain
    assert reasons.pop(workload(SAME).workload_id) in (Reason.NO_GAIN, Reason.UNDECIDED, Reason.NOT_CONFIRMED)
    assert reasons == {
        workload(FASTER).workload_id: None,
        workload(SLOWER).workload_id: Reason.SLOWER,
        workload(BROKEN).workload_id: Reason.WORKLOAD_FAILED,
    }
    kept = next(e for e in decide(timings, SELECTION, STAMP) if e.workload_id == workload(FASTER).workload_id)
    assert 1.5 < kept.speedup < 3.2
    (run,) = runs_of(of(timings, FASTER))
    assert kept.sessions[1].n_base == len(run.sessions[1].plain) == 6


def test_the_sessions_differ_in_order_and_seeds(timings: list[Timing]):
    seeds = [[row.hash_seed for row in of(timings, FASTER) if row.session == session] for session in (1, 2)]
    assert not set(seeds[0]) & set(seeds[1])


def test_a_second_look_is_one_session(sides: tuple[BuiltSide, BuiltSide], prober: Prober):
    stop = partial(settled, settings=SELECTION)
    sent = [workload(FASTER)]
    rows = run_session(CHANGE_ID, sent, *sides, prober, SETTINGS, STAMP, MACHINE, session=1, core=None, stop=stop)
    assert {row.session for row in rows} == {1}
    assert len({row.block for row in rows}) == 6 and {row.outcome for row in rows} == {"passed"}


class Cut(Exception):
    """Whoever measures is ended."""


def test_what_was_cut_goes_on_with_the_next_pair(
    sides: tuple[BuiltSide, BuiltSide], prober: Prober, timings: list[Timing]
):
    """Cut in each session: every pair is there once, with the processes of a measurement that ran through."""
    kept: list[Timing] = []

    def keep_until(cut: tuple[int, int]):
        def keep(pair: list[Timing]) -> None:
            kept.extend(pair)
            if (pair[0].session, pair[0].block) == cut:
                raise Cut

        return keep

    sent = [workload(node) for node in (FASTER, BROKEN)]
    fixed = (CHANGE_ID, sent, *sides, prober, MACHINE, SETTINGS, SELECTION, STAMP)
    for cut in ((1, 2), (2, 1)):
        with pytest.raises(Cut):
            measure(*fixed, core=None, so_far=tuple(kept), keep=keep_until(cut))
    seen: list[tuple[int, int]] = []
    rows = measure(
        *fixed,
        core=None,
        so_far=tuple(kept),
        keep=lambda pair: seen.append((pair[0].session, pair[0].block)),
        progress=lambda done, planned: None,
    )
    assert seen == [(2, 2), (2, 3), (2, 4), (2, 5)] and rows[: len(kept)] == kept

    def processes(found: list[Timing]) -> list[tuple[int, int, str, bool, int, int]]:
        return [(one.session, one.block, one.side, one.aa, one.position, one.hash_seed) for one in found]

    assert processes(of(rows, FASTER)) == processes(of(timings, FASTER))
    broken = of(rows, BROKEN)
    assert {row.block for row in broken} == {0} and broken[-1].outcome == "failed", "what failed is not run again"
    assert measure(*fixed, core=None, so_far=rows, keep=lambda pair: pytest.fail("nothing is left")) == rows


def test_a_later_round_has_sessions_of_its_own_and_decides(
    sides: tuple[BuiltSide, BuiltSide], prober: Prober, timings: list[Timing]
):
    """Noise hid in the first round what the second shows."""
    faster, other = workload(FASTER), workload(SAME)
    hidden = rows_of_pairs(faster.workload_id, 1, np.linspace(-0.1, 2.0, 6), change_id=CHANGE_ID)
    assert [e.reason for e in decide(hidden, SELECTION, STAMP)] == [Reason.UNDECIDED]
    again = measure(
        CHANGE_ID, [faster], *sides, prober, MACHINE, SETTINGS, SELECTION, STAMP, core=None, first_session=3
    )
    assert {row.session for row in again} == {3, 4}
    seeds = {row.hash_seed for row in again}
    assert not seeds & {row.hash_seed for row in timings}, "other processes than in the first round"
    (evidence,) = decide(hidden + again, SELECTION, STAMP)
    assert evidence.status == "kept" and [one.session for one in evidence.sessions] == [3, 4]
    # a workload that is not measured again keeps what was decided
    rows = hidden + again + session_rows(other.workload_id, 1, change_id=CHANGE_ID)
    assert [e.reason for e in decide(rows, SELECTION, STAMP)] == [None, Reason.NO_GAIN]


def test_nothing_to_measure(sides: tuple[BuiltSide, BuiltSide], prober: Prober):
    assert measure(CHANGE_ID, [], *sides, prober, MACHINE, SETTINGS, SELECTION, STAMP, core=None) == []


@pytest.mark.slow
def test_what_cannot_live_beside_others_is_confirmed_by_itself_from_the_start(
    sides: tuple[BuiltSide, BuiltSide], prober: Prober
):
    """It ends the process in which another workload ran before it; the second session tries that no more."""
    workloads = [workload(ENDS), workload(FASTER)]
    rows = measure(CHANGE_ID, workloads, *sides, prober, MACHINE, SETTINGS, SELECTION, STAMP, core=None)
    assert {row.outcome for row in rows} == {"passed"}
    assert {(row.session, row.schedule) for row in of(rows, FASTER)} == {(1, "turns"), (2, "turns")}
    assert {row.schedule for row in of(rows, ENDS) if row.session == 2} == {"fresh"}
    assert {row.block for row in of(rows, FASTER) if row.session == 1} == set(range(6))


def test_measuring_ends_for_what_more_pairs_would_say_nothing_of():
    rows = [
        *session_rows("hopeless", 1, blocks=6),
        *session_rows("slower", 1, blocks=6, speedup=0.5),
        *session_rows("precise", 1, blocks=6, speedup=1.5),
        *session_rows("significant", 1, blocks=6, speedup=1.15, noise=0.03),
        *session_rows("unclear", 1, blocks=6, noise=0.3),
        *session_rows("clear", 1, blocks=6, speedup=1.4, noise=0.04),
        *session_rows("early", 1, blocks=5),
    ]
    assert settled(rows, SELECTION) == {"hopeless", "slower", "precise"}
    assert settled(rows, SELECTION, purpose="select") == {"hopeless", "slower", "precise", "clear"}


def test_a_first_session_ends_where_more_pairs_would_hardly_show_a_gain():
    """Its interval leaves a gain open: undecided, and no fact."""
    rows = [
        *rows_of_pairs("in vain", 1, np.linspace(-0.336, 0.304, 8), change_id=CHANGE_ID),
        *rows_of_pairs("open", 1, np.linspace(-0.04, 0.14, 8), change_id=CHANGE_ID),
        *rows_of_pairs("early", 1, np.linspace(-0.336, 0.304, 7), change_id=CHANGE_ID),
        *rows_of_pairs("soon a fact", 1, np.linspace(-0.07, 0.05, 8), change_id=CHANGE_ID),
    ]
    assert settled(rows, SELECTION, purpose="select", most=24) == {"in vain"}
    assert settled(rows, SELECTION) == settled(rows, SELECTION, purpose="confirm", most=24) == set()
    assert settled(rows, SELECTION, purpose="select", most=7) == set(), "pairs of a longer session"
    decided = {one.workload_id: one.reason for one in decide(rows, SELECTION, STAMP)}
    assert decided["in vain"] == Reason.UNDECIDED


def test_beside_a_gain_that_is_clear_others_are_not_waited_for():
    clear = session_rows("clear", 1, blocks=6, speedup=1.4, noise=0.04)
    unclear = session_rows("unclear", 1, blocks=12, noise=0.3), session_rows("new", 1, blocks=11, noise=0.3)
    rows = [row for mine in unclear for row in mine]
    assert settled(rows, SELECTION, purpose="select") == set()
    assert settled([*rows, *clear], SELECTION, purpose="select") == {"clear", "unclear"}
    assert settled([*rows, *clear], SELECTION, purpose="confirm") == set(), "its figures are published: not precise"
    precise = session_rows("precise", 1, blocks=6, speedup=1.4)
    assert settled([*rows, *precise], SELECTION, purpose="confirm") == {"precise", "unclear"}
    assert settled([*rows, *precise], SELECTION) == {"precise"}, "a second look waits for each"
    hopeless = session_rows("hopeless", 1, blocks=6)
    assert settled([*rows, *hopeless], SELECTION, purpose="confirm") == {"hopeless"}


@pytest.mark.parametrize(
    ("logs", "seen"),
    [
        ([0.2, 0.21, 0.19, 0.2, 0.22, 0.18], True),
        ([0.2, 0.21, 0.19, 0.2, 0.22], False),  # five pairs have no interval
        ([0.02, 0.021, 0.019, 0.02, 0.022, 0.018], False),  # less than is worth a task
        ([0.3, -0.2, 0.5, -0.1, 0.4, -0.3], False),  # noise
        ([-0.2, -0.21, -0.19, -0.2, -0.22, -0.18], False),
    ],
)
def test_a_gain_is_seen_before_a_session_ends(logs: list[float], seen: bool):
    rows = [*rows_of_pairs("other", 1, [0.0, 0.01, -0.01, 0.02, -0.02, 0.0]), *rows_of_pairs("one", 1, logs)]
    assert shows_gain(rows, SELECTION) == seen


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
