"""Speedups and their intervals."""

import itertools

import numpy as np
import pytest

from perfquarry.curation.intervals import (
    hodges_lehmann,
    paired_delta,
    ratio_of_medians,
    shift_interval,
    shift_p_value,
    unpaired_interval,
)
from perfquarry.harness.alternation import figures


def paired_interval(base, head):
    """Interval of the speedup from seconds of pairs."""
    interval = shift_interval(np.log(np.divide(base, head)))
    return None if interval is None else tuple(np.exp(interval))


def coverage(interval, n: int, noise, shared, workloads: int = 600, speedup: float = 1.25) -> float:
    """Share of simulated workloads whose interval holds the true speedup."""
    rng = np.random.default_rng(20261121)
    hits = 0
    for _ in range(workloads):
        machine = shared(rng, n)
        base = speedup * np.exp(machine + noise(rng, n))
        head = np.exp(machine + noise(rng, n))
        low, high = interval(base, head)
        hits += low <= speedup <= high
    return hits / workloads


def white(rng, n):
    return rng.normal(0, 0.05, n)


def skewed(rng, n):
    return rng.exponential(0.1, n)


def still(rng, n):
    return np.zeros(n)


def drifting(rng, n):
    return np.linspace(0, rng.uniform(-0.3, 0.3), n)


def two_clocks(rng, n):
    return 0.25 * rng.integers(0, 2, n)


@pytest.mark.parametrize("noise", [white, skewed])
@pytest.mark.parametrize("shared", [still, drifting, two_clocks])
@pytest.mark.parametrize("n", [8, 20])
def test_paired_intervals_hold_the_truth_whatever_the_blocks_share(noise, shared, n):
    assert coverage(paired_interval, n, noise, shared) >= 0.93


@pytest.mark.parametrize("n", [5, 20])
def test_unpaired_intervals_hold_the_truth(n):
    assert coverage(unpaired_interval, n, white, still) >= 0.93


def test_pairs_are_narrower_where_the_machine_drifts():
    rng = np.random.default_rng(1)
    machine = np.linspace(0, 0.4, 20)
    base, head = 2 * np.exp(machine + rng.normal(0, 0.01, 20)), np.exp(machine + rng.normal(0, 0.01, 20))
    narrow, wide = paired_interval(base, head), unpaired_interval(base, head)
    assert narrow is not None
    assert wide is not None
    assert np.log(narrow[1] / narrow[0]) < np.log(wide[1] / wide[0]) / 3
    assert narrow[0] < np.exp(hodges_lehmann(np.log(base / head))) < narrow[1]


@pytest.mark.parametrize("n", [6, 9, 12])
def test_the_paired_interval_inverts_the_signed_rank_test(n):
    """The ends are where the exact signed-rank distribution, enumerated, leaves at most 2.5 % outside."""
    sums = np.array([sum(r for r, s in enumerate(signs, 1) if s) for signs in itertools.product((0, 1), repeat=n)])
    rng = np.random.default_rng(n)
    base, head = np.exp(rng.normal(0.3, 0.1, n)), np.exp(rng.normal(0, 0.1, n))
    interval = paired_interval(base, head)
    assert interval is not None
    for inside, rejected in ((interval[0] * 1.0001, False), (interval[0] * 0.9999, True)):
        shifted = np.log(base / head) - np.log(inside)
        ranks = np.argsort(np.argsort(np.abs(shifted))) + 1
        below = ranks[shifted < 0].sum()
        assert (np.mean(sums <= below) <= 0.025) == rejected


def test_too_little_data_has_no_interval():
    assert paired_interval([2.0] * 5, [1.0] * 5) is None
    assert paired_interval([2.0] * 6, [1.0] * 6) == pytest.approx((2.0, 2.0))
    assert unpaired_interval([2.0] * 3, [1.0] * 3) is None
    assert unpaired_interval([2.0] * 4, [1.0] * 4) == pytest.approx((2.0, 2.0))
    assert ratio_of_medians([], [1.0]) is None


def test_times_of_zero_have_no_interval():
    assert ratio_of_medians([1.0], [0.0]) is None
    assert unpaired_interval([1.0] * 9, [0.0] * 9) is None


def test_the_speedup_is_base_over_head():
    assert ratio_of_medians([3.0, 1.0, 2.0], [0.5, 1.0, 4.0, 1.0]) == 2.0


@pytest.mark.parametrize("n", [1, 5, 6, 9, 16])
def test_the_standard_library_alone_gives_the_same_figures(n):
    logs = np.random.default_rng(n).normal(0.2, 0.1, n)
    assert figures.hodges_lehmann(list(logs)) == pytest.approx(hodges_lehmann(logs))
    low_middle_high, interval = figures.paired(list(logs)), shift_interval(logs)
    if interval is None:
        assert low_middle_high is None
    else:
        assert low_middle_high == pytest.approx((interval[0], hodges_lehmann(logs), interval[1]))


def test_one_pair_far_away_moves_nothing_much():
    logs = np.array([0.10, 0.11, 0.09, 0.105, 0.095, 0.1, 0.1, 0.1])
    far = np.append(logs[:-1], 3.0)
    assert hodges_lehmann(far) == pytest.approx(hodges_lehmann(logs), abs=0.01)


def test_p_values_of_pairs():
    assert shift_p_value(np.array([0.1])) == 1.0
    assert shift_p_value(np.full(6, 0.25)) == 0
    assert shift_p_value(np.zeros(6)) == shift_p_value(np.full(6, -0.25)) == 1
    rng = np.random.default_rng(2)
    under_null = [shift_p_value(rng.normal(0, 0.02, 6)) for _ in range(2000)]
    assert np.mean(np.array(under_null) <= 0.05) == pytest.approx(0.05, abs=0.02)
    assert shift_p_value(rng.normal(0.1, 0.02, 6)) < 2**-6, "a rank test could not say so"


def test_delta_of_pairs_is_the_largest_gain_that_the_test_still_shows():
    logs = np.log(1.25) + np.linspace(-0.01, 0.01, 12)
    assert 0.19 < paired_delta(logs, 0.1) < 0.2
    assert paired_delta(-logs, 0.1) == 0.0
    assert paired_delta(logs[:2], 0.1) == 0.0, "too few pairs"
