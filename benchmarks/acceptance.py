"""Tables of the simulated decisions: noise, false acceptance and power, changes, peers, the predicted `hold`."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass

import numpy as np

from benchmarks.charts import line_plot
from benchmarks.machines import LONG, MACHINES, MIDDLE, SHORT, START, Floats, Machine, Work, process_values
from benchmarks.peers import PEERS, accepts, old, pyperf
from benchmarks.report import percent, table
from benchmarks.rounds import Pool, Round, decide, draw, pool_of
from perfquarry.curation.settings import SelectSettings
from perfquarry.harness.settings import MeasureSettings

SEED = 20261121
MEASURE, SELECTION = MeasureSettings(), SelectSettings()
GAINS = (0.0, 0.03, 0.05, 0.10, 0.20)
LAYOUT, OCCASION = 0.01, 0.005
FAMILY = 12
MEASURED = {12: 0.074, 24: 0.055, 48: 0.037, 96: 0.024, 160: 0.0175}
"""Spread of a pair by turns, of real tests on the two-core VM (calls of 10 µs to 30 ms)."""


@functools.cache
def pool(name: str, work: Work = MIDDLE) -> Pool:
    """Pairs simulated on a machine."""
    return pool_of(_generator(name, *map(str, (work.call, work.turns))), MACHINES[name], work)


def _generator(*words: object) -> np.random.Generator:
    return np.random.default_rng([SEED, *(byte for word in words for byte in str(word).encode())])


def noise_table() -> str:
    """Spread of one pair by turns on every machine, and of two fresh processes one after the other."""
    rows = [["measured on the VM", "0.322", *(f"{spread:.3f}" for spread in MEASURED.values())]]
    for name, machine in MACHINES.items():
        rng = _generator("noise", name)
        spreads = [pool_of(rng, machine, Work(0.002, 0.0031, turns), 10, 40).spread for turns in MEASURED]
        rows.append([name, f"{_fresh(rng, machine):.3f}", *(f"{spread:.4f}" for spread in spreads)])
    return table(["machine", "fresh, 50 ms", *(f"{turns} turns" for turns in MEASURED)], rows)


def _fresh(rng: np.random.Generator, machine: Machine) -> float:
    begins = np.broadcast_to(np.arange(2) * (START + 0.05), (2000, 2))
    values = np.median(process_values(rng, machine, begins, 20, 0.002, 0.0011), axis=2)
    return float(np.std(values[:, 0] - values[:, 1]))


@dataclass(frozen=True)
class Cell:
    """Workloads of one gain on one machine."""

    shift: float
    round: Round

    @property
    def accepted(self) -> float:
        """Share of the workloads that are accepted."""
        return float(self.round.accepted.mean())

    @property
    def published(self) -> tuple[float, float, float]:
        """Of accepted workloads: coverage of the published interval, bias of the speedup, share that holds."""
        kept, confirm, (low, high) = self.round.accepted, self.round.confirm, self.round.published
        if not kept.any():
            return (float("nan"),) * 3
        covered = ((low <= self.shift) & (self.shift <= high))[kept].mean()
        bias = np.expm1(confirm.shift[kept] - self.shift).mean()
        return float(covered), float(bias), float(self.round.holds[kept].mean())


def cell(
    source: Pool,
    gain: float,
    workloads: int,
    *words: object,
    layout: float = LAYOUT,
    occasion: float = OCCASION,
    measure: MeasureSettings = MEASURE,
    select: SelectSettings = SELECTION,
) -> Cell:
    """Workloads on their own: the family of each is itself (q = p), the weakest protection there is."""
    shift = -float(np.log1p(-gain))
    shifts = np.full(workloads, shift)
    return Cell(shift, decide(_generator(gain, *words), source, shifts, layout, occasion, measure, select))


def effect_table(workloads: int) -> str:
    """False acceptance, power, coverage, bias, share that holds, and cost by machine and layout."""
    kinds = [(name, MIDDLE, LAYOUT) for name in MACHINES]
    kinds += [("still", MIDDLE, 0.02), ("still", MIDDLE, 0.04), ("shared VM", MIDDLE, 0.02)]
    kinds += [("shared VM", SHORT, LAYOUT), ("shared VM", LONG, LAYOUT)]
    rows = []
    for name, work, layout in kinds:
        source = pool(name, work)
        cells = [cell(source, gain, workloads, name, work, layout, layout=layout) for gain in GAINS]
        figures = np.array([one.published for one in cells[2:]])
        spread = float(np.hypot(source.spread, layout))
        rows.append(
            [
                f"{name}, {work.turns} turns",
                percent(layout),
                percent(spread),
                percent(cells[0].accepted, 2),
                *(percent(one.accepted) for one in cells[1:]),
                percent(min(one.round.covers for one in cells)),
                percent(float(np.nanmin(figures[:, 0]))),
                f"{100 * figures[np.nanargmax(np.abs(figures[:, 1])), 1]:+.2f} %",
                percent(float(np.nanmin(figures[:, 2]))),
                f"{cells[0].round.pairs.mean():.1f} / {cells[2].round.pairs.mean():.1f}",
            ]
        )
    heads = ["machine", "layout", "pair spread", "no gain", *(f"{100 * gain:.0f} %" for gain in GAINS[1:])]
    return table([*heads, "coverage", "published", "bias", "holds", "pairs: none / 5 %"], rows)


def change_table(changes: int) -> str:
    """Changes of 12 workloads: none gains; one gains 10 %."""
    rows = []
    for name in MACHINES:
        rng = _generator("changes", name)
        nothing = np.zeros(changes * FAMILY)
        null = decide(rng, pool(name), nothing, LAYOUT, OCCASION, MEASURE, SELECTION, FAMILY).accepted
        shifts = np.where(np.arange(changes * FAMILY) % FAMILY, 0.0, -np.log1p(-0.1))
        mixed = decide(rng, pool(name), shifts, LAYOUT, OCCASION, MEASURE, SELECTION, FAMILY).accepted
        mixed = mixed.reshape(-1, FAMILY)
        false = null.reshape(-1, FAMILY).any(axis=1).mean()
        shares = [float(false), float(null.mean()), float(mixed[:, 0].mean()), float(mixed[:, 1:].any(axis=1).mean())]
        rows.append([name, *(percent(share, 2) for share in shares)])
    heads = [
        "machine",
        "changes falsely accepted",
        "their workloads",
        "the gain of 10 % is found",
        "beside it, a false one",
    ]
    return table(heads, rows)


def peer_table(workloads: int) -> str:
    """Ours and others', each in its own order of processes, on the same machines."""
    rows = []
    for name, machine in MACHINES.items():
        for gain in (0.0, 0.05, 0.10, 0.20):
            mine = cell(pool(name), gain, 4 * workloads, "peers", name)
            rng = _generator("peers", name, gain)
            others = [accepts(rng, peer, machine, MIDDLE, workloads, mine.shift, LAYOUT) for peer in PEERS]
            rows.append(
                [name, f"{100 * gain:.0f} %", percent(mine.accepted), *(percent(float(f.mean())) for f in others)]
            )
    return table(["machine", "gain", "ours", *(peer.name for peer in PEERS)], rows)


