"""Statistics of a session, and what is concluded from them, on simulated pairs."""

import math

import numpy as np
import pytest
from simulated_timings import session_of

from perfquarry.curation.settings import SelectSettings
from perfquarry.curation.summary import (
    aa_delta,
    excluded,
    gains,
    holding,
    lasting,
    margin,
    precise,
    promising,
    slower,
    smallest_speedup,
    spread,
    summarise,
    unbiased,
)

SETTINGS = SelectSettings()
NO_OCCASION = SelectSettings(occasion=0.0, relative_occasion=0.0)


def pairs(shift: float, noise: float, n: int = 12, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, n]).normal(shift, noise, n)


def of(logs, aa=(), settings: SelectSettings = SETTINGS):
    found = summarise(session_of(list(logs), list(aa)), settings)
    assert found is not None
    return found


def of_interval(low: float, high: float):
    """Six pairs whose interval is exactly that."""
    return of(np.linspace(math.log(low), math.log(high), 6))


def test_the_figures_of_a_session() -> None:
    logs, aa = pairs(math.log(1.2), 0.01), pairs(0.0, 0.01, 6, seed=1)
    found = of(logs, aa)
    assert found.n_base == found.n_head == 12
    assert 1.18 < found.low < found.speedup < found.high < 1.22
    assert found.delta < 1 - 1 / found.speedup and found.delta > 0.15
    assert found.p_value < 1e-9 and found.pair_spread == pytest.approx(0.01, abs=0.006)
    assert found.aa_spread is not None and 0 < found.aa_spread < 0.03
    assert found.hold is not None and found.hold > 0.99
    assert found.margin == pytest.approx(math.log(found.speedup) / (np.std(aa, ddof=1) / math.sqrt(12)), rel=1e-9)


def test_fewer_than_six_pairs_have_no_statistics() -> None:
    assert summarise(session_of([0.1] * 5), SETTINGS) is None
    assert summarise(session_of([]), SETTINGS) is None
    assert summarise(session_of([0.1] * 6), SETTINGS) is not None


def test_few_pairs_that_agree_by_chance_get_the_noise_of_base_against_base() -> None:
    calm, noisy = np.linspace(-0.001, 0.001, 6), np.array([-0.1, 0.1, -0.1, 0.1])
    assert spread(calm, np.array([])) == pytest.approx(float(np.std(calm, ddof=1)))
    assert spread(calm, noisy) > 0.05
    assert spread(noisy, calm) == pytest.approx(float(np.std(noisy, ddof=1))), "never less than its own"


@pytest.mark.parametrize("n", [6, 16])
@pytest.mark.parametrize("true", [1.02, 1.05, 1.2])
def test_the_predicted_probability_is_that_of_second_looks(n: int, true: float) -> None:
    """A look's prediction is as often right as it says, on the average of looks."""
    rng, noise = np.random.default_rng([n, int(1000 * true)]), 0.03
    predicted, shown = [], []
    for _ in range(250):
        first, second = (of(rng.normal(math.log(true), noise, n), settings=NO_OCCASION) for _ in range(2))
        predicted.append(first.hold)
        shown.append(second.low > 1)
    assert np.mean(predicted) == pytest.approx(np.mean(shown), abs=0.2)


def test_what_is_said_to_hold_with_98_percent_does() -> None:
    rng, kept, held = np.random.default_rng(3), 0, 0
    for _ in range(600):
        true, noise = math.log(rng.choice([1.0, 1.03, 1.06, 1.15, 1.5])), rng.choice([0.01, 0.03, 0.1])
        first, second = (of(rng.normal(true + rng.normal(0, 0.005), noise, 10)) for _ in range(2))
        if gains(first, SETTINGS):
            kept += 1
            held += second.low > 1
    assert kept > 100 and held / kept > 0.95


def test_holding_grows_with_the_gain_and_falls_with_the_noise() -> None:
    assert holding(0.1, 0.02, 8, 0.005) > holding(0.05, 0.02, 8, 0.005) > holding(0.05, 0.04, 8, 0.005)
    assert holding(0.03, 0.01, 16, 0.02) < holding(0.03, 0.01, 16, 0.0)
    assert holding(-0.1, 0.02, 8, 0.005) < 0.001 < holding(0.0, 0.02, 8, 0.005) < 0.2
    assert (holding(0.1, 0.0, 8, 0.0), holding(0.0, 0.0, 8, 0.0)) == (1.0, 0.0)


