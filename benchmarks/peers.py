"""The rules of others, and ours of before, on the same simulated machines: each in its own order of processes.

A rule reads log seconds of base and head, shapes (w, n), and says of each workload whether the head is faster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from benchmarks.machines import START, Floats, Machine, Work, process_values
from benchmarks.many import Flags, filtered, walsh

INSTALL = 60.0
"""Seconds between the last run of the base and the first of the head where a patch is installed in between."""
OLD_SECONDS, OLD_CALLS, OLD_BLOCKS = 0.05, 40, 20

Rule = Callable[[Floats, Floats], Flags]
Sampler = Callable[[np.random.Generator, Machine, Work, int], tuple[Floats, Floats]]


@dataclass(frozen=True)
class Peer:
    """A schedule and a rule."""

    name: str
    sample: Sampler
    rule: Rule
    values: int
    """Values of a side that the rule reads."""
    processes: int
    """From so many processes of a side."""


def old(base: Floats, head: Floats) -> Flags:
    """One session of ours before: outliers dropped, δ > 0.05, p ≤ 0.05, the pairs' interval above 1.

    Without the rules on base against base and without further rounds.
    """
    gain, p = filtered(np.exp(base), np.exp(head), 0.1)
    averages = walsh(base - head)
    return (gain > 0.05) & (p <= 0.05) & (averages[:, 52] > 0)


def sweperf(base: Floats, head: Floats) -> Flags:
    """SWE-Perf: IQR with k = 1, then the largest x at which base · (1 − x) is still greater (U test, 0.1) ≥ 0.05."""
    return filtered(np.exp(base), np.exp(head), 0.1)[0] >= 0.05


def gso(base: Floats, head: Floats) -> Flags:
    """GSO: ratio of means at least 1.2 (the tests of a problem; 1.1 where fewer than five reach it)."""
    flags: Flags = np.exp(base).mean(axis=1) / np.exp(head).mean(axis=1) >= 1.2
    return flags


def swefficiency(base: Floats, head: Floats) -> Flags:
    """SWE-fficiency: the mean falls by more than the larger standard deviation."""
    before, after = np.exp(base), np.exp(head)
    fall = before.mean(axis=1) - after.mean(axis=1)
    flags: Flags = fall > np.maximum(before.std(axis=1), after.std(axis=1))
    return flags


def asv(base: Floats, head: Floats) -> Flags:
    """asv: exact two-sided U test with p < 0.002, and a ratio of medians beyond 1.1."""
    p = scipy.stats.mannwhitneyu(base, head, axis=1, method="exact").pvalue
    return (p < 0.002) & (np.median(base, axis=1) - np.median(head, axis=1) > np.log(1.1))


def pyperf(base: Floats, head: Floats) -> Flags:
    """pyperf: Student's two-sample t-test, two-sided, 5 %; no smallest gain."""
    before, after = np.exp(base), np.exp(head)
    test = scipy.stats.ttest_ind(before, after, axis=1)
    return (test.pvalue < 0.05) & (before.mean(axis=1) > after.mean(axis=1))


def _in_a_row(
    rng: np.random.Generator, machine: Machine, work: Work, rows: int, each: int, gap: float, calls: int
) -> tuple[Floats, Floats]:
    """All processes of the base, then all of the head: log seconds of their calls, shapes (w, each, calls)."""
    lasts = START + calls * work.request
    begins = np.arange(2 * each) * lasts + gap * (np.arange(2 * each) >= each)
    seen = process_values(rng, machine, np.broadcast_to(begins, (rows, 2 * each)), calls, work.call, _rest(work))
    return seen[:, :each], seen[:, each:]


def _rest(work: Work) -> float:
    return work.request - work.call


