"""δ, its critical counts, the outlier filter and q-values."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from perfquarry.curation.stability import STEP, critical_count, delta, delta_grid, keep_inliers, p_value, q_values

VECTORS = json.loads((Path(__file__).parent / "delta_vectors.json").read_text())
CASES = VECTORS["cases"]


def test_the_authors_filter_keeps_the_same_values():
    for case in CASES:
        assert keep_inliers(case["base"], VECTORS["iqr_k"]).tolist() == case["base_kept"]
        assert keep_inliers(case["head"], VECTORS["iqr_k"]).tolist() == case["head_kept"]


def test_the_grid_reproduces_the_authors_delta_on_every_vector():
    wrong = [
        index
        for index, case in enumerate(CASES)
        if delta_grid(case["base_kept"], case["head_kept"], VECTORS["alpha"], VECTORS["step"]) != case["delta_grid"]
    ]
    assert len(CASES) == 240
    assert wrong == []


def test_the_closed_form_agrees_within_one_step_on_untied_vectors():
    untied = [c for c in CASES if not c["ties"] and min(len(c["base_kept"]), len(c["head_kept"])) > 8]
    assert len(untied) > 100
    for case in untied:
        closed = float(delta(case["base_kept"], case["head_kept"]))
        assert 0 <= closed - case["delta_grid"] <= STEP or closed == case["delta_grid"] == 0


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 30),
    m=st.integers(2, 30),
    gain=st.floats(-0.2, 0.9),
    noise=st.floats(0.001, 0.3),
)
def test_the_closed_form_is_the_end_of_the_grid(seed: int, n: int, m: int, gain: float, noise: float):
    rng = np.random.default_rng(seed)
    base = np.exp(rng.normal(0, noise, n))
    head = (1 - gain) * np.exp(rng.normal(0, noise, m))
    closed, grid = float(delta(base, head)), delta_grid(base, head)
    assert closed - STEP - 1e-9 <= grid <= closed + 1e-9 or (grid == 0 and closed <= STEP)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(3, 25), m=st.integers(3, 25), gain=st.floats(0.01, 0.5))
@settings(max_examples=60, deadline=None)
def test_delta_is_where_significance_is_lost(seed: int, n: int, m: int, gain: float):
    rng = np.random.default_rng(seed)
    base, head = np.exp(rng.normal(0, 0.05, n)), (1 - gain) * np.exp(rng.normal(0, 0.05, m))
    edge = float(delta(base, head))
    if edge > 0:
        assert mannwhitneyu(base * (1 - edge * 0.999999), head, alternative="greater").pvalue < 0.1
        assert not mannwhitneyu(base * (1 - edge * 1.000001), head, alternative="greater").pvalue < 0.1


def test_delta_works_on_many_workloads_at_once():
    rng = np.random.default_rng(3)
    base, head = rng.uniform(1, 2, (7, 4, 12)), rng.uniform(0.5, 1.5, (7, 4, 9))
    together = delta(base, head)
    assert together.shape == (7, 4)
    assert together[3, 2] == delta(base[3, 2], head[3, 2])
    assert (together > 0).any()


def test_delta_does_not_depend_on_the_unit_of_time():
    rng = np.random.default_rng(4)
    base, head = rng.uniform(1, 1.1, 20), rng.uniform(0.7, 0.8, 20)
    assert float(delta(base * 1e-6, head * 1e-6)) == pytest.approx(float(delta(base, head)))


@pytest.mark.parametrize(("n", "m"), [(5, 5), (8, 8), (8, 20), (9, 9), (20, 20), (13, 17)])
@pytest.mark.parametrize("alpha", [0.1, 0.025, 0.005])
def test_the_critical_count_is_the_fewest_significant_wins(n: int, m: int, alpha: float):
    count = critical_count(n, m, alpha)
    assert count is not None
    head = np.arange(m, dtype=float)
    outcomes = {}
    for wins in (count - 1, count):
        base = np.array([(wins + i) // n - 0.5 + 0.2 * i / n for i in range(n)])
        statistic, p = mannwhitneyu(base, head, alternative="greater")
        assert statistic == wins
        outcomes[wins] = p < alpha
    assert outcomes == {count - 1: False, count: True}


def test_too_few_values_are_never_significant():
    assert critical_count(1, 1) is None
    assert critical_count(2, 2) is None
    assert critical_count(2, 3) is None  # the best p is exactly 0.1, and p must be below
    assert critical_count(3, 3) == 9
    assert float(delta([10.0, 10.1], [1.0, 1.1])) == 0.0
    assert delta_grid([10.0, 10.1], [1.0, 1.1]) == 0.0


def test_a_slower_head_has_no_delta():
    assert float(delta(np.linspace(1, 1.1, 20), np.linspace(2, 2.1, 20))) == 0.0
    assert delta_grid(np.linspace(1, 1.1, 20), np.linspace(2, 2.1, 20)) == 0.0


def test_times_of_zero_are_never_a_gain_of_the_base():
    assert float(delta([0.0] * 10, [0.0] * 10)) == 0.0
    assert float(delta([0.0] * 10, [0.1] * 10)) == 0.0
    assert float(delta([0.1] * 10, [0.0] * 10)) == 1.0
    assert p_value([1.0] * 10, [1.0] * 10) > 0.4


def test_the_filter_uses_interpolated_quartiles_and_keeps_the_order():
    # Q1 = 2, Q3 = 4, so the fences of k = 1 are 0 and 6, both kept
    assert keep_inliers([6.0, 2.0, 0.0, 3.0, 4.0]).tolist() == [6.0, 2.0, 0.0, 3.0, 4.0]
    assert keep_inliers([5.0, 1.0, 3.0, 2.0, 40.0, 4.0]).tolist() == [5.0, 1.0, 3.0, 2.0, 4.0]
    assert keep_inliers([]).tolist() == []


def test_q_values_are_benjamini_and_hochbergs():
    assert q_values([0.01, 0.04, 0.03, 0.9]) == pytest.approx([0.04, 4 * 0.04 / 3, 4 * 0.04 / 3, 0.9])
    assert q_values([]) == []
