"""Which settings reach the targets at least cost: sweeps over the spread of a pair and over the settings."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from benchmarks.acceptance import MEASURE, OCCASION, SELECTION, pool, population
from benchmarks.machines import Work
from benchmarks.report import percent, table
from benchmarks.rounds import GROUPS, Pool, decide
from perfquarry.curation.settings import SelectSettings
from perfquarry.harness.settings import MeasureSettings

SPREADS = (0.01, 0.02, 0.03, 0.04)
EACH = 250
TARGETS = {"false": 0.001, "five": 0.90, "ten": 0.99, "coverage": 0.93, "holds": 0.98}


def law_pool(rng: np.random.Generator, spread: float, law: str) -> Pool:
    """Pairs whose processes differ by a law with that spread of a pair: 'normal', or 'heavy' (Student's t, 4)."""
    drawn = rng.standard_normal((3, GROUPS, EACH)) if law == "normal" else rng.standard_t(4, (3, GROUPS, EACH))
    base, head, again = drawn / (np.sqrt(2) if law == "normal" else 2.0) * spread
    return Pool(base - head, base - again, base, -head)


@dataclass(frozen=True)
class Figures:
    """What settings come to at one spread."""

    false: float
    five: float
    ten: float
    coverage: float
    """The least of gains of 0, 5, 10 and 20 %."""
    holds: float
    pairs: float
    """Of a workload of the population, both sessions."""

    def cells(self) -> list[str]:
        """For a table; what misses its target is bold."""
        names = ("false", "five", "ten", "coverage", "holds")
        texts = [percent(getattr(self, name), 2 if name == "false" else 1) for name in names]
        missed = [getattr(self, name) < TARGETS[name] for name in names]
        missed[0] = self.false > TARGETS["false"]
        return [f"**{t}**" if miss else t for t, miss in zip(texts, missed, strict=True)] + [f"{self.pairs:.1f}"]


HEADS = ("no gain", "5 %", "10 %", "coverage", "holds", "pairs")


def figures(
    source: Pool,
    workloads: int,
    layout: float,
    measure: MeasureSettings,
    select: SelectSettings,
    occasion: float = OCCASION,
    interval: str = "signed rank",
) -> Figures:
    """What the settings come to on a machine; the seed is the same for all settings."""
    shifts = [-float(np.log1p(-gain)) for gain in (0.0, 0.05, 0.10, 0.20)]
    rounds = []
    for number, shift in enumerate(shifts):
        rng = np.random.default_rng([20261121, number])
        rounds.append(decide(rng, source, np.full(workloads, shift), layout, occasion, measure, select, 1, interval))
    rng = np.random.default_rng([20261121, 9])
    mixed = decide(rng, source, population(rng, 2 * workloads), layout, occasion, measure, select, 1, interval)
    return Figures(
        *(float(one.accepted.mean()) for one in rounds[:3]),
        coverage=min(one.covers for one in rounds),
        holds=float(mixed.holds[mixed.accepted].mean()),
        pairs=float(mixed.pairs.mean()),
    )


Change = dict[str, float]


def changed(change: Change) -> tuple[MeasureSettings, SelectSettings]:
    """The defaults with some of them changed."""
    measured = {name: value for name, value in change.items() if name in MeasureSettings.model_fields}
    selected = {name: value for name, value in change.items() if name not in measured}
    return MEASURE.model_copy(update=measured), SELECTION.model_copy(update=selected)


ONE_BY_ONE: tuple[Change, ...] = (
    {},
    {"max_pairs": 12},
    {"max_pairs": 16},
    {"pairs": 8, "min_pairs": 8},
    {"precision": 0.0075},
    {"precision": 0.010},
    {"precision": 0.020},
    {"relative_precision": 0.0},
    {"min_gain": 0.02},
    {"occasion": 0.0025},
    {"occasion": 0.008},
    {"min_hold": 0.90},
    {"min_hold": 0.98},
    {"max_pairs": 32, "precision": 0.010},
    {"pairs": 8, "min_pairs": 8, "max_pairs": 32, "precision": 0.010},
)
"""Each by itself, then those that were found to help together."""


def one_by_one(workloads: int, changes: Iterable[Change] = ONE_BY_ONE) -> str:
    """Each setting changed by itself, at each spread of a pair."""
    rows = []
    for spread, change in itertools.product(SPREADS, changes):
        source = law_pool(np.random.default_rng([20261121, 5]), spread, "normal")
        found = figures(source, workloads, 0.0, *changed(change))
        rows.append([percent(spread, 0), _name(change), *found.cells()])
    return table(["pair spread", "changed", *HEADS], rows)


def turns_table(workloads: int, layout: float = 0.01) -> str:
    """What more turns and more pairs buy on the shared machine, and the turns of a side that a workload takes."""
    rows = []
    for turns, pairs in itertools.product((24, 48, 96), (12, 16, 24)):
        source = pool("shared VM", Work(0.002, 0.0031, turns))
        one = figures(source, workloads, layout, *changed({"max_pairs": pairs}))
        spread = float(np.hypot(source.spread, layout))
        rows.append([str(turns), str(pairs), percent(spread), *one.cells(), f"{turns * one.pairs:.0f}"])
    return table(["turns", "max_pairs", "pair spread", *HEADS, "turns in all"], rows)


def _name(change: Change) -> str:
    shown = {name: value for name, value in change.items() if name != "min_pairs"}
    return ", ".join(f"{name} {value:g}" for name, value in shown.items()) or "defaults"
