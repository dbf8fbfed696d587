"""GSO's and SWE-Perf's own rules on our raw timings: what their harnesses would say of the same seconds.

Their code has no intervals and no second look, so these differ from our verdicts near the thresholds; how much is
in the report. `make bench-agreement` compares both with the projects' public code.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from perfquarry.curation.evaluation.outcomes import seconds_of
from perfquarry.curation.stability import delta_grid, keep_inliers
from perfquarry.data.records import Grade, Record

GSO_LEAST = 1.2
"""Geometric-mean speedup over the base, rounded to one decimal, that GSO asks for (its MIN_PROB_SPEEDUP)."""
GSO_OPT = 0.95
"""Harmonic-mean speedup over the expert's that must be exceeded (its OPT_THRESH)."""

Times = Sequence[Sequence[float]]
"""Seconds of each run, by test."""


class GsoVerdict(Record):
    """What GSO's harness says of the times of one task (its `grading/metrics.py`, `get_opt_status`)."""

    opt_base: bool
    """Faster than the base."""
    opt_commit: bool
    """Opt: also as fast as the expert's commit."""
    geometric_over_base: float
    harmonic_over_expert: float


def gso_verdict(base: Times, patch: Times, commit: Times) -> GsoVerdict:
    """GSO's rule: means of each test; all of a side's means averaged must fall, too."""
    bases, patches, commits = (np.array([np.mean(times) for times in side]) for side in (base, patch, commit))
    geometric = float(np.exp(np.mean(np.log(bases / patches))))
    harmonic = float(len(commits) / np.sum(patches / commits))
    opt_base = bool(bases.mean() > patches.mean()) and round(geometric, 1) >= GSO_LEAST
    return GsoVerdict(
        opt_base=opt_base,
        opt_commit=opt_base and harmonic > GSO_OPT,
        geometric_over_base=geometric,
        harmonic_over_expert=harmonic,
    )


def sweperf_gain(base: Times, head: Times) -> float:
    """SWE-Perf's gain of one task (its `check_evaluation.py`): mean over tests of δ by steps of 0.001."""
    sides = zip(base, head, strict=True)
    return float(np.mean([delta_grid(keep_inliers(one), keep_inliers(other)) for one, other in sides]))


def times_of(row: Grade) -> tuple[Times, Times, Times] | None:
    """Seconds of base, candidate and expert by workload, a pair of processes a value; None where nothing was timed."""
    pairs = json.loads(row.pairs)
    if not pairs or not row.workloads:
        return None
    base, cand, gold = (
        [seconds_of(pairs, one.node, role) for one in row.workloads] for role in ("base", "cand", "gold")
    )
    return base, cand, gold


def gso_opt(row: Grade) -> bool:
    """Whether GSO would count the attempt as optimised: tests pass, and its rule on our seconds."""
    times = times_of(row) if row.correct else None
    return times is not None and gso_verdict(*times).opt_commit


def sweperf_performance(row: Grade) -> float:
    """SWE-Perf's performance of an attempt; 0 where it is not correct."""
    times = times_of(row) if row.correct else None
    return sweperf_gain(times[0], times[1]) if times else 0.0
