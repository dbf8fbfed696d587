"""A measured change → a task, or the row that says why it is none."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, geometric_mean, harmonic_mean
from typing import Any

from perfquarry.curation.blocks import MeasuredWorkload, durations_of
from perfquarry.curation.evidence import deciding_runs
from perfquarry.curation.settings import SelectSettings
from perfquarry.curation.summary import lasting, smallest_speedup
from perfquarry.curation.targets import oracle_problem, oracle_targets, realistic_problem, realistic_targets
from perfquarry.data.errors import InputError
from perfquarry.data.records import (
    Build,
    Change,
    Evidence,
    Reason,
    SessionStatistics,
    Stamp,
    Task,
    Timing,
    Verdict,
    Workload,
)
from perfquarry.data.records.task import TaskWorkload
from perfquarry.data.registry import Repository

INFORMATIVE = (
    Reason.NOT_CONFIRMED,
    Reason.NOT_SIGNIFICANT,
    Reason.UNSTABLE,
    Reason.UNDECIDED,
    Reason.COLD_ONLY,
    Reason.SLOWER,
    Reason.NO_GAIN,
    Reason.TOO_FEW_SAMPLES,
    Reason.WORKLOAD_TIMEOUT,
    Reason.WORKLOAD_FAILED,
)
"""Reasons of workloads from the most informative on: those nearest to acceptance first.

One workload that is slower makes the change slower (the rule asks for significance), while
"no gain" of the others only says that they do not feel it.
"""

UNTIMED = frozenset({Reason.UNDECIDED, *INFORMATIVE[INFORMATIVE.index(Reason.TOO_FEW_SAMPLES) :]})
"""Reasons with which no time was decided on."""


@dataclass(frozen=True)
class ChangeTexts:
    """What only the repository's objects show of a change."""

    patch: str
    """Diff of everything but tests; applies to the base with git apply."""
    test_patch: str = ""
    version: str = ""
    licence: str = ""


@dataclass(frozen=True)
class _Accepted:
    """A kept workload with its evidence and the run behind it."""

    workload: Workload
    evidence: Evidence
    run: MeasuredWorkload


def task_id_of(codebase: str, head_sha: str) -> str:
    """'owner__name-<first 10 digits of the head>'."""
    return f"{codebase.replace('/', '__')}-{head_sha[:10]}"


def assemble(
    change: Change,
    verdict: Verdict,
    builds: Sequence[Build],
    workloads: Sequence[Workload],
    evidence: Sequence[Evidence],
    timings: Sequence[Timing],
    texts: ChangeTexts,
    repository: Repository,
    settings: SelectSettings,
    stamp: Stamp,
) -> Task:
    """The task of a change with at least one kept workload; else its rejected row with the most informative reason.

    Rows of other changes among the sequences are passed over. The speedup of a task is the
    harmonic mean over its workloads (GSO); the ends of its interval are the harmonic means
    of the workloads' ends, which is exact where their errors go together and wider than
    need be where they do not. δ is the mean of the workloads' δ (SWE-Perf's human_performance).
    The overall speedup is the same mean over all workloads that came to a decision by their
    times, so that it does not jump where a gain is near the smallest that is accepted.

    Raises:
        InputError: no evidence of this change was given.
    """
    mine = [row for row in evidence if row.change_id == change.change_id]
    if not mine:
        raise InputError(f"no evidence of change {change.change_id} ({change.head_sha[:10]}): measure it first")
    known = {workload.workload_id: workload for workload in workloads}
    runs = deciding_runs([t for t in timings if t.change_id == change.change_id], settings)
    accepted = _of_one_machine(
        [_Accepted(known[e.workload_id], e, runs[e.workload_id]) for e in mine if e.status == "kept"]
    )
    base = next((build for build in builds if build.change_id == change.change_id and build.side == "base"), None)
    common = {**_of_change(change, texts, repository), **_of_build(base, change, repository)}
    oracle = oracle_targets(change, verdict)
    apis = verdict.apis or next((one.apis for one in workloads if one.apis), [])
    common |= {"measured_at": max((t.created_at for t in timings if t.change_id == change.change_id), default=None)}
    common |= {"apis": apis, "oracle_targets": oracle, "problem_oracle": oracle_problem(repository.codebase, oracle)}
    if not accepted:
        reason = most_informative([Reason(row.reason) for row in mine if row.reason])
        detail = next((row.detail for row in mine if row.reason == reason), "")
        return Task(**stamp.fields(), **common, status="rejected", reason=reason, detail=f"{_counts(mine)}: {detail}")
    decided = _decided(mine, runs, accepted[0].run.machine_id)
    figures = _of_workloads(accepted, repository, settings) | _overall(decided, settings)
    if (whole := gain_as_a_whole(decided)) < smallest_speedup(settings.min_gain):
        detail = f"{_counts(mine)}: {whole:.3g}× over all workloads that the change touches"
        return Task(**stamp.fields(), **common, **figures, status="rejected", reason=Reason.MIXED, detail=detail)
    return Task(**stamp.fields(), **common, **figures, detail=_counts(mine))


def gain_as_a_whole(decided: Sequence[SessionStatistics]) -> float:
    """Geometric mean of the speedups of the workloads whose times the change moves: their intervals exclude 1."""
    touched = [one.speedup for one in decided if one.low > 1 or one.high < 1]
    return geometric_mean(touched) if touched else 1.0


