"""Decisions on workloads from rows of the timings table."""

from datetime import UTC, datetime

import numpy as np
import pytest
from simulated_timings import MACHINE, STAMP, session_rows, timing

from curation.blocks import runs_of
from curation.evidence import decide, passed_selection, undecided
from data.records import Reason, Timing
from data.settings import SelectSettings
from data.store import TableStore

SETTINGS = SelectSettings()


def both(workload: str, **options):
    return session_rows(workload, 1, **options) + session_rows(workload, 2, **options)


def only(rows, settings=SETTINGS):
    (evidence,) = decide(rows, settings, STAMP)
    return evidence


def test_a_confirmed_gain_is_kept_with_the_confirming_sessions_figures():
    rows = session_rows("w", 1, speedup=1.5) + session_rows("w", 2, speedup=1.4)
    evidence = only(rows)
    assert (evidence.status, evidence.reason) == ("kept", None)
    assert evidence.speedup == pytest.approx(1.4, rel=0.01)
    assert evidence.low < 1.4 < evidence.high
    assert evidence.delta == evidence.sessions[1].delta
    assert evidence.p_value == evidence.sessions[0].p_value
    assert [s.session for s in evidence.sessions] == [1, 2]
    assert evidence.sessions[0].speedup == pytest.approx(1.5, rel=0.01)
    assert "confirmed" in evidence.detail
    assert "20 blocks" in evidence.detail
    assert (evidence.repo, evidence.config_hash) == (STAMP.repo, STAMP.config_hash)


@pytest.mark.parametrize(
    ("rows", "again"),
    [
        (both("w", speedup=1.5), False),
        (session_rows("w", 1), False),
        (both("w", speedup=1.5, aa_bias=1.1), True),
        (session_rows("w", 1, speedup=1.5) + session_rows("w", 2, speedup=1.5, aa_bias=1.1), True),
        (session_rows("w", 1, speedup=1.5) + session_rows("w", 2), False),
        (session_rows("w", 1, speedup=1.5) + session_rows("w", 2, speedup=1.15, noise=0.2, seed=5), True),
        (both("w", speedup=1.3, noise=0.4, seed=3), True),
        (session_rows("w", 1, noise=0.4, seed=3), True),
        (session_rows("w", 1, speedup=0.3, noise=0.4, seed=3), False),
        (both("w", speedup=1.3, noise=0.4, seed=3, outcome="failed"), False),
        (both("w", speedup=1.3, noise=0.4, seed=3) + session_rows("w", 3, speedup=1.3), False),
    ],
)
def test_noise_alone_asks_for_another_round(rows, again):
    (run,) = runs_of(rows)
    assert undecided(run, SETTINGS) is again


