"""Turns of partners, without processes behind them."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from perfquarry.harness.alternation.figures import agree, standard_error
from perfquarry.harness.alternation.turns import (
    FIRST_LOOK,
    Call,
    alternate,
    calls_of_pair,
    calls_of_turn,
    phases,
    untimed_calls,
)
from perfquarry.harness.contracts import PartnerFailed


@dataclass
class Noted:
    """A partner that notes what is done with it."""

    name: str
    notes: list[tuple[str, ...]]
    fails_at: int = -1
    running: bool = False
    calls: int = 0

    def go(self) -> None:
        self.running = True
        self.notes.append((self.name, "go"))

    def stop(self) -> None:
        self.running = False
        self.notes.append((self.name, "stop"))

    def turn(self, node: str, untimed: int, drawn: Sequence[float]) -> list[Call]:
        assert self.running
        self.calls += 1
        self.notes.append((self.name, str(untimed), *(f"{phase:.6f}" for phase in drawn)))
        if self.calls == self.fails_at:
            raise PartnerFailed("failed", "as it was asked to")
        return [(float(self.calls), phase, 0.0) for phase in drawn]


@pytest.mark.parametrize("names", ["AB", "BA", "ACB"])
@pytest.mark.parametrize(("untimed", "together"), [(0, 1), (1, 1), (1, 2), (1, 8)])
def test_partners_take_turns_strictly_in_the_order_given(names: str, untimed: int, together: int) -> None:
    notes: list[tuple[str, ...]] = []
    drawn = phases(random.Random(1), 5)
    found = alternate([Noted(one, notes) for one in names], "node", untimed, drawn, together)
    expected: list[tuple[str, ...]] = []
    for begin in range(0, 5, together):
        shown = [f"{phase:.6f}" for phase in drawn[begin : begin + together]]
        for one in names:
            expected += [(one, "go"), (one, str(untimed), *shown), (one, "stop")]
    assert notes == expected
    assert found == [[(1 + number // together, drawn[number], 0.0) for number in range(5)] for _ in names]


@pytest.mark.parametrize("together", [1, 5])
def test_turns_end_for_all_where_the_calls_so_far_are_enough(together: int) -> None:
    looks: list[int] = []

    def enough(found: list[list[Call]]) -> bool:
        assert len({len(calls) for calls in found}) == 1
        looks.append(len(found[0]))
        return len(looks) == 3

    drawn = phases(random.Random(1), 20 * FIRST_LOOK)
    found = alternate([Noted(one, []) for one in "ABC"], "node", 0, drawn, together, enough)
    assert looks == ([24, 48, 96] if together == 1 else [25, 50, 100])
    assert [len(calls) for calls in found] == [looks[-1]] * 3


def test_partners_agree_when_their_ratio_is_known_by_the_noise_of_their_turns() -> None:
    rng = random.Random(5)
    clock = [math.exp(rng.choice((0.0, 0.5))) for _ in range(64)]  # the same for all: it cancels
    sides = [[slow * side * math.exp(rng.gauss(0, 0.04)) for slow in clock] for side in (1.0, 0.2, 1.0)]
    expected = 0.04 * math.sqrt(2 / 64)
    assert agree(sides, 1.3 * expected) and not agree(sides, 0.7 * expected)
    assert not agree([sides[0], [*sides[1][:32], *sides[1][:32][::-1]]], 1.3 * expected), "calls belong together"
    errors = [standard_error([rng.gauss(3, 1) for _ in range(100)]) for _ in range(200)]
    assert sum(errors) / 200 == pytest.approx(0.1, rel=0.1)


@pytest.mark.parametrize("at", [1, 3, 4])
def test_all_are_stopped_after_a_failure(at: int) -> None:
    notes: list[tuple[str, ...]] = []
    partners = [Noted("A", notes), Noted("B", notes, fails_at=at), Noted("C", notes)]
    with pytest.raises(PartnerFailed):
        alternate(partners, "node", 1, phases(random.Random(1), 9), 2)
    assert not any(one.running for one in partners)


def test_short_calls_have_an_untimed_one_and_many_rounds() -> None:
    assert (untimed_calls(0.01, 0.0009), untimed_calls(0.01, 0.0011)) == (1, 0)
    assert calls_of_pair(0.001, 0.0001, 0.25, 5, 96) == 96
    assert calls_of_pair(0.005, 0.004, 0.25, 5, 96) == 50
    assert calls_of_pair(0.005, 0.0005, 0.25, 5, 96) == 25, "each turn has two calls"
    assert calls_of_pair(0.005, 0.0005, 0.25, 5, 96, together=4) == 40, "the untimed one is shared"
    assert calls_of_turn(0.005, 0.0005) == 1 and calls_of_turn(0.0005, 0.0005) == 6
    assert calls_of_turn(0.0, 0.0) == 8 and calls_of_turn(0.002, 0.0015) == 1
    assert calls_of_pair(10.0, 10.0, 0.25, 5, 96) == 5
    assert untimed_calls(1.0, 0.0001) == 0 and calls_of_pair(0.05, 0.0001, 0.5, 5, 96) == 10, "fixtures come between"
    assert calls_of_pair(0.0, 0.0, 0.25, 5, 96) == 96


def test_phases_are_parts_of_the_whole_and_drawn_anew() -> None:
    drawn = phases(random.Random(3), 200)
    assert all(0 <= one < 1 for one in drawn) and len(set(drawn)) == 200
    assert drawn == phases(random.Random(3), 200) != phases(random.Random(4), 200)