def rule_table(workloads: int) -> str:
    """The same rules on the values that our alternation gives them: what is left is the rule."""
    rows = []
    for name in MACHINES:
        for gain in (0.0, 0.05, 0.10, 0.20):
            mine = cell(pool(name), gain, 4 * workloads, "peers", name)
            rng = _generator("rules", name, gain)
            shares = []
            for peer in PEERS:
                found = np.ones(workloads, dtype=bool)
                for _ in range(2 if peer.rule is old else 1):
                    group = rng.integers(0, len(pool(name).ratio), workloads)
                    count = 20 if peer.rule is pyperf else peer.values
                    drawn = draw(rng, pool(name), group, np.full(workloads, mine.shift), LAYOUT, OCCASION, count)
                    found &= peer.rule(drawn.base, drawn.head)
                shares.append(percent(float(found.mean())))
            rows.append([name, f"{100 * gain:.0f} %", percent(mine.accepted), *shares])
    return table(["machine", "gain", "ours", *(peer.name for peer in PEERS)], rows)


def population(rng: np.random.Generator, workloads: int) -> Floats:
    """Log speedups as a repository has them: half none, the rest from 0.5 to 40 %, small ones most often."""
    gains = np.exp(rng.uniform(np.log(0.005), np.log(0.4), workloads))
    return np.where(rng.random(workloads) < 0.5, 0.0, gains)


def hold_table(workloads: int) -> str:
    """Predicted `hold` of confirming sessions against the share of second looks that show the gain."""
    bins = np.array([0.0, 0.2, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999, 1.0 + 1e-9])
    rows, series = [], {"as predicted": [(0.0, 0.0), (1.0, 1.0)]}
    for name in ("drift", "bursts", "shared VM", "loaded VM"):
        rng = _generator("hold", name)
        found = decide(rng, pool(name), population(rng, workloads), LAYOUT, OCCASION, MEASURE, SELECTION)
        hold, shown = found.confirm.hold[found.confirmed], (found.look.low > 0)[found.confirmed]
        place = np.digitize(hold, bins) - 1
        cells = [name]
        points = []
        for i in range(len(bins) - 1):
            inside = place == i
            cells.append(f"{percent(float(shown[inside].mean()))} of {inside.sum()}" if inside.sum() >= 20 else "–")
            if inside.sum() >= 20:
                points.append((float(hold[inside].mean()), float(shown[inside].mean())))
        cells.append(percent(float(found.holds[found.accepted].mean())))
        rows.append(cells)
        series[name] = points
    names = [f"{low:g}–{high:.4g}" for low, high in itertools.pairwise(bins)]
    ticks = ([0, 0.2, 0.4, 0.6, 0.8, 1.0],) * 2
    plot = line_plot("hold", "Gains that a second look shows", series, ("predicted", "share"), ticks)
    return plot + "\n\n" + table(["machine", *names, "accepted: hold"], rows)


def power_plot(workloads: int) -> str:
    """Share accepted by true gain."""
    gains = (0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.10, 0.12)
    series = {
        name: [(100 * gain, cell(pool(name), gain, workloads, "plot", name).accepted) for gain in gains]
        for name in MACHINES
    }
    ticks = ([0, 2, 4, 6, 8, 10, 12], [0, 0.25, 0.5, 0.75, 1.0])
    return line_plot("power", "Accepted workloads by true gain", series, ("gain, %", "share"), ticks)
