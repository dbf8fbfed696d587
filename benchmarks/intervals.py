"""The interval of few pairs and the p-value of q-values: signed ranks against Student's t, by the law of a pair."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.acceptance import MEASURE, SELECTION
from benchmarks.machines import Floats
from benchmarks.many import p_values, summarise
from benchmarks.report import percent, table
from benchmarks.rounds import Drawn, session

SPREAD, GAIN = 0.02, 0.05
"""Of a pair (log), and the true gain of the sessions that stop."""
LEVELS = (0.05, 0.005, 0.0005)
Law = Callable[[np.random.Generator, tuple[int, ...]], Floats]


def _normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return rng.standard_normal(shape)


def _heavy(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return rng.standard_t(3, shape) / np.sqrt(3)


def _outliers(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """One process in twenty is disturbed: five times the deviation, always slower."""
    drawn = rng.standard_normal(shape)
    return np.where(rng.random(shape) < 0.05, 5 * np.abs(drawn), drawn)


def _two_layouts(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Two layouts of memory, one in four processes has the slower one, and little else."""
    return np.where(rng.random(shape) < 0.25, 2.2, 0.0) + 0.3 * rng.standard_normal(shape)


LAWS: dict[str, Law] = {"normal": _normal, "t, 3": _heavy, "outliers": _outliers, "two layouts": _two_layouts}


def drawn_pairs(rng: np.random.Generator, law: Law, workloads: int, pairs: int, shift: float) -> Drawn:
    """Pairs whose processes have the law; base and head the same one."""
    base, head, again = (law(rng, (workloads, pairs)) * SPREAD / np.sqrt(2) for _ in range(3))
    effect = np.full(workloads, shift)
    return Drawn(base - head + shift, (base - again)[:, ::2], base, head, effect)


def interval_table(workloads: int) -> str:
    """Coverage and median width with a fixed number of pairs, and in sessions that stop."""
    rows = []
    shift = -float(np.log1p(-GAIN))
    for name, law in LAWS.items():
        rng = np.random.default_rng([20261121, len(name)])
        drawn = drawn_pairs(rng, law, workloads, MEASURE.max_pairs, shift)
        for interval in ("signed rank", "student"):
            cells = [name, interval]
            for pairs in (6, 8, 12, 16):
                found = summarise(drawn.logs[:, :pairs], drawn.aa[:, : pairs // 2], SELECTION, interval)
                covered = ((found.low <= shift) & (shift <= found.high)).mean()
                cells.append(f"{percent(float(covered))}, {np.median(found.high - found.low):.4f}")
            stopped = session(drawn, MEASURE, SELECTION, interval)
            covered = ((stopped.low <= shift) & (shift <= stopped.high)).mean()
            cells.append(f"{percent(float(covered))}, {np.median(stopped.high - stopped.low):.4f}")
            cells.append(f"{stopped.pairs.mean():.1f}")
            rows.append(cells)
    heads = ["law of a process", "interval", *(f"{n} pairs" for n in (6, 8, 12, 16)), "stopped session", "its pairs"]
    return table(heads, rows)


def p_table(workloads: int) -> str:
    """Share of workloads without gain whose Student's t p-value is below a level, over that level."""
    rows = []
    for name, law in LAWS.items():
        rng = np.random.default_rng([20261121, len(name), 1])
        drawn = drawn_pairs(rng, law, workloads, MEASURE.max_pairs, 0.0)
        stopped = session(drawn, MEASURE, SELECTION).p_value
        cells = [name]
        for p in (p_values(drawn.logs[:, :6]), p_values(drawn.logs), stopped):
            cells += [f"{(p < level).mean() / level:.2f}" for level in LEVELS]
        rows.append(cells)
    kinds = ("6 pairs", f"{MEASURE.max_pairs} pairs", "stopped")
    return table(["law of a process", *(f"{kind}, {level:g}" for kind in kinds for level in LEVELS)], rows)
