"""Three intervals of the speedup on simulated machines: why `curation.intervals` uses the one it uses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.machines import MACHINES, Floats, sessions
from curation.intervals import paired_interval, unpaired_interval
from data.settings import MeasureSettings

GAIN = 0.1
RESAMPLES = 1000


def block_bootstrap(base: Floats, head: Floats) -> tuple[float, float]:
    """Percentile interval of the ratio of medians, blocks resampled together, seeded."""
    picked = np.random.default_rng(0).integers(0, len(base), (RESAMPLES, len(base)))
    ratios = np.median(base[picked], axis=1) / np.median(head[picked], axis=1)
    low, high = np.quantile(ratios, (0.025, 0.975))
    return float(low), float(high)


CANDIDATES: dict[str, Callable[[Floats, Floats], tuple[float, float] | None]] = {
    "signed ranks of pairs": paired_interval,
    "rank sum, unpaired": unpaired_interval,
    "block bootstrap": block_bootstrap,
}

HEADER = [
    "### Intervals: coverage and median width (log units) at a gain of 10 %",
    "",
    "| machine | noise | " + " | ".join(CANDIDATES) + " |",
    "|---|---|" + "---|" * len(CANDIDATES),
]


def interval_table(noises: tuple[float, ...], workloads: int, seed: int) -> list[str]:
    """One row a machine and noise: coverage and width of each candidate."""
    rows = []
    for m, (name, machine) in enumerate(MACHINES.items()):
        for noise in noises:
            rng = np.random.default_rng([seed, m, int(1e4 * noise), 1])
            measured = [
                sessions(rng, machine, noise, np.array([GAIN]), MeasureSettings(), 1)[0] for _ in range(workloads)
            ]
            cells = []
            for interval in CANDIDATES.values():
                ends = np.array([interval(session.base, session.head) for session in measured])
                truth = 1 / (1 - GAIN)
                covered = np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
                cells.append(f"{100 * covered:.1f} %, {np.median(np.log(ends[:, 1] / ends[:, 0])):.4f}")
            rows.append("| " + " | ".join([name, f"{100 * noise:.1f} %", *cells]) + " |")
    return rows
