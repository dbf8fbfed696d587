"""The simulation's rules are the product's: rows of a matrix are judged as one session at a time is."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from benchmarks import many, peers
from benchmarks.rounds import Drawn, session
from perfquarry.curation import intervals, stability, summary
from perfquarry.curation.blocks import Block, MeasuredWorkload, Session
from perfquarry.curation.evidence import decide_runs, passed_selection
from perfquarry.curation.settings import SelectSettings
from perfquarry.data.records import Stamp
from perfquarry.harness.settings import MeasureSettings

SETTINGS = SelectSettings()
WORKLOADS = 300


def sessions(pairs: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Effects and spreads of all sizes that decide; some sessions have no spread at all."""
    rng = np.random.default_rng([seed, pairs])
    scale = np.exp(rng.uniform(np.log(0.001), np.log(0.05), (WORKLOADS, 1)))
    scale[::50] = 0
    shift = rng.choice([0.0, 0.02, 0.04, 0.08, -0.05], (WORKLOADS, 1))
    logs = shift + scale * rng.standard_normal((WORKLOADS, pairs))
    return logs, scale * rng.standard_normal((WORKLOADS, -(-pairs // 2)))


def as_session(logs: np.ndarray, aa_logs: np.ndarray, number: int = 1) -> Session:
    def block(log: float) -> Block:
        return Block(float(np.exp(log)), 1.0, float(log))

    return Session(number, tuple(map(block, logs)), tuple(map(block, aa_logs)))


@pytest.mark.parametrize("pairs", [6, 7, 9, 16])
def test_each_statistic_is_that_of_the_scalar_function(pairs: int) -> None:
    logs, aa_logs = sessions(pairs)
    found = many.summarise(logs, aa_logs, SETTINGS)
    low, high = many.lasting(found, SETTINGS)
    for row in range(WORKLOADS):
        wanted = summary.summarise(as_session(logs[row], aa_logs[row]), SETTINGS)
        assert wanted
        assert np.exp(found.shift[row]) == pytest.approx(wanted.speedup, rel=1e-12)
        assert np.exp(found.low[row]) == pytest.approx(wanted.low, rel=1e-12)
        assert np.exp(found.high[row]) == pytest.approx(wanted.high, rel=1e-12)
        assert (np.exp(low[row]), np.exp(high[row])) == pytest.approx(summary.lasting(wanted, SETTINGS), rel=1e-12)
        assert found.p_value[row] == pytest.approx(wanted.p_value, rel=1e-9, abs=1e-300)
        assert found.spread[row] == pytest.approx(wanted.pair_spread, rel=1e-9, abs=1e-15)
        assert found.hold[row] == pytest.approx(wanted.hold, rel=1e-9, abs=1e-12)
        assert found.aa_delta[row] == pytest.approx(wanted.aa_delta, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("pairs", [6, 11, 16])
@pytest.mark.parametrize("rule", ["precise", "excluded", "gains", "chosen", "promising", "unbiased"])
def test_each_rule_says_the_same(pairs: int, rule: str) -> None:
    logs, aa_logs = sessions(pairs, seed=2)
    logs, aa_logs = logs[1::2], aa_logs[1::2]  # where there is no spread, the last digit decides
    said = getattr(many, rule)(many.summarise(logs, aa_logs, SETTINGS), SETTINGS)
    wanted = []
    for row, others in zip(logs, aa_logs, strict=True):
        statistics = summary.summarise(as_session(row, others), SETTINGS)
        assert statistics
        wanted.append(getattr(summary, rule)(statistics, SETTINGS))
    assert said.tolist() == wanted
    assert any(wanted)


@pytest.mark.parametrize("selecting", [False, True])
def test_sessions_stop_where_the_product_stops_them(selecting: bool) -> None:
    logs, aa_logs = sessions(16, seed=3)
    logs, aa_logs = logs[1::2], aa_logs[1::2]
    measure = MeasureSettings(max_pairs=16)
    stopped = session(Drawn(logs, aa_logs, logs, logs, logs[:, 0]), measure, SETTINGS, selecting=selecting)
    for row in range(len(logs)):
        for pairs in range(measure.pairs, measure.max_pairs + 1):
            one = summary.summarise(as_session(logs[row, :pairs], aa_logs[row, : -(-pairs // 2)]), SETTINGS)
            assert one
            enough = summary.excluded(one, SETTINGS) or summary.precise(one, SETTINGS)
            if enough or (
                selecting and (summary.chosen(one, SETTINGS) or summary.in_vain(one, SETTINGS, measure.max_pairs))
            ):
                break
        assert stopped.pairs[row] == pairs


def test_decisions_are_those_of_evidence() -> None:
    first, second = sessions(8, seed=4), sessions(8, seed=4)
    second = second[0] + 0.002, second[1]
    runs = []
    for row in range(WORKLOADS):
        one = [as_session(first[0][row], first[1][row])]
        if passed_selection(one[0], SETTINGS):
            one.append(as_session(second[0][row], second[1][row], 2))
        runs.append(MeasuredWorkload(f"w{row}", "change", "simulated", datetime(2026, 1, 1, tzinfo=UTC), tuple(one)))
    stamp = Stamp(repo="simulated", stage_version="0", config_hash="0")
    wanted = [row.status == "kept" for row in decide_runs(runs, SETTINGS, stamp)]
    select, confirm = (many.summarise(*both, SETTINGS) for both in (first, second))
    assert many.accepted(select, confirm, SETTINGS, WORKLOADS).tolist() == wanted
    assert 0 < sum(wanted) < WORKLOADS


def test_hodges_lehmann_of_many_turns() -> None:
    logs = np.random.default_rng(5).standard_normal((20, 31))
    assert many.hodges_lehmann(logs) == pytest.approx([intervals.hodges_lehmann(row) for row in logs])


def test_q_values_of_families() -> None:
    p = np.random.default_rng(6).random((50, 12)) ** 3
    assert many.q_values(p) == pytest.approx(np.array([stability.q_values(row) for row in p]))


def test_swe_perfs_rule_is_that_of_their_filter_and_delta() -> None:
    rng = np.random.default_rng(7)
    base = 0.1 * rng.standard_normal((100, 20))
    head = 0.1 * rng.standard_normal((100, 20)) - rng.uniform(0, 0.3, (100, 1))
    gain, p = many.filtered(np.exp(base), np.exp(head), 0.1)
    for row in range(100):
        kept = stability.keep_inliers(np.exp(base[row])), stability.keep_inliers(np.exp(head[row]))
        assert gain[row] == pytest.approx(float(stability.delta(*kept)))
        assert p[row] == pytest.approx(stability.p_value(*kept), rel=1e-9)


def test_peers_tell_a_clear_gain_from_none() -> None:
    rng = np.random.default_rng(8)
    noise = 0.002 * rng.standard_normal((2, 50, 20))
    for rule in (peers.old, peers.sweperf, peers.gso, peers.swefficiency, peers.asv, peers.pyperf):
        assert rule(noise[0] + 0.3, noise[1]).all()
        assert rule(noise[0], noise[1]).mean() < 0.25