def test_what_is_published_covers_what_other_occasions_show() -> None:
    settings = SelectSettings(occasion=0.01, relative_occasion=0.02)
    rng, true, covered = np.random.default_rng(4), math.log(2.0), 0
    differs = 0.01 + 0.02 * true
    for _ in range(400):
        found = of(rng.normal(true + rng.normal(0, differs), 0.01, 10), settings=settings)
        low, high = lasting(found, settings)
        assert low < found.low < found.speedup < found.high < high
        covered += low <= 2.0 <= high
    assert covered / 400 == pytest.approx(0.95, abs=0.03)
    found = of(pairs(true, 0.01), settings=NO_OCCASION)
    assert lasting(found, NO_OCCASION) == pytest.approx((found.low, found.high))


def test_the_margin_needs_pairs_of_the_base_with_itself() -> None:
    assert margin(0.1, 9, np.array([])) is None
    assert margin(0.1, 9, np.array([0.02])) is None
    assert margin(0.1, 9, np.array([0.02, 0.02])) is None, "they agree to the last digit"
    assert margin(-0.1, 9, np.array([-0.01, 0.01])) == pytest.approx(0.1 / (math.sqrt(2) * 0.01 / 3))


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.96, 7.37, set()),
        (1.10, 1.90, {"promising"}),
        (0.20, 8.13, set()),
        (0.99, 1.01, {"precise", "excluded"}),
        (0.97, 1.02, {"excluded"}),
        (0.90, 1.02, {"excluded"}),
        (0.98, 1.05, set()),
        (1.005, 1.028, {"precise", "excluded"}),
        (1.005, 1.05, {"promising"}),
        (1.05, 1.06, {"precise", "promising", "gains"}),
        (1.9, 2.1, {"precise", "promising", "gains"}),
        (1.04, 1.08, {"promising", "gains"}),
        (1.02, 1.08, {"promising"}),
        (0.5, 0.52, {"precise", "excluded", "slower"}),
        (0.4, 0.9, {"excluded", "slower"}),
        (0.975, 0.99, {"precise", "excluded"}),
    ],
)
def test_what_follows_from_an_interval(low: float, high: float, said: set[str]) -> None:
    found = of_interval(low, high)
    assert (found.low, found.high) == pytest.approx((low, high))
    rules = {rule.__name__ for rule in (precise, excluded, promising, gains, slower) if rule(found, SETTINGS)}
    assert rules == said


def test_noise_never_excludes_a_gain() -> None:
    """A rule that says "no gain" of what is unknown loses gains: of true ones of 20 %, next to none is excluded."""
    rng = np.random.default_rng(8)
    lost = sum(excluded(of(rng.normal(math.log(1.2), noise, 6)), SETTINGS) for noise in (0.1, 0.3) for _ in range(300))
    assert lost <= 12


def test_the_smallest_gain_is_of_the_time() -> None:
    assert smallest_speedup(0.5) == 2.0
    assert not gains(of(np.full(8, math.log(1.02))), SETTINGS)
    assert gains(of(np.full(8, math.log(1.04))), SETTINGS)


def test_a_bias_of_base_against_base_is_seen_in_both_directions() -> None:
    for bias in (-0.1, 0.1):
        found = of(pairs(0.5, 0.01), pairs(bias, 0.005, 6))
        assert found.aa_delta is not None and found.aa_delta > 0.05 and not unbiased(found, SETTINGS)
    assert unbiased(of(pairs(0.5, 0.01), pairs(0.0, 0.01, 6)), SETTINGS)
    assert aa_delta(np.array([0.5, 0.5]), 0.005) is None, "too few to say"
    assert unbiased(of(pairs(0.5, 0.01), [0.5, 0.5]), SETTINGS)


def test_stopping_for_precision_keeps_the_coverage() -> None:
    """Pairs until the interval is narrow enough, 6 at least and 16 at most: it still holds the truth as often."""
    rng, hits, rounds = np.random.default_rng(4), 0, 400
    for _ in range(rounds):
        logs = rng.normal(math.log(1.1), 0.02, 16)
        found = next(
            (one for n in range(6, 17) if precise(one := of(logs[:n]), SETTINGS) or excluded(one, SETTINGS)), of(logs)
        )
        hits += found.low <= 1.1 <= found.high
    assert hits / rounds >= 0.92
