"""Calibration of the decisions by simulation: `make bench-statistics` writes docs/benchmarks.md, section Statistics.

Machines are simulated at the level of turns (`machines`), sessions and decisions follow the product's own rules
(`many`, `rounds`), and other tools' rules are asked on the same machines (`peers`). Tables: `acceptance`,
`intervals`, `sweep`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import acceptance, intervals, sweep
from benchmarks.acceptance import FAMILY, LAYOUT, MEASURE, OCCASION, SEED, SELECTION
from benchmarks.report import machine_facts, replace_section
from benchmarks.rounds import RELATIVE_OCCASION


@dataclass(frozen=True)
class Part:
    """A table with what it shows."""

    title: str
    text: str
    make: Callable[[int], str]
    share: float = 1.0
    """Workloads of a cell, as a share of those asked for."""


PARTS = (
    Part(
        "Noise",
        "Standard deviation of the log ratio of one sample: of two fresh processes one after the other, and of a pair "
        "that took turns (calls of 2 ms, Hodges-Lehmann over the turns). First row: real tests on a shared VM.",
        lambda workloads: acceptance.noise_table(),
    ),
    Part(
        "False acceptance, power, coverage and cost",
        "Share of workloads accepted after two sessions, by true gain. *Coverage*: of the 95 % interval of stopped "
        "sessions that nobody selected, the least of the five gains; *published*, *bias*, *holds*: coverage, bias and "
        "second looks that hold, of accepted workloads with gains of 5, 10 and 20 %, the worst of the three; *pairs*: "
        "of both sessions. A look holds when its interval lies above 1 and meets the published one.",
        acceptance.effect_table,
    ),
    Part("Power", "Share of workloads accepted, by true gain.", acceptance.power_plot, 0.25),
    Part(
        "Changes",
        f"Changes of {FAMILY} workloads, q-values over these: none gains; or the first gains 10 %, the others nothing.",
        acceptance.change_table,
        0.25,
    ),
    Part(
        "Other tools, in their own order",
        "Share of workloads that each accepts. *Ours before*: 20 blocks of fresh processes, δ > 0.05, two sessions. "
        "SWE-Perf: 20 runs of the base, then 20 of the head; IQR k = 1, δ ≥ 0.05. GSO: 5 and 5, ratio of means ≥ 1.2. "
        "SWE-fficiency: 20 repeats in a row, means more than one deviation apart. asv: two interleaved rounds of 5 "
        "samples, U test p < 0.002 and factor 1.1. pyperf: 20 processes of 3 values each, t-test. Calls of 3 ms.",
        acceptance.peer_table,
        0.1,
    ),
    Part(
        "Other tools' rules on our pairs",
        "The same rules, given the medians of base and head of processes that took turns: what the order alone does.",
        acceptance.rule_table,
        0.1,
    ),
    Part(
        "Predicted and realised second looks",
        "Of confirming sessions, by predicted `hold`: the share of second looks whose interval lies above 1. Workloads "
        "as a repository has them: half without gain, the rest from 0.5 to 40 %, small ones most often.",
        acceptance.hold_table,
        4.0,
    ),
    Part(
        "Intervals of few pairs",
        f"Coverage and median width (log) of Hodges-Lehmann's interval by signed ranks and of Student's t; pairs with "
        f"a spread of {intervals.SPREAD:g}, gain {intervals.GAIN:g}. With 6 pairs the first is from the smallest value "
        "to the largest.",
        intervals.interval_table,
    ),
    Part(
        "The p-value of the q-values",
        "Share of workloads without gain whose Student's t p-value is below a level, over that level: 1 is exact, less "
        "is cautious.",
        intervals.p_table,
        8.0,
    ),
    Part(
        "Settings",
        "By the spread of a pair (normal). Bold: misses its target (false acceptance ≤ 0.1 %, gains of 5 % ≥ 90 %, "
        "of 10 % ≥ 99 %, coverage ≥ 93 %, second looks hold ≥ 98 %). *Pairs*: of both sessions, workloads as a "
        "repository has them.",
        sweep.one_by_one,
        0.5,
    ),
    Part(
        "Turns or pairs",
        "The shared VM, calls of 2 ms. *Turns in all*: of one side, both sessions.",
        sweep.turns_table,
        0.25,
    ),
)


def main() -> None:
    """Runs the simulation and rewrites the section."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=12_000, help="simulated workloads a cell")
    asked = parser.parse_args()
    started = time.process_time()
    sections = [_facts(asked.workloads)]
    for part in PARTS:
        begun = time.monotonic()
        made = part.make(max(100, int(part.share * asked.workloads)))
        sections.append(f"### {part.title}\n\n{part.text}\n\n{made}")
        print(f"{sections[-1]}\n({time.monotonic() - begun:.0f} s)\n", flush=True)
    sections.append(f"{time.process_time() - started:.0f} s of CPU time on {machine_facts()}.")
    replace_section("Statistics", "\n\n".join(sections))


def _facts(workloads: int) -> str:
    return (
        f"`make bench-statistics`, seed {SEED}; {workloads} workloads in most cells. Pairs: {MEASURE.pairs} to "
        f"{MEASURE.max_pairs} in a session; smallest gain {SELECTION.min_gain:g}, hold {SELECTION.min_hold:g}, "
        f"precision {SELECTION.precision:g}. If nothing else is said, hash seeds and addresses give a pair a standard "
        f"deviation of {LAYOUT:g}, an occasion {OCCASION:g} and {RELATIVE_OCCASION:g} of the effect (log), turns and "
        "pairs the rest. Workloads are decided alone (q = p), which is the least protection; in a repository there is "
        "more."
    )


if __name__ == "__main__":
    main()
