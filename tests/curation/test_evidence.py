"""Decisions on workloads from rows of the timings table."""

from datetime import UTC, datetime

import numpy as np
import pyarrow.parquet as pq
import pytest
from simulated_timings import MACHINE, STAMP, rows_of_pairs, session_rows, timing, turned

from perfquarry.curation.blocks import runs_of
from perfquarry.curation.evidence import decide, decide_runs, passed_selection
from perfquarry.curation.settings import SelectSettings
from perfquarry.data.records import Reason, Timing
from perfquarry.data.store import TableStore

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
    assert "20 pairs" in evidence.detail
    assert (evidence.repo, evidence.config_hash) == (STAMP.repo, STAMP.config_hash)


WIDE = [(0.96, 7.37), (1.10, 1.90), (0.20, 8.13), (0.90, 1.20), (1.001, 1.06)]


def pairs_of(session: int, low: float, high: float):
    """Six pairs whose interval is exactly that."""
    return rows_of_pairs("w", session, np.linspace(np.log(low), np.log(high), 6))


@pytest.mark.parametrize(("low", "high"), WIDE)
def test_noise_is_never_a_fact(low: float, high: float):
    """Of real workloads; the older rule said "no gain" and "not confirmed" of them."""
    first, confirming = only(pairs_of(1, low, high)), only(session_rows("w", 1, speedup=1.5) + pairs_of(2, low, high))
    assert (confirming.low, confirming.high) == pytest.approx((low, high))
    assert confirming.reason == Reason.UNDECIDED
    assert first.reason == (Reason.UNDECIDED if low <= 1 else Reason.TOO_FEW_SAMPLES)
    assert "noise leaves open" in confirming.detail and "a second look would show it with" in confirming.detail


def test_however_wide_the_interval_it_is_never_said_that_there_is_no_gain():
    rng = np.random.default_rng(11)
    for _ in range(200):
        spread, shift = rng.uniform(0.2, 1.0), rng.uniform(0.1, 0.7)
        reasons = {
            only(rows_of_pairs("w", 1, rng.normal(shift, spread, 8))).reason,
            only(session_rows("w", 1, speedup=1.5) + rows_of_pairs("w", 2, rng.normal(shift, spread, 8))).reason,
        }
        assert not reasons & {Reason.NO_GAIN, Reason.NOT_CONFIRMED}


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (both("w"), Reason.NO_GAIN),
        (both("w", speedup=1.02), Reason.NO_GAIN),
        (both("w", speedup=0.8), Reason.SLOWER),
        (session_rows("w", 1, speedup=0.97), Reason.NO_GAIN),
        (session_rows("w", 1, speedup=0.7, blocks=6), Reason.SLOWER),
        (session_rows("w", 1, blocks=6), Reason.NO_GAIN),
        (session_rows("w", 1, speedup=1.5, blocks=5), Reason.TOO_FEW_SAMPLES),
        (session_rows("w", 1, speedup=1.5, blocks=2), Reason.TOO_FEW_SAMPLES),
        (session_rows("w", 1, speedup=1.5), Reason.TOO_FEW_SAMPLES),
        (session_rows("w", 1, speedup=1.5) + session_rows("w", 2, speedup=1.5, blocks=5), Reason.TOO_FEW_SAMPLES),
        (session_rows("w", 1, speedup=1.5) + session_rows("w", 2), Reason.NOT_CONFIRMED),
        (session_rows("w", 1, speedup=1.5) + session_rows("w", 2, blocks=6), Reason.NOT_CONFIRMED),
        (
            session_rows("w", 1, speedup=1.5) + session_rows("w", 2, speedup=1.15, noise=0.2, seed=5),
            Reason.UNDECIDED,
        ),
        (both("w", speedup=1.5, aa_bias=1.1), Reason.UNSTABLE),
        (both("w", speedup=1.5, aa_bias=0.9), Reason.UNSTABLE),
        (session_rows("w", 1, speedup=1.5) + session_rows("w", 2, speedup=1.5, aa_bias=1.1), Reason.UNSTABLE),
        (both("w", speedup=1.3, noise=0.4, seed=3), Reason.UNDECIDED),
        (both("w", cold_speedup=1.5), Reason.COLD_ONLY),
        (session_rows("w", 1, cold_speedup=4.0, blocks=8), Reason.COLD_ONLY),
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
    rows = session_rows("w", 1, blocks=8)

    def reason() -> Reason | None:
        noisy = [row.model_copy(update={"cold": row.cold * np.exp(rng.normal(0, 0.1))}) for row in rows]
        return only(noisy).reason

    assert [reason() for _ in range(300)].count(Reason.COLD_ONLY) <= 3


def test_one_failing_process_is_enough():
    rows = both("w", speedup=1.5)
    bad = rows[17].model_copy(update={"outcome": "failed", "samples": []})
    assert only([*rows[:17], bad, *rows[18:]]).reason == Reason.WORKLOAD_FAILED


