"""Simulated machines: sequences of processes that ran on them, for the statistics benchmark.

A process's seconds are exp(machine + noise): `machine` changes slowly and is shared by
neighbouring processes, `noise` is each process's own.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from curation.blocks import Block, Run, Session
from curation.summary import hopeless
from data.settings import MeasureSettings

Floats = NDArray[np.float64]
Machine = Callable[[np.random.Generator, int], Floats]
"""Log seconds that the machine adds to each of n processes in a row."""

_LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


def still(rng: np.random.Generator, n: int) -> Floats:
    """Nothing but the processes' own noise."""
    return np.zeros(n)


def drift(rng: np.random.Generator, n: int) -> Floats:
    """A slope of up to 15 % over the session (heat, neighbours) and a random walk."""
    return np.linspace(0, rng.uniform(-0.15, 0.15), n) + np.cumsum(rng.normal(0, 0.005, n))


def bursts(rng: np.random.Generator, n: int) -> Floats:
    """Foreign load: about one process in five is 10–80 % slower, in bursts of six."""
    begins = rng.random(n) < 0.04
    burning = np.convolve(begins, np.ones(6))[:n] > 0
    return np.where(burning, rng.uniform(0.1, 0.6, n), 0.0)


def clocks(rng: np.random.Generator, n: int) -> Floats:
    """Two clock modes 25 % apart that change every ten processes or so."""
    mode = np.cumsum(rng.random(n) < 0.1) + rng.integers(0, 2)
    added: Floats = np.log(1.25) * (mode % 2)
    return added


MACHINES: dict[str, Machine] = {"still": still, "drift": drift, "bursts": bursts, "two clocks": clocks}


def sessions(
    rng: np.random.Generator,
    machine: Machine,
    noise: float,
    gains: Floats,
    settings: MeasureSettings,
    number: int,
    bias: float = 0.0,
) -> list[Session]:
    """One session of several workloads measured in the same processes, by our schedule (without futility).

    gains: true relative gain of each workload, shape (w,). bias: log seconds that the later
    processes of each block take longer (something the first left behind).
    """
    blocks = settings.blocks
    base_first = rng.permutation(np.arange(blocks) % 2 == 0)
    twice = rng.choice(np.flatnonzero(base_first), settings.aa_blocks, replace=False)
    lengths = np.full(blocks, 2)
    lengths[twice] = 3
    begins = np.cumsum(lengths) - lengths
    logs = machine(rng, int(lengths.sum())) + rng.normal(0, noise, (len(gains), int(lengths.sum()))) + bias
    logs[:, begins] -= bias
    base = np.exp(logs[:, begins + ~base_first])
    head = np.exp(logs[:, begins + base_first]) * (1 - gains[:, None])
    again = np.exp(logs[:, begins[twice] + 2])
    return [
        _session(number, *sides, base_first=base_first, twice=twice) for sides in zip(base, head, again, strict=True)
    ]


def _session(
    number: int, base: Floats, head: Floats, again: Floats, base_first: NDArray[np.bool_], twice: NDArray[np.int64]
) -> Session:
    sides = zip(base, head, base_first, strict=True)
    return Session(
        number,
        plain=tuple(Block(float(b), float(h), bool(first)) for b, h, first in sides),
        aa=tuple(Block(float(b), float(a)) for b, a in zip(base[twice], again, strict=True)),
    )


def stopped(session: Session, settings: MeasureSettings) -> Session:
    """The session cut off where the futility rule would have stopped it (A/A blocks are kept)."""
    for count in range(settings.futility_blocks, len(session.plain), settings.futility_blocks):
        short = Session(session.number, session.plain[:count], session.aa)
        if hopeless(short, settings.min_gain):
            return short
    return session


def run_of(name: str, measured: list[Session]) -> Run:
    """A run of sessions on the simulated machine."""
    return Run(name, "change", "simulated", _LONG_AGO, tuple(measured))


def seeds_samples(
    rng: np.random.Generator, machine: Machine, noise: float, gains: Floats, repeats: int = 20
) -> tuple[Floats, Floats]:
    """The seeds' order on the same machine: all runs of the base, then all of the head; shapes (w, repeats)."""
    logs = machine(rng, 2 * repeats)[None, :] + rng.normal(0, noise, (len(gains), 2 * repeats))
    base, head = np.exp(logs[:, :repeats]), np.exp(logs[:, repeats:])
    return base, head * (1 - gains[:, None])
