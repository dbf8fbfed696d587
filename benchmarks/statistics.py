"""Calibration of the decisions by simulation: `make bench-statistics` writes docs/benchmarks.md, section Statistics.

False acceptance, power, coverage and bias of our schedule and rules on simulated machines,
beside the seeds' protocol (all base runs, then all head runs; outliers beyond one
interquartile range dropped; accepted at δ ≥ 0.05, α = 0.1) on the same machines.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from dataclasses import dataclass, field
from statistics import harmonic_mean

import numpy as np

from benchmarks.intervals import HEADER, interval_table
from benchmarks.machines import MACHINES, Floats, Machine, run_of, seeds_samples, sessions, stopped
from benchmarks.report import machine_facts, replace_section
from curation.blocks import Run, Session
from curation.evidence import decide_runs, passed_selection, shows_gain, undecided
from curation.stability import delta, keep_inliers
from curation.summary import summarise
from data.records import Evidence, Stamp
from data.settings import MeasureSettings, SelectSettings

NOISES = (0.005, 0.02, 0.05, 0.15)
GAINS = (0.05, 0.10, 0.20)
SEED = 20261121
MEASURE, SELECTION = MeasureSettings(), SelectSettings()
STAMP = Stamp(repo="simulated", stage_version="0", config_hash="0")


@dataclass
class Tally:
    """Counts of one cell: a machine, a noise and a true gain."""

    workloads: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    seeds: int = 0
    covered: list[bool] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    first_errors: list[float] = field(default_factory=list)

    @property
    def accepted(self) -> float:
        """Share of the workloads that were kept."""
        return self.reasons["kept"] / self.workloads

    @property
    def unstable(self) -> float:
        """Share of the workloads that were rejected as unstable."""
        return self.reasons["unstable"] / self.workloads


def measured(rng: np.random.Generator, machine: Machine, noise: float, gains: Floats, bias: float = 0.0) -> list[Run]:
    """Runs of workloads of one change, as `curation.sessions.measure` makes them."""
    found: list[list[Session]] = [[] for _ in gains]
    chosen = list(range(len(gains)))
    for number in range(1, 2 * MEASURE.max_rounds, 2):
        both = (sessions(rng, machine, noise, gains[chosen], MEASURE, n, bias) for n in (number, number + 1))
        for i, select, confirm in zip(chosen, *both, strict=True):
            first = stopped(select, MEASURE)
            found[i] += [first, stopped(confirm, MEASURE)] if passed_selection(first, SELECTION) else [first]
        runs = [run_of(f"w{i}", seen) for i, seen in enumerate(found)]
        if not any(shows_gain(run, SELECTION) for run in runs):
            break
        chosen = [i for i in chosen if undecided(runs[i], SELECTION)]
    return runs


def cell(machine: Machine, noise: float, gain: float, workloads: int, seed: list[int], bias: float = 0.0) -> Tally:
    """Workloads on their own: the family of each is itself, so q = p, the weakest protection there is."""
    rng = np.random.default_rng(seed)
    tally = Tally()
    truth = 1 / (1 - gain)
    for _ in range(workloads):
        run = measured(rng, machine, noise, np.array([gain]), bias)[0]
        evidence = decide_runs([run], SELECTION, STAMP)[0]
        _count(tally, evidence, truth)
        _cover(tally, sessions(rng, machine, noise, np.array([gain]), MEASURE, 2, bias)[0], truth)
        tally.seeds += seeds_accept(*seeds_samples(rng, machine, noise, np.array([gain])))[0]
    return tally


def _count(tally: Tally, evidence: Evidence, truth: float) -> None:
    tally.workloads += 1
    tally.reasons[evidence.reason or "kept"] += 1
    if evidence.status == "kept":
        assert evidence.speedup
        tally.errors.append(evidence.speedup / truth - 1)
        tally.first_errors.append(evidence.sessions[0].speedup / truth - 1)


def _cover(tally: Tally, session: Session, truth: float) -> None:
    """Coverage is of a session nobody selected, so that it is the interval's own."""
    statistics = summarise(session, SELECTION)
    assert statistics
    tally.covered.append(statistics.low <= truth <= statistics.high)


def seeds_accept(base: Floats, head: Floats) -> list[bool]:
    """The seeds' decision on each workload, shapes (w, n)."""
    return [
        float(delta(keep_inliers(b), keep_inliers(h))) >= SELECTION.min_delta for b, h in zip(base, head, strict=True)
    ]


def false_tasks(machine: Machine, noise: float, changes: int, workloads: int, seed: list[int]) -> tuple[float, float]:
    """Share of changes without any effect that become tasks: (ours, the seeds'); q over the change's workloads."""
    rng = np.random.default_rng(seed)
    nothing = np.zeros(workloads)
    ours = seeds = 0
    for _ in range(changes):
        evidence = decide_runs(measured(rng, machine, noise, nothing), SELECTION, STAMP)
        ours += any(e.status == "kept" for e in evidence)
        seeds += any(seeds_accept(*seeds_samples(rng, machine, noise, nothing)))
    return ours / changes, seeds / changes


def percent(share: float) -> str:
    """A share as a percentage, '1.3 %'."""
    return f"{100 * share:.1f} %"


