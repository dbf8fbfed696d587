"""Simulated rounds of our schedule: sessions that stop by the product's rules, the decision, and a second look."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.machines import Floats, Machine, Work
from benchmarks.many import (
    Flags,
    Summaries,
    accepted,
    chosen,
    excluded,
    hodges_lehmann,
    in_vain,
    lasting,
    precise,
    promising,
    summarise,
    unbiased,
)
from perfquarry.curation.settings import SelectSettings
from perfquarry.harness.settings import MeasureSettings

RELATIVE_OCCASION = 0.03
"""What a session differs by (standard deviation, log) for each unit of the effect, beside `occasion`."""

GROUPS, EACH = 40, 125
"""Machines of one kind (their states last differently long), and pairs simulated on each."""


@dataclass(frozen=True)
class Pool:
    """Pairs of processes of the same code that took turns on one kind of machine; shapes (groups, pairs), logs."""

    ratio: Floats
    """Base to head: Hodges-Lehmann over the turns."""
    aa: Floats
    """Base to the base again, in the same pair."""
    base: Floats
    """Median of the turns: what rules without pairs are given."""
    head: Floats

    @property
    def spread(self) -> float:
        """Standard deviation of one pair on a typical machine of the kind."""
        return float(np.median(np.std(self.ratio, axis=1)))


def pool_of(rng: np.random.Generator, machine: Machine, work: Work, groups: int = GROUPS, each: int = EACH) -> Pool:
    """Simulated at the level of turns: strictly alternating, three processes a pair, in a drawn order."""
    turns = np.arange(work.turns)
    times = (3 * turns[:, None] + np.arange(3)).reshape(-1) * work.request
    rows = groups * each
    seen = machine.at(rng, np.broadcast_to(times, (rows, len(times))), work.call, groups)
    seen = seen.reshape(rows, work.turns, 3)
    order = rng.permuted(np.broadcast_to(np.arange(3), (rows, 3)), axis=1)
    base, head, again = (np.take_along_axis(seen, order[:, None, i : i + 1], axis=2)[..., 0] for i in range(3))
    found = hodges_lehmann(base - head), hodges_lehmann(base - again), np.median(base, axis=1), np.median(head, axis=1)
    return Pool(*(values.reshape(groups, each) for values in found))


@dataclass(frozen=True)
class Drawn:
    """Sessions of many workloads with all the pairs they may have; logs."""

    logs: Floats
    aa: Floats
    base: Floats
    head: Floats
    effect: Floats
    """What the session would measure with endless pairs: the true shift and that of the occasion, by workload."""


def draw(
    rng: np.random.Generator, pool: Pool, group: np.ndarray, shift: Floats, layout: float, occasion: float, pairs: int
) -> Drawn:
    """Sessions of workloads on machines of the pool; shift (w,) is the true log of the speedup.

    layout: standard deviation of a pair by hash seeds and addresses. occasion: what this session differs by,
    and in proportion to the effect beyond that.
    """
    shape = (len(shift), pairs)
    picked = rng.integers(0, pool.ratio.shape[1], shape)
    base, head, again = (rng.normal(0, layout / np.sqrt(2), shape) for _ in range(3))
    differs = occasion + RELATIVE_OCCASION * np.abs(shift)
    effect = (shift + rng.normal(0, 1, len(shift)) * differs)[:, None]
    rows = group[:, None]
    return Drawn(
        logs=pool.ratio[rows, picked] + base - head + effect,
        aa=(pool.aa[rows, picked] + base - again)[:, ::2],
        base=pool.base[rows, picked] + base + effect,
        head=pool.head[rows, picked] + head,
        effect=effect[:, 0],
    )


def session(
    drawn: Drawn,
    measure: MeasureSettings,
    select: SelectSettings,
    interval: str = "signed rank",
    stop: bool = True,
    selecting: bool = False,
) -> Summaries:
    """Each session up to the pair at which the product would have stopped it (`curation.sessions.settled`)."""
    found = Summaries.empty(len(drawn.logs))
    active = np.arange(len(drawn.logs))
    for pairs in range(measure.pairs if stop else measure.max_pairs, measure.max_pairs + 1):
        aa_pairs = -(-pairs // measure.aa_every)
        now = summarise(drawn.logs[active, :pairs], drawn.aa[active, :aa_pairs], select, interval)
        found.put(active, now)
        settled = excluded(now, select) | precise(now, select)
        if selecting:
            settled |= chosen(now, select) | in_vain(now, select, measure.max_pairs)
        active = active[~settled]
        if not len(active):
            break
    return found


@dataclass(frozen=True)
class Round:
    """What became of the workloads."""

    select: Summaries
    confirm: Summaries
    """Meaningful where `confirmed`."""
    look: Summaries
    """A second look at all, on another occasion: a session that nobody selected."""
    seen: Floats
    """The effect on that occasion."""
    confirmed: Flags
    accepted: Flags
    settings: SelectSettings

    @property
    def holds(self) -> Flags:
        """The second look's interval lies above 1, and that for any occasion meets the published one."""
        (low, high), (published_low, published_high) = lasting(self.look, self.settings), self.published
        return (self.look.low > 0) & (low <= published_high) & (high >= published_low)

    @property
    def published(self) -> tuple[Floats, Floats]:
        """Intervals as they are published; logs. Meaningful where `confirmed`."""
        return lasting(self.confirm, self.settings)

    @property
    def covers(self) -> float:
        """Share of intervals, of sessions nobody selected, that contain the effect of their occasion."""
        return float(((self.look.low <= self.seen) & (self.seen <= self.look.high)).mean())

    @property
    def pairs(self) -> Floats:
        """Pairs that the round took, by workload."""
        found: Floats = self.select.pairs + np.where(self.confirmed, self.confirm.pairs, 0.0)
        return found


def decide(
    rng: np.random.Generator,
    pool: Pool,
    shift: Floats,
    layout: float,
    occasion: float,
    measure: MeasureSettings,
    select: SelectSettings,
    family: int = 1,
    interval: str = "signed rank",
) -> Round:
    """A round of two sessions and a second look; q-values within families of so many workloads in a row."""
    group = rng.integers(0, len(pool.ratio), len(shift))

    def one(*, selecting: bool = False) -> tuple[Summaries, Floats]:
        drawn = draw(rng, pool, group, shift, layout, occasion, measure.max_pairs)
        return session(drawn, measure, select, interval, selecting=selecting), drawn.effect

    (first, _), (second, _), (look, seen) = one(selecting=True), one(), one()
    confirmed = promising(first, select) & unbiased(first, select)
    return Round(first, second, look, seen, confirmed, accepted(first, second, select, family), select)
