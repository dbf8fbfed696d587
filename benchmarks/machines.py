"""Simulated machines: what they add to the log seconds of calls, at the times of the calls, many workloads at once.

Everything a machine does to a call is a sum of states that last: each is drawn anew from its law at random moments,
on average every so many seconds (clock modes 0.1–10 s, bursts of load milliseconds, drift minutes), and on top of
that each call has noise of its own. So the same machine can be asked about calls that take turns (milliseconds
apart) and about processes one after the other (seconds apart).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Floats]
"""Draws log seconds, not negative where they come from others."""

PIECE = 0.004
"""Longer calls are as slow as the machine is on average in pieces of so many seconds."""
START = 0.3
"""Seconds from the end of one process's timed calls to the beginning of the next one's."""


@dataclass(frozen=True)
class State:
    """Something that slows all calls while it lasts."""

    shortest: float
    """Mean seconds until it is drawn anew; one workload has one value, log-uniform between these two."""
    longest: float
    draw: Draw


@dataclass(frozen=True)
class Machine:
    """A machine, by what disturbs it."""

    call_noise: float
    """Standard deviation of each call's own noise (log)."""
    states: tuple[State, ...] = field(default=())
    left_over: float = 0.0
    """Share of calls with milliseconds of others in them that the clock of the call could not leave out."""

    def at(self, rng: np.random.Generator, times: Floats, seconds: float, groups: int = 0) -> Floats:
        """Log seconds added to calls of so many seconds that begin at these times; shapes (w, t) → (w, t).

        Rows of one of the `groups` (equally many in a row) share a machine; 0: each row has its own.
        """
        groups, pieces = groups or len(times), round(seconds / PIECE)
        if pieces > 1:
            begins = (times[:, :, None] + PIECE * np.arange(pieces)).reshape(len(times), -1)
            seen = np.exp(self.at(rng, begins, PIECE, groups)).reshape(*times.shape, pieces)
            averages: Floats = np.log(seen.mean(axis=2))
            return averages
        gaps = np.diff(times, axis=1, prepend=times[:, :1])
        found = self.call_noise * rng.standard_normal(times.shape)
        for state in self.states:
            lasts = np.exp(rng.uniform(np.log(state.shortest), np.log(state.longest), (groups, 1)))
            found += held(rng, gaps, np.repeat(lasts, len(times) // groups, axis=0), state.draw)
        if self.left_over:
            hit = rng.random(times.shape) < self.left_over
            found += np.where(hit, np.log1p(rng.uniform(0.001, 0.01, times.shape) / seconds), 0.0)
        return found


def held(rng: np.random.Generator, gaps: Floats, lasts: Floats, draw: Draw) -> Floats:
    """A value that is drawn anew at rate 1/lasts, seen at moments so many seconds apart; shapes (w, t), (w, 1)."""
    anew = rng.random(gaps.shape) < -np.expm1(-gaps / lasts)
    anew[:, 0] = True
    newest = np.maximum.accumulate(np.where(anew, np.arange(gaps.shape[1]), 0), axis=1)
    return np.take_along_axis(draw(rng, gaps.shape), newest, axis=1)


def two_clocks(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """One in three times the clock is 1.8 times slower."""
    return np.where(rng.random(shape) < 1 / 3, np.log(1.8), 0.0)


def some(share: float, most: float) -> Draw:
    """That share of the time something takes up to `most` of the call's seconds again."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        return np.where(rng.random(shape) < share, np.log1p(rng.uniform(0, most, shape)), 0.0)

    return draw


def heat(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Slow changes of 5 %."""
    found: Floats = 0.05 * rng.standard_normal(shape)
    return found


DRIFT = State(20.0, 200.0, heat)
CLOCKS = State(0.1, 10.0, two_clocks)
BURSTS = State(0.002, 0.02, some(0.1, 1.0))
STEAL = State(0.02, 2.0, some(0.2, 0.5))

MACHINES: dict[str, Machine] = {
    "still": Machine(0.005),
    "drift": Machine(0.02, (DRIFT,)),
    "bursts": Machine(0.05, (DRIFT, BURSTS), left_over=0.01),
    "two clocks": Machine(0.02, (DRIFT, CLOCKS)),
    "shared VM": Machine(0.13, (DRIFT, CLOCKS, BURSTS, STEAL), left_over=0.02),
    "loaded VM": Machine(0.25, (DRIFT, CLOCKS, BURSTS, STEAL), left_over=0.05),
}


@dataclass(frozen=True)
class Work:
    """What is measured: seconds of a call and of all that is done around it, and the turns of a side in a pair."""

    call: float
    request: float
    turns: int


SHORT, MIDDLE, LONG = Work(0.0002, 0.0026, 96), Work(0.003, 0.0041, 60), Work(0.02, 0.0215, 11)
"""What the schedule makes of calls of 0.2, 3 and 20 ms (`harness.alternation.turns.calls_of_pair`)."""


def process_values(
    rng: np.random.Generator, machine: Machine, begins: Floats, calls: int, seconds: float, rest: float = 0.0
) -> Floats:
    """Log seconds of each call of processes that begin at these times; shapes (w, p) → (w, p, calls)."""
    times = begins[:, :, None] + (seconds + rest) * np.arange(calls)
    rows, processes = begins.shape
    return machine.at(rng, times.reshape(rows, -1), seconds).reshape(rows, processes, calls)
