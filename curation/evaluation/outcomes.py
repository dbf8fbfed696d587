"""From what the grader says to a row of the table `grades`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from perfquarry.curation.evaluation.predictions import Prediction
from perfquarry.curation.stability import delta, keep_inliers
from perfquarry.data.records import Comparison, Grade, GradedWorkload, Machine, Reason, Stamp, Task

THRESHOLD = 0.95
"""Of the expert's speedup, what a reward takes (GSO's Opt)."""
_WRONG = frozenset({Reason.TESTS_FAIL, Reason.WORKLOAD_FAILS, Reason.WRONG_RESULT})
UNTRUE = frozenset({Reason.CONTRADICTED, Reason.LATER_CALLS_ONLY})
"""Reasons for which no speedup counts."""


def ungraded(
    task: Task, prediction: Prediction, dataset: str, stamp: Stamp, reason: Reason, why: str = "", tries: int = 1
) -> Grade:
    """The row of a patch that was not timed: none, or it does not apply or build, or could not be graded."""
    return Grade(
        **stamp.fields(),
        **_what(task, prediction, dataset),
        status="rejected",
        reason=reason,
        applied=reason in (Reason.BUILD_FAILED, Reason.SUBMODULE_MISSING, Reason.BUILD_TIMEOUT),
        correct=None if reason == Reason.NOT_GRADED else False,
        against_expert="undecided" if reason == Reason.NOT_GRADED else "worse",
        why=why,
        tries=tries,
    )


def graded(
    task: Task,
    prediction: Prediction,
    dataset: str,
    stamp: Stamp,
    facts: Mapping[str, Any],
    machine: Machine,
    tries: int = 1,
) -> Grade:
    """The row of what `grading.json` holds; a reward there is a reward here."""
    reason = None if facts["reward"] else Reason(facts["code"])
    workloads = _workloads(task, facts)
    correct = reason not in _WRONG and reason != Reason.NOTHING_CHANGED
    of_expert = facts.get("of_expert") or {}
    figures = {"": facts.get("candidate") or {}, "expert_": facts.get("expert") or {}}
    return Grade(
        **stamp.fields(),
        **_what(task, prediction, dataset),
        status="kept" if facts["reward"] else "rejected",
        reason=reason,
        applied=reason != Reason.NOTHING_CHANGED,
        correct=correct,
        against_expert=compared(reason, of_expert.get("low"), of_expert.get("high")),
        **{f"{role}{name}": found.get(key) for role, found in figures.items() for name, key in _FIGURES},
        **{
            f"of_expert{suffix}": of_expert.get(key)
            for suffix, key in (("", "ratio"), ("_low", "low"), ("_high", "high"))
        },
        of_expert_hidden=(facts.get("of_expert_hidden") or {}).get("ratio"),
        delta=_mean([one.delta for one in workloads]) if correct else 0.0,
        expert_delta=_mean([one.expert_delta for one in workloads]) if workloads else None,
        workloads=workloads,
        pairs=json.dumps(facts.get("pair_values") or []),
        undecided_at_95=bool(facts.get("undecided_at_95")),
        noisy=bool(facts.get("noisy")),
        why=str(facts["why"]),
        reasons_to_look=_flat(facts.get("reasons_to_look") or {}),
        left_out=_flat(facts.get("left_out") or {}),
        tries=tries,
        seconds=float(facts.get("seconds") or 0.0),
        python=str(facts.get("python") or ""),
        machine=machine,
    )


_FIGURES = (("speedup", "ratio"), ("low", "low"), ("high", "high"))


def compared(reason: Reason | None, low: float | None, high: float | None) -> Comparison:
    """A candidate against the expert, from the 95 % interval of its speedup over the expert's."""
    if reason in _WRONG | UNTRUE or reason in (Reason.NOTHING_CHANGED, Reason.NOT_FASTER):
        return "worse"
    if low is not None and low > 1:
        return "better"
    if low is not None and low >= THRESHOLD:
        return "equal"
    if high is not None and high < THRESHOLD:
        return "worse"
    return "undecided"


def _what(task: Task, prediction: Prediction, dataset: str) -> dict[str, Any]:
    return {
        "dataset": dataset,
        "task_id": task.task_id,
        "model": prediction.model,
        "attempt": prediction.attempt,
        "patch": prediction.patch,
        "patch_id": prediction.patch_id,
    }


def _workloads(task: Task, facts: Mapping[str, Any]) -> list[GradedWorkload]:
    pairs = facts.get("pair_values") or []
    found = []
    for one in task.workloads if pairs else []:
        if (how := facts["workloads"].get(one.node)) is None:  # its test does not pass on both of our own sides
            continue
        base, cand, gold = (seconds_of(pairs, one.node, role) for role in ("base", "cand", "gold"))
        found.append(
            GradedWorkload(
                node=one.node,
                hidden=one.role == "hidden",
                clock=how["clock"],
                data=how["data"],
                speedup=float(np.median(np.divide(base, cand))),
                expert_speedup=float(np.median(np.divide(base, gold))),
                delta=_delta(base, cand),
                expert_delta=_delta(base, gold),
            )
        )
    return found


def seconds_of(pairs: Sequence[Mapping[str, Any]], node: str, role: str) -> list[float]:
    """Seconds of a call of a workload on a side ('base', 'gold', 'cand'): the median of each pair, in their order."""
    return [float(pair["workloads"][node][role]["seconds"]) for pair in pairs]


def _delta(base: Sequence[float], head: Sequence[float]) -> float:
    return float(delta(keep_inliers(base), keep_inliers(head)))


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else 0.0


def _flat(by_path: Mapping[str, Any]) -> list[str]:
    return [
        f"{path}: {', '.join(map(str, why)) if isinstance(why, list) else why}" for path, why in sorted(by_path.items())
    ]