def most_informative(reasons: Sequence[Reason]) -> Reason:
    """The reason of a change whose workloads were all rejected, of theirs."""
    return min(reasons, key=INFORMATIVE.index)


def _of_one_machine(accepted: list[_Accepted]) -> list[_Accepted]:
    """Those measured on the machine that measured most of them: machines are never pooled."""
    if not accepted:
        return []
    machine = Counter(one.run.machine_id for one in accepted).most_common(1)[0][0]
    return [one for one in accepted if one.run.machine_id == machine]


def _of_change(change: Change, texts: ChangeTexts, repository: Repository) -> dict[str, Any]:
    sources = [file for file in change.files if file.role != "test"]
    return {
        "task_id": task_id_of(repository.codebase, change.head_sha),
        "change_id": change.change_id,
        "codebase": repository.codebase,
        "url": repository.url,
        "base_sha": change.base_sha,
        "head_sha": change.head_sha,
        "created_at_commit": change.merged_at,
        "version": texts.version,
        "title": change.title,
        "message": change.message,
        "pull_number": change.pull_number,
        "issues": change.issues,
        "patch": texts.patch,
        "test_patch": texts.test_patch,
        "licence": texts.licence or repository.licence,
        "lines_changed": sum(file.added + file.deleted for file in sources),
        "files_changed": len(sources),
    }


def _of_build(base: Build | None, change: Change, repository: Repository) -> dict[str, Any]:
    clone = [f"git clone {repository.url} ."] if repository.url else []
    return {
        "python": base.python if base else "",
        "requirements": base.requirements if base else [],
        "setup_commands": [*clone, f"git checkout --detach {change.base_sha}"],
        "install_commands": base.commands if base else [],
        "writable_tree": base is not None and base.writable_tree,
    }


def _of_workloads(accepted: list[_Accepted], repository: Repository, settings: SelectSettings) -> dict[str, Any]:
    rows = _with_a_visible_one([_workload(one, settings) for one in accepted])
    realistic = realistic_targets([one.workload for one in accepted])
    return {
        "realistic_targets": realistic,
        "problem_realistic": realistic_problem(repository.codebase, realistic),
        "workloads": rows,
        "durations": json.dumps(durations_of({one.workload.node: one.run for one in accepted})),
        **_means([(row.speedup, row.low, row.high) for row in rows]),
        "delta": fmean(row.delta for row in rows),
        "q_value": min(row.q_value for row in rows),
        "margin": min((row.margin for row in rows if row.margin is not None), default=None),
        "machine_id": accepted[0].run.machine_id,
    }


def _decided(
    evidence: Sequence[Evidence], runs: Mapping[str, MeasuredWorkload], machine: str
) -> list[SessionStatistics]:
    """The deciding sessions of the workloads that came to a decision by their times, on one machine."""
    return [
        row.sessions[-1]
        for row in evidence
        if row.sessions and row.reason not in UNTIMED and runs[row.workload_id].machine_id == machine
    ]


def _overall(decided: Sequence[SessionStatistics], settings: SelectSettings) -> dict[str, Any]:
    means = _means([(one.speedup, *lasting(one, settings)) for one in decided])
    return {f"overall_{name}": value for name, value in means.items()} | {"timed_workloads": len(decided)}


def _means(figures: Sequence[tuple[float, float, float]]) -> dict[str, float]:
    """Harmonic means of speedups, of their intervals' lower and of their upper ends."""
    return dict(zip(("speedup", "low", "high"), map(harmonic_mean, zip(*figures, strict=True)), strict=True))


def _workload(one: _Accepted, settings: SelectSettings) -> TaskWorkload:
    confirming = one.evidence.sessions[-1]
    low, high = lasting(confirming, settings)
    assert one.evidence.p_value is not None and one.evidence.q_value is not None
    return TaskWorkload(
        workload_id=one.workload.workload_id,
        source=one.workload.source,
        code=one.workload.code,
        base_seconds=confirming.base_median,
        head_seconds=confirming.head_median,
        speedup=confirming.speedup,
        low=low,
        high=high,
        delta=confirming.delta,
        p_value=one.evidence.p_value,
        q_value=one.evidence.q_value,
        aa_delta=confirming.aa_delta,
        margin=confirming.margin,
        calls=one.workload.calls,
        role=one.workload.role,
    )


def _with_a_visible_one(rows: list[TaskWorkload]) -> list[TaskWorkload]:
    """Where every visible script was rejected, the hidden one of the smallest id is shown: no figure decides it."""
    scripts = [row for row in rows if row.source != "unit-test"] or rows
    if all(row.role == "hidden" for row in scripts):
        shown = min(scripts, key=lambda row: row.workload_id)
        rows = [row.model_copy(update={"role": "visible"}) if row is shown else row for row in rows]
    return rows


def _counts(evidence: Sequence[Evidence]) -> str:
    """'2 of 9 workloads kept (6 no_gain, 1 slower)'."""
    reasons = Counter(str(row.reason) for row in evidence if row.reason)
    kept = len(evidence) - reasons.total()
    others = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
    return f"{kept} of {len(evidence)} workloads kept" + (f" ({others})" if others else "")