def _blocks(rng: np.random.Generator, machine: Machine, work: Work, rows: int) -> tuple[Floats, Floats]:
    """Ours before: blocks of two fresh processes in random order, 50 ms of calls each; medians."""
    calls = int(np.clip(OLD_SECONDS / work.call, 1, OLD_CALLS))
    begins = np.arange(2 * OLD_BLOCKS) * (START + calls * work.request)
    seen = process_values(rng, machine, np.broadcast_to(begins, (rows, len(begins))), calls, work.call, _rest(work))
    values = np.median(seen, axis=2).reshape(rows, OLD_BLOCKS, 2)
    swapped = rng.random((rows, OLD_BLOCKS)) < 0.5
    return np.where(swapped, values[..., 1], values[..., 0]), np.where(swapped, values[..., 0], values[..., 1])


def _sweperf(rng: np.random.Generator, machine: Machine, work: Work, rows: int) -> tuple[Floats, Floats]:
    base, head = _in_a_row(rng, machine, work, rows, 20, 0.0, 1)
    return base[..., 0], head[..., 0]


def _gso(rng: np.random.Generator, machine: Machine, work: Work, rows: int) -> tuple[Floats, Floats]:
    base, head = _in_a_row(rng, machine, work, rows, 5, INSTALL, 1)
    return base[..., 0], head[..., 0]


def _swefficiency(rng: np.random.Generator, machine: Machine, work: Work, rows: int) -> tuple[Floats, Floats]:
    base, head = _in_a_row(rng, machine, work, rows, 1, INSTALL, 20)
    return base[:, 0], head[:, 0]


def _asv(rng: np.random.Generator, machine: Machine, work: Work, rows: int) -> tuple[Floats, Floats]:
    """Two rounds of base and head in turn; five samples of 10 ms in each process."""
    number = max(1, round(0.01 / work.call))
    begins = np.arange(4) * (START + 0.1 + 5 * number * work.call)
    seen = process_values(rng, machine, np.broadcast_to(begins, (rows, 4)), 5 * number, work.call)
    samples = np.log(np.exp(seen).reshape(rows, 4, 5, number).mean(axis=3))
    return samples[:, ::2].reshape(rows, -1), samples[:, 1::2].reshape(rows, -1)


def _pyperf(rng: np.random.Generator, machine: Machine, work: Work, rows: int) -> tuple[Floats, Floats]:
    """20 processes of three values of 0.1 s, of which eight moments are looked at."""
    begins = np.arange(40) * (START + 0.4)
    seen = process_values(rng, machine, np.broadcast_to(begins, (rows, 40)), 24, work.call, 0.0125 - work.call)
    values = np.log(np.exp(seen).reshape(rows, 40, 3, 8).mean(axis=3))
    return values[:, :20].reshape(rows, -1), values[:, 20:].reshape(rows, -1)


PEERS = (
    Peer("ours before", _blocks, old, 20, 20),
    Peer("SWE-Perf", _sweperf, sweperf, 20, 20),
    Peer("GSO", _gso, gso, 5, 5),
    Peer("SWE-fficiency", _swefficiency, swefficiency, 20, 1),
    Peer("asv", _asv, asv, 10, 2),
    Peer("pyperf", _pyperf, pyperf, 60, 20),
)


def accepts(
    rng: np.random.Generator, peer: Peer, machine: Machine, work: Work, rows: int, shift: float, layout: float
) -> Flags:
    """Which workloads with that log speedup a peer accepts, in its own order of processes; ours before confirms."""
    found = np.ones(rows, dtype=bool)
    for _ in range(2 if peer.rule is old else 1):
        base, head = peer.sample(rng, machine, work, rows)
        found &= peer.rule(base + shift + _layout(rng, peer, rows, layout), head + _layout(rng, peer, rows, layout))
    return found


def _layout(rng: np.random.Generator, peer: Peer, rows: int, layout: float) -> Floats:
    """What addresses and hash seeds add to the values of each process."""
    drawn = rng.normal(0, layout / np.sqrt(2), (rows, peer.processes))
    return np.repeat(drawn, peer.values // peer.processes, axis=1)