def test_the_family_is_the_whole_repository():
    """One workload with p near 0.001 is kept alone and not among 60 hopeless ones."""
    first = rows_of_pairs("lucky", 1, np.log(1.3) + np.linspace(-0.25, 0.22, 8))
    lucky = first + session_rows("lucky", 2, speedup=1.3)
    alone = only(lucky)
    assert alone.status == "kept"
    assert alone.p_value == alone.q_value > 0.001
    crowd = [row for i in range(60) for row in session_rows(f"w{i}", 1, blocks=6)]
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
    assert not passed_selection(first(speedup=1.3, blocks=5), SETTINGS)
    (small,) = runs_of(pairs_of(1, 1.001, 1.05))[0].sessions
    assert passed_selection(small, SETTINGS), "a larger gain is not excluded"
    (smaller,) = runs_of(pairs_of(1, 1.001, 1.02))[0].sessions
    assert not passed_selection(smaller, SETTINGS)
    assert not passed_selection(first(speedup=1.3, outcome="failed"), SETTINGS)


def test_stable_workloads_pass_the_aa_rule_and_nothing_passes_without_effect():
    """200 repositories' worth of single workloads (q = p): the A/A rule costs < 2 %, false acceptance < 1 %."""
    unstable = accepted = 0
    for seed in range(200):
        gain = only(both("w", speedup=1.2, noise=0.05, seed=seed))
        unstable += gain.reason == Reason.UNSTABLE
        accepted += only(both("w", noise=0.05, seed=seed)).status == "kept"
    assert unstable < 4
    assert accepted < 2


def test_turns_cancel_what_both_sides_share():
    """Call by call the sides have the same noise of 30 %: only ratios of turns distinguish a gain of 5 % from it."""
    rows = both("w", speedup=1.05, noise=0.002, blocks=8)
    evidence = only(turned(rows))
    assert evidence.status == "kept"
    assert evidence.speedup == pytest.approx(1.05, abs=0.01)
    fresh = [
        row.model_copy(update={"schedule": "fresh", "samples": row.samples[:4] if row.side == "base" else row.samples})
        for row in turned(rows)
    ]
    assert only(fresh).status == "rejected", "medians of other calls do not"


def test_what_was_measured_by_itself_from_some_pair_on_is_judged_by_that_alone():
    """Both schedules in one session: calls in fresh processes and in turns are not the same thing."""
    rows = both("w", speedup=2.0, blocks=8)
    beside = [row.model_copy(update={"schedule": "turns"}) for row in session_rows("w", 1, speedup=9.0, blocks=2)]
    moved = [row.model_copy(update={"block": row.block + 50, "hash_seed": row.hash_seed + 50}) for row in beside]
    mixed, pure = only(moved + rows), only(rows)
    assert mixed.sessions == pure.sessions
    assert mixed.sessions[0].alone and "in processes of its own" in mixed.detail
    assert not only(turned(rows)).sessions[0].alone


NEW_COLUMNS = ["schedule", "outside", "untimed", "stopped", "order_seed", "copied"]


def test_rows_of_older_homes_stay_readable_and_decidable(tmp_path):
    """A part of the table as it was written before there were turns."""
    rows = both("w", speedup=1.5)
    store = TableStore(tmp_path)
    store.append(rows)
    [part] = tmp_path.rglob("*.parquet")
    table = pq.read_table(part)
    pq.write_table(table.drop_columns(NEW_COLUMNS), part)
    assert not set(NEW_COLUMNS) & set(pq.read_schema(part).names)
    store.append(turned(both("v", speedup=1.2)))
    read = list(TableStore(tmp_path).records(Timing, "sample"))
    assert {(row.workload_id, row.schedule) for row in read} == {("w", "fresh"), ("v", "turns")}
    evidence = {one.workload_id: one for one in decide(read, SETTINGS, STAMP)}
    assert {one.status for one in evidence.values()} == {"kept"}
    assert evidence["w"].speedup == pytest.approx(1.5, rel=0.02)


def test_figures_can_be_recomputed_from_the_stored_rows(tmp_path):
    rows = turned(both("w", speedup=1.1) + both("v")) + both("u", speedup=1.3) + both("f", outcome="failed")
    store = TableStore(tmp_path)
    for start in range(0, len(rows), 50):
        store.append(rows[start : start + 50])
    read = list(TableStore(tmp_path).records(Timing, "sample"))

    def figures(timings):
        return {e.workload_id: e.model_dump(exclude={"created_at"}) for e in decide(timings, SETTINGS, STAMP)}

    assert figures(read) == figures(rows) == figures(list(reversed(read)))
    assert decide_runs(runs_of(rows), SETTINGS, STAMP)[0].sessions == decide(rows, SETTINGS, STAMP)[0].sessions