def test_a_gain_that_only_the_pairs_show_asks_for_another_round():
    """Milliseconds of a real session on a machine whose clock had two modes, with changes within blocks."""
    base = "1.18 1.22 1.14 1.17 2.30 2.21 2.30 2.12 2.19 2.23 2.21 2.22 1.82 2.13 2.34 1.24 1.34 1.35 2.30 2.18"
    head = "1.42 1.38 0.77 0.81 1.40 1.43 1.49 1.39 1.46 1.46 1.43 1.42 1.31 1.49 1.28 1.52 0.83 0.89 1.42 1.52"
    confirm = [
        timing("w", 2, block, side, float(value) / 1000, position=place, hash_seed=block)
        for block, pair in enumerate(zip(base.split(), head.split(), strict=True))
        for place, (side, value) in enumerate(zip(("base", "head"), pair, strict=True))
    ]
    (run,) = runs_of(session_rows("w", 1, speedup=1.5) + confirm)
    found = only(session_rows("w", 1, speedup=1.5) + confirm)
    assert found.reason == Reason.NOT_CONFIRMED
    assert found.low > 1.1
    assert undecided(run, SETTINGS)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (both("w"), Reason.NO_GAIN),
        (both("w", speedup=1.03), Reason.NO_GAIN),
        (both("w", speedup=0.8), Reason.SLOWER),
        (session_rows("w", 1, speedup=0.97), Reason.NO_GAIN),
        (session_rows("w", 1, speedup=0.7, blocks=5), Reason.SLOWER),
        (session_rows("w", 1, blocks=5), Reason.NO_GAIN),
        (session_rows("w", 1, speedup=1.5, blocks=5), Reason.TOO_FEW_SAMPLES),
        (session_rows("w", 1, speedup=1.5, blocks=2), Reason.TOO_FEW_SAMPLES),
        (session_rows("w", 1, speedup=1.5), Reason.TOO_FEW_SAMPLES),
        (session_rows("w", 1, speedup=1.5) + session_rows("w", 2, speedup=1.5, blocks=6), Reason.TOO_FEW_SAMPLES),
        (session_rows("w", 1, speedup=1.5) + session_rows("w", 2), Reason.NOT_CONFIRMED),
        (session_rows("w", 1, speedup=1.5) + session_rows("w", 2, blocks=5), Reason.NOT_CONFIRMED),
        (
            session_rows("w", 1, speedup=1.5) + session_rows("w", 2, speedup=1.15, noise=0.2, seed=5),
            Reason.NOT_CONFIRMED,
        ),
        (both("w", speedup=1.5, aa_bias=1.1), Reason.UNSTABLE),
        (both("w", speedup=1.5, aa_bias=0.9), Reason.UNSTABLE),
        (session_rows("w", 1, speedup=1.5) + session_rows("w", 2, speedup=1.5, aa_bias=1.1), Reason.UNSTABLE),
        (both("w", speedup=1.3, noise=0.4, seed=3), Reason.UNSTABLE),
        (both("w", cold_speedup=1.5), Reason.COLD_ONLY),
        (session_rows("w", 1, cold_speedup=4.0, blocks=5), Reason.COLD_ONLY),
        (both("w", speedup=1.5, outcome="failed"), Reason.WORKLOAD_FAILED),
        (both("w", speedup=1.5, outcome="crashed"), Reason.WORKLOAD_FAILED),
        (both("w", speedup=1.5, outcome="timeout"), Reason.WORKLOAD_TIMEOUT),
        (both("w", speedup=1.5, samples=[]), Reason.TOO_FEW_SAMPLES),
    ],
)
def test_the_reason_of_each_rejection(rows, reason):
    evidence = only(rows)
    assert (evidence.status, evidence.reason) == ("rejected", reason)
    assert evidence.detail


def test_noise_of_first_calls_is_rarely_taken_for_a_gain():
    """Nothing confirms first calls, so their level is 0.01; at 0.1 and 0.05 in p and q, 7 of these 300 would pass."""
    rng = np.random.default_rng(7)
    rows = session_rows("w", 1, blocks=5)

    def reason() -> Reason | None:
        noisy = [row.model_copy(update={"cold": row.cold * np.exp(rng.normal(0, 0.1))}) for row in rows]
        return only(noisy).reason

    assert [reason() for _ in range(300)].count(Reason.COLD_ONLY) <= 3


def test_one_failing_process_is_enough():
    rows = both("w", speedup=1.5)
    bad = rows[17].model_copy(update={"outcome": "failed", "samples": []})
    assert only([*rows[:17], bad, *rows[18:]]).reason == Reason.WORKLOAD_FAILED


def test_the_family_is_the_whole_repository():
    """One workload with p near 0.01 is kept alone and not among 60 hopeless ones."""
    lucky = both("lucky", speedup=1.3, noise=0.12, blocks=8, seed=0)
    alone = only(lucky)
    assert alone.status == "kept"
    assert alone.p_value == alone.q_value > 0.001
    crowd = [row for i in range(60) for row in session_rows(f"w{i}", 1, blocks=5)]
    evidence = decide([*lucky, *crowd], SETTINGS, STAMP)[0]
    assert evidence.q_value == pytest.approx(61 * alone.p_value)
    assert evidence.reason == Reason.NOT_SIGNIFICANT


def test_order_and_length_are_those_of_the_workloads():
    rows = both("b", speedup=2) + session_rows("a", 1) + both("c", speedup=1.2)
    assert [e.workload_id for e in decide(rows, SETTINGS, STAMP)] == ["b", "a", "c"]
    assert decide([], SETTINGS, STAMP) == []


