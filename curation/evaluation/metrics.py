"""Scores of models from their grades: SWE-Perf's tiers, GSO's Opt_p@K, SWE-fficiency's speedup ratio.

Tasks are the unit everywhere. A task of the dataset without a grade counts as one that the model did not solve;
what could not be graded (`not_graded`) is nobody's failure: those attempts are left out, and counted.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
import scipy
from pydantic import Field

from perfquarry.curation.evaluation.known import EXPERT, HALF, NOP
from perfquarry.curation.evaluation.outcomes import THRESHOLD, UNTRUE
from perfquarry.curation.evaluation.peers import gso_opt, sweperf_performance
from perfquarry.curation.stability import q_values
from perfquarry.data.records import Grade, Reason, Record

Floats = npt.NDArray[np.float64]

PS = tuple(round(0.05 * step, 2) for step in range(21))
"""Thresholds p of the curve Opt_p@1: 0 (correct alone) to 1."""
WORST = 10
_BOOTSTRAPS = 2000
_SEED = 20_250_101


class ShareInterval(Record):
    """A share of tasks, or a mean of figures from 0 to 1, with its 95 % interval.

    Percentiles of 2,000 bootstrap samples of tasks. Where all tasks have the same figure all these samples are alike:
    there it is the exact binomial interval (Clopper and Pearson 1934).
    """

    value: float
    low: float
    high: float


class BootstrapInterval(Record):
    """A figure with its 95 % interval: percentiles of 2,000 bootstrap samples of tasks; one task has no interval."""

    value: float
    low: float | None
    high: float | None


class Score(Record):
    """A model on a dataset."""

    model: str
    tasks: int = Field(description="Tasks of the dataset that were graded for anybody.")
    graded: int = Field(description="Tasks with a graded attempt of this model.")
    attempts: int = Field(description="Graded attempts.")
    not_graded: int = Field(description="Attempts that the machine failed to grade: they do not count.")
    k: int = Field(description="Attempts per task: K of the curves goes up to it.")
    apply: ShareInterval = Field(description="SWE-Perf, tier 1: share of attempts whose patch applies.")
    correctness: ShareInterval = Field(description="SWE-Perf, tier 2: share of attempts that are correct.")
    performance: ShareInterval = Field(description="SWE-Perf, tier 3: mean δ, 0 where not correct.")
    opt: dict[int, ShareInterval] = Field(description="GSO: Opt_0.95@K by K, unbiased.")
    opt_curve: dict[float, float] = Field(description="Opt_p@1 by p.")
    speedup: float = Field(description="Harmonic mean over tasks of the speedup over the base; 1 where not correct.")
    of_expert: BootstrapInterval = Field(
        description="SWE-fficiency's speedup ratio: harmonic mean over tasks of the speedup "
        "over the expert's; where not correct, 1 over the expert's."
    )
    gso: float = Field(description="Opt@1 by GSO's own rule on the same seconds.")
    sweperf: float = Field(description="Mean gain by SWE-Perf's own rule on the same seconds.")
    worst_weight: float = Field(description="Share of the ten smallest ratios in the harmonic mean's denominator.")
    geometric: BootstrapInterval = Field(description="Geometric mean of the same ratios: no few tasks decide it.")
    comparisons: dict[str, int] = Field(description="Attempts by `against_expert`.")
    reasons: dict[str, int] = Field(description="Attempts by reason.")


def passes(row: Grade, p: float = THRESHOLD) -> bool:
    """Whether a grade counts as optimised at threshold p (GSO's Opt_p); p = 0 asks for correctness alone.

    At 0.95 it is the reward. At other p it is what the grader would say with that threshold and these pairs: a
    contradicted patch passes at none but 0.
    """
    if not row.correct:
        return False
    if p == 0:
        return True
    if row.reason in {*UNTRUE, Reason.NOT_FASTER} or row.of_expert is None:
        return False
    if p == THRESHOLD:
        return row.status == "kept"
    hidden = row.of_expert if row.of_expert_hidden is None else row.of_expert_hidden
    return min(row.of_expert, hidden) >= p


def at_k(n: int, c: int, k: int) -> float:
    """Probability that of k of n attempts, drawn without putting back, at least one is of the c good ones.

    The unbiased estimator of Chen et al. 2021 (pass@k).

    Raises:
        ValueError: k is greater than n.
    """
    if k > n:
        raise ValueError(f"{n} attempts say nothing of {k}")
    return 1.0 - math.comb(n - c, k) / math.comb(n, k)


def ratio_of(row: Grade | None, expert: float) -> float:
    """Speedup over the expert's; what is not correct, or missing, is as fast as the base (SWE-fficiency)."""
    return row.of_expert if row and _counts_as_fast(row) and row.of_expert else 1.0 / expert


def speedup_of(row: Grade | None) -> float:
    """Speedup over the base; 1 for what is not correct or missing."""
    return row.speedup if row and _counts_as_fast(row) and row.speedup else 1.0


def _is_graded(row: Grade) -> bool:
    return row.reason != Reason.NOT_GRADED


def _counts_as_fast(row: Grade) -> bool:
    return bool(row.correct) and row.reason not in UNTRUE


def scores(grades: Iterable[Grade], experts: Mapping[str, float]) -> list[Score]:
    """The score of each model, the best first; none of a model of which nothing could be graded.

    `experts` has the published speedup of the expert by task: the tasks that count.
    """
    by_model: dict[str, list[Grade]] = defaultdict(list)
    for row in grades:
        if row.task_id in experts:
            by_model[row.model].append(row)
    by_model = {model: rows for model, rows in by_model.items() if any(map(_is_graded, rows))}
    found = [_score(model, rows, experts) for model, rows in by_model.items()]
    return sorted(found, key=lambda one: (-one.opt[1].value, -one.geometric.value, one.model))


def _score(model: str, rows: Sequence[Grade], experts: Mapping[str, float]) -> Score:
    counted = list(filter(_is_graded, rows))
    lost = {row.task_id for row in rows} - {row.task_id for row in counted}
    tasks = [task for task in sorted(experts) if task not in lost]
    by_task = {task: [row for row in counted if row.task_id == task] for task in tasks}
    k = max([1, *(len(found) for found in by_task.values())])
    table = _Table(by_task)
    ratios = table.each(lambda task, row: ratio_of(row, experts[task]))
    return Score(
        model=model,
        tasks=len(tasks),
        graded=sum(map(bool, by_task.values())),
        attempts=len(counted),
        not_graded=len(rows) - len(counted),
        k=k,
        apply=table.mean(lambda row: float(row.applied)),
        correctness=table.mean(lambda row: float(bool(row.correct))),
        performance=table.mean(lambda row: row.delta),
        opt={count: table.opt(THRESHOLD, count, k) for count in range(1, k + 1)},
        opt_curve={p: table.opt(p, 1, k).value for p in PS},
        speedup=float(_harmonic(table.each(lambda _, row: speedup_of(row)))),
        of_expert=bootstrapped(ratios, _harmonic),
        gso=table.mean(lambda row: float(gso_opt(row))).value,
        sweperf=table.mean(sweperf_performance).value,
        worst_weight=_weight_of_worst(ratios),
        geometric=bootstrapped(ratios, lambda values: np.exp(np.mean(np.log(values), axis=-1))),
        comparisons=dict(Counter(row.against_expert for row in counted)),
        reasons=dict(Counter(row.reason for row in counted if row.reason)),
    )


@dataclass(frozen=True)
class _Table:
    """Attempts by task; none is an attempt that did nothing."""

    by_task: Mapping[str, Sequence[Grade]]

    def mean(self, value: Callable[[Grade], float]) -> ShareInterval:
        """Mean over tasks of the mean of their attempts."""
        each = [float(np.mean([value(row) for row in rows])) if rows else 0.0 for rows in self.by_task.values()]
        return share(np.asarray(each))

    def opt(self, p: float, count: int, k: int) -> ShareInterval:
        """Opt_p@count; attempts that are missing of k are failures."""
        return share(opt_by_task(self.by_task.values(), p, count, k))

    def each(self, value: Callable[[str, Grade | None], float]) -> Floats:
        """One value per task: the harmonic mean of its attempts."""
        attempts: Mapping[str, Sequence[Grade | None]] = self.by_task
        found = [[value(task, row) for row in rows or [None]] for task, rows in attempts.items()]
        return np.asarray([1.0 / float(np.mean([1.0 / one for one in values])) for values in found])


def opt_by_task(tasks: Iterable[Sequence[Grade]], p: float, count: int, k: int) -> Floats:
    """Opt_p@count of each task, which has k attempts; shape (tasks,)."""
    return np.asarray([at_k(max(k, len(rows)), sum(passes(row, p) for row in rows), count) for rows in tasks])


def share(each: Floats) -> ShareInterval:
    """The mean of figures from 0 to 1; shape (tasks,)."""
    value = float(np.mean(each))
    if np.ptp(each) > 0:
        low, high = _percentiles(each, _mean)
    else:
        successes, failures = value * each.size, (1.0 - value) * each.size
        low = float(scipy.stats.beta.ppf(0.025, successes, failures + 1.0)) if successes > 0 else 0.0
        high = float(scipy.stats.beta.ppf(0.975, successes + 1.0, failures)) if failures > 0 else 1.0
    return ShareInterval(value=value, low=low, high=high)


def bootstrapped(each: Floats, figure: Callable[[Floats], Floats | float]) -> BootstrapInterval:
    """A figure of tasks with its interval; shape (tasks,). `figure` reduces the last axis."""
    low, high = _percentiles(each, figure) if each.size > 1 else (None, None)
    return BootstrapInterval(value=float(figure(each)), low=low, high=high)


def _percentiles(each: Floats, figure: Callable[[Floats], Floats | float]) -> tuple[float, float]:
    drawn = np.random.default_rng(_SEED).integers(0, each.size, (_BOOTSTRAPS, each.size))
    low, high = np.quantile(figure(each[drawn]), (0.025, 0.975))
    return float(low), float(high)


def _mean(values: Floats) -> Floats:
    found: Floats = np.mean(values, axis=-1)
    return found


def _harmonic(values: Floats) -> Floats:
    found: Floats = 1.0 / np.mean(1.0 / values, axis=-1)
    return found


def _weight_of_worst(ratios: Floats) -> float:
    """Share of the ten smallest in the sum of inverses (arXiv 2607.01211 found 0.58 to 0.83 in SWE-fficiency's)."""
    weights = np.sort(1.0 / ratios)[::-1]
    return float(weights[:WORST].sum() / weights.sum())


class Duel(Record):
    """Two models on the tasks that both were graded on."""

    first: str
    second: str
    tasks: int
    opt: float = Field(description="Mean over tasks of the difference in Opt_0.95@1, first less second.")
    p_value: float = Field(description="Two-sided, paired: signs of the tasks' differences permuted.")
    q_value: float = Field(description="Benjamini-Hochberg over all duels.")
    faster: float = Field(description="Share of tasks on which the first has the greater speedup; ties are halves.")


def duels(grades: Iterable[Grade], experts: Mapping[str, float]) -> list[Duel]:
    """Each model against each other, paired by the tasks that both have; none of models without a common task."""
    by_model: dict[str, dict[str, list[Grade]]] = defaultdict(lambda: defaultdict(list))
    for row in grades:
        if row.task_id in experts and _is_graded(row):
            by_model[row.model][row.task_id].append(row)
    found = [
        _duel((first, by_model[first]), (second, by_model[second]), experts)
        for first, second in combinations(sorted(by_model), 2)
        if by_model[first].keys() & by_model[second].keys()
    ]
    adjusted = q_values([one.p_value for one in found])
    return [one.model_copy(update={"q_value": q}) for one, q in zip(found, adjusted, strict=True)]


def _duel(
    first: tuple[str, Mapping[str, Sequence[Grade]]],
    second: tuple[str, Mapping[str, Sequence[Grade]]],
    experts: Mapping[str, float],
) -> Duel:
    tasks = sorted(set(first[1]) & set(second[1]))
    sides = []
    for _, by_task in (first, second):
        opt = [float(np.mean([passes(row) for row in by_task[task]])) for task in tasks]
        speed = [float(np.mean([math.log(ratio_of(row, experts[task])) for row in by_task[task]])) for task in tasks]
        sides.append((np.asarray(opt), np.asarray(speed)))
    difference = sides[0][0] - sides[1][0]
    p_value = 1.0
    if len(tasks) > 1 and difference.any():
        done = scipy.stats.permutation_test(
            (sides[0][0], sides[1][0]),
            lambda one, other, axis: np.mean(one - other, axis=axis),
            permutation_type="samples",
            vectorized=True,
            rng=_SEED,
        )
        p_value = float(done.pvalue)
    wins = np.sign(sides[0][1] - sides[1][1])
    return Duel(
        first=first[0],
        second=second[0],
        tasks=len(tasks),
        opt=float(np.mean(difference)),
        p_value=p_value,
        q_value=p_value,
        faster=float(np.mean((wins + 1) / 2)),
    )


def best_known(grades: Iterable[Grade]) -> dict[str, Grade]:
    """By task the fastest rewarded patch that is better than the expert's at 95 %: published beside the expert."""
    best: dict[str, Grade] = {}
    for row in grades:
        if (
            row.status == "kept"
            and row.against_expert == "better"
            and not row.noisy
            and row.model not in (EXPERT, HALF)
        ):
            known = best.get(row.task_id)
            if known is None or (row.of_expert_low or 0) > (known.of_expert_low or 0):
                best[row.task_id] = row
    return best


def orders(grades: Iterable[Grade]) -> dict[str, str]:
    """By task in what order the known models come, where expert and nop were graded.

    'nop < half <= expert' is as it should be. Half is left out of it where it does not apply or is not correct. What
    begins with '!' says that the task does not tell them apart.
    """
    by_task: dict[str, dict[str, Grade]] = {}
    for row in grades:
        if row.model in (EXPERT, HALF, NOP) and row.reason != Reason.NOT_GRADED:
            by_task.setdefault(row.task_id, {})[row.model] = row
    return {task: _order(rows) for task, rows in sorted(by_task.items()) if {EXPERT, NOP} <= set(rows)}


def _order(rows: Mapping[str, Grade]) -> str:
    expert, nop, half = rows[EXPERT], rows[NOP], rows.get(HALF)
    if expert.status != "kept":
        return f"! the expert's patch has no reward: {expert.reason}"
    if nop.status == "kept":
        return "! no patch at all has a reward"
    if half is None or not half.correct or half.speedup is None:
        return "nop < expert"
    if (half.of_expert_low or 0.0) > 1:
        return "! half of the expert's patch is faster than all of it"
    if half.status == "kept":
        return "! half of the expert's patch has the reward, too: the other half adds nothing that is timed"
    return "nop < half <= expert" if speedup_of(half) > 1 and (half.low or 0.0) > 1 else "nop = half < expert"