def effect_table(workloads: int) -> tuple[list[str], list[Tally]]:
    """Rows of the table of false acceptance and power, and the tallies behind them."""
    rows, tallies = [], []
    for m, (name, machine) in enumerate(MACHINES.items()):
        for noise in NOISES:
            cells = [
                cell(machine, noise, gain, workloads, [SEED, m, int(1e4 * noise), int(1e4 * gain)])
                for gain in (0.0, *GAINS)
            ]
            tallies += cells
            errors = [e for tally in cells[1:] for e in tally.errors]
            firsts = [e for tally in cells[1:] for e in tally.first_errors]
            row = [name, percent(noise)]
            row += [f"{percent(c.accepted)} / {percent(c.seeds / c.workloads)}" for c in cells]
            row.append(percent(float(np.mean([hit for c in cells for hit in c.covered]))))
            row.append(f"{100 * np.mean(errors):+.2f} % ({100 * np.mean(firsts):+.2f} %)" if errors else "–")
            row.append(percent(max(c.unstable for c in cells[2:])))
            rows.append("| " + " | ".join(row) + " |")
    return rows, tallies


def task_coverage(machine: Machine, noise: float, changes: int, seed: list[int]) -> float:
    """Share of changes whose task's interval (harmonic means of four workloads' ends) holds the true speedup."""
    rng = np.random.default_rng(seed)
    gains = np.array([0.1, 0.2, 0.3, 0.5])
    truth = harmonic_mean(1 / (1 - gains))
    hits = 0
    for _ in range(changes):
        found = [summarise(s, SELECTION) for s in sessions(rng, machine, noise, gains, MEASURE, 2)]
        low = harmonic_mean([statistics.low for statistics in found if statistics])
        high = harmonic_mean([statistics.high for statistics in found if statistics])
        hits += low <= truth <= high
    return hits / changes


def task_table(changes: int, workloads: int = 12) -> list[str]:
    """Rows of the table of false tasks and of the coverage of tasks' intervals."""
    rows = []
    for m, (name, machine) in enumerate(MACHINES.items()):
        cells = [name]
        for noise in NOISES:
            seed = [SEED, m, int(1e4 * noise)]
            ours, seeds = false_tasks(machine, noise, changes, workloads, seed)
            cells.append(f"{percent(ours)} / {percent(seeds)}, {percent(task_coverage(machine, noise, changes, seed))}")
        rows.append("| " + " | ".join(cells) + " |")
    return rows


def aa_table(workloads: int) -> list[str]:
    """Rows of the table of the A/A rule: stable, biased and noisy workloads with a gain of 20 %."""
    kinds = [(0.005, 0.0), (0.02, 0.0), (0.05, 0.0), (0.3, 0.0), (0.5, 0.0)]
    kinds += [(noise, bias) for noise in (0.005, 0.02, 0.05) for bias in (0.05, 0.1, 0.2)]
    rows = []
    for noise, bias in kinds:
        gain = 0.2
        tally = cell(MACHINES["still"], noise, gain, workloads, [SEED, int(1e4 * noise), int(1e4 * bias)], bias)
        others = max(0.0, 1 - tally.accepted - tally.unstable)
        row = [percent(noise), percent(bias), percent(tally.unstable), percent(tally.accepted), percent(others)]
        rows.append("| " + " | ".join(row) + " |")
    return rows


def main() -> None:
    """Runs the simulation and rewrites the section."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=300, help="simulated workloads a cell")
    parser.add_argument("--changes", type=int, default=200, help="simulated changes a cell")
    options = parser.parse_args()
    started = time.process_time()
    effects, _ = effect_table(options.workloads)
    tasks, aa = task_table(options.changes), aa_table(options.workloads)
    intervals = interval_table(NOISES, 2 * options.workloads, SEED)
    tables = [_text(options), [*_EFFECTS, *effects], [*_TASKS, *tasks], [*_AA, *aa], [*HEADER, *intervals]]
    body = "\n\n".join("\n".join(lines) for lines in tables)
    body += f"\n\n{time.process_time() - started:.0f} s of CPU time on {machine_facts()}."
    replace_section("Statistics", body)
    print(body)


def _text(options: argparse.Namespace) -> list[str]:
    return [
        f"`make bench-statistics`, seed {SEED}: {MEASURE.blocks} blocks and {MEASURE.aa_blocks} A/A blocks a session,",
        f"{options.workloads} workloads a cell. Each cell is ours / the seeds' protocol on the same machine.",
        "Workloads are decided alone (q = p), which is the least protection; in a repository there is more.",
    ]


_EFFECTS = [
    "### Acceptance by true gain, coverage and bias",
    "",
    "Coverage is of the 95 % interval of an unselected session; bias is of the published (confirming) speedup of",
    "kept workloads, in brackets that of the selecting session; *unstable* is the largest share of workloads with",
    "gains of 10 or 20 % that the A/A rule rejects.",
    "",
    "| machine | noise | no gain (false) | 5 % | 10 % | 20 % | coverage | bias | unstable |",
    "|---|---|---|---|---|---|---|---|---|",
]
_TASKS = [
    "### Tasks",
    "",
    "False tasks (ours / the seeds): changes without any effect, with 12 workloads timed in the same processes, of",
    "which one or more are kept. Then the coverage of the interval of a task's speedup (four workloads).",
    "",
    "| machine | " + " | ".join(f"noise {percent(noise)}" for noise in NOISES) + " |",
    "|---|---|---|---|---|",
]
_AA = [
    "### The A/A rule on workloads with a gain of 20 %",
    "",
    "Bias: later processes of every block take that much longer.",
    "",
    "| noise | bias | unstable | kept | other reasons |",
    "|---|---|---|---|---|",
]


if __name__ == "__main__":
    main()