def test_a_disturbed_attempt_gives_way_to_the_next_one():
    rows = both("w", speedup=1.5)
    slow = [row.model_copy(update={"samples": [99.0], "disturbed": True}) for row in rows if row.block < 15]
    again = [row.model_copy(update={"attempt": 1}) if row.block < 15 else row for row in rows]
    undisturbed, repeated = only(rows), only(slow + again)
    assert repeated.sessions == undisturbed.sessions
    assert "disturbed" not in repeated.detail
    half = [row for row in slow if row.side == "base"]  # killed in the middle of the repetition
    later = [row.model_copy(update={"attempt": 1}) for row in half]
    assert only(rows + later).sessions == undisturbed.sessions


def test_machines_are_never_pooled():
    other = MACHINE.model_copy(update={"machine_id": "m2"})
    old, new = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
    first = both("w", speedup=1.5, created_at=old)
    second = both("w", speedup=1.2, machine=other, created_at=new)
    evidence = only(first + second)
    assert evidence.speedup == pytest.approx(1.2, rel=0.02)
    assert "1 other machine(s) left out" in evidence.detail
    unfinished = session_rows("w", 1, speedup=1.2, machine=other, created_at=new)
    assert only(first + unfinished).speedup == pytest.approx(1.5, rel=0.02)


def test_tables_in_which_a_second_machine_wrote_over_a_part_of_the_first_decide_by_one_machine(tmp_path):
    """Rows have the same keys on every machine: what the newer ones leave of the older run is no part of theirs."""
    other = MACHINE.model_copy(update={"machine_id": "m2"})
    old, new = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
    store = TableStore(tmp_path)
    store.append(both("w", speedup=1.5, created_at=old))
    second = session_rows("w", 1, speedup=1.0, blocks=12, machine=other, created_at=new)
    store.append(second)
    evidence = only(list(store.records(Timing, "sample")))
    assert evidence.sessions == only(second).sessions
    assert (evidence.reason, evidence.speedup) == (Reason.NO_GAIN, pytest.approx(1.0, abs=0.02))


def test_a_block_value_is_the_median_of_its_samples():
    rows = [timing("w", 1, 0, "base", 2.0), timing("w", 1, 0, "head", 1.0)]
    (run,) = runs_of(rows)
    (block,) = run.sessions[0].plain
    assert (block.base, block.head) == (2.0, 1.0)


def test_the_base_of_a_block_is_that_of_its_comparison_with_itself():
    rows = [timing("w", 1, 3, side, seconds, hash_seed=8) for side, seconds in (("base", 2.0), ("head", 1.0))]
    again = timing("w", 1, 3, "head", 2.1, aa=True, position=2, hash_seed=8)
    own = [timing("w", 1, 3, side, seconds, aa=True, hash_seed=9) for side, seconds in (("base", 4.0), ("head", 5.0))]
    for extra, pairs in (([again], [(2.0, 2.1)]), (own, [(4.0, 5.0)]), (own[1:], [])):
        (session,) = runs_of(rows + extra)[0].sessions
        assert [(block.base, block.head) for block in session.plain] == [(2.0, 1.0)]
        assert [(block.base, block.head) for block in session.aa] == pairs


def test_what_is_measured_again():
    def first(**options):
        return runs_of(session_rows("w", 1, **options))[0].sessions[0]

    assert passed_selection(first(speedup=1.3), SETTINGS)
    assert not passed_selection(first(), SETTINGS)
    assert not passed_selection(first(speedup=1.3, aa_bias=1.2), SETTINGS)
    assert not passed_selection(first(speedup=1.3, blocks=7), SETTINGS)
    assert not passed_selection(first(speedup=1.3, outcome="failed"), SETTINGS)


def test_stable_workloads_pass_the_aa_rule_and_nothing_passes_without_effect():
    """300 repositories' worth of single workloads (q = p): the A/A rule costs < 2 %, false acceptance < 1 %."""
    unstable = accepted = 0
    for seed in range(300):
        gain = only(both("w", speedup=1.2, noise=0.05, seed=seed))
        unstable += gain.reason == Reason.UNSTABLE
        accepted += only(both("w", noise=0.05, seed=seed)).status == "kept"
    assert unstable < 6
    assert accepted < 3
