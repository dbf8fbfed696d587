"""Timings of a whole repository → one decision on each workload."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from perfquarry.curation.blocks import MeasuredWorkload, Session, log_ratio, runs_of
from perfquarry.curation.intervals import hodges_lehmann, paired_delta, shift_p_value
from perfquarry.curation.settings import SelectSettings
from perfquarry.curation.stability import q_values
from perfquarry.curation.summary import excluded, gains, promising, slower, summarise, unbiased
from perfquarry.data.records import MEANING, Evidence, Reason, SessionStatistics, Stamp, Timing


@dataclass(frozen=True)
class _Finding:
    """A run with the statistics of its sessions and its place in the families of tests."""

    run: MeasuredWorkload
    select: SessionStatistics | None
    confirm: SessionStatistics | None
    cold_speedup: float | None = None
    cold_delta: float = 0.0
    cold_p: float | None = None
    q: float | None = None
    cold_q: float | None = None
    note: str = ""


def decide(timings: Sequence[Timing], settings: SelectSettings, stamp: Stamp) -> list[Evidence]:
    """Evidence of every workload of a repository, in the order of their first timings.

    All timings of the repository belong into one call: the q-values (Benjamini-Hochberg)
    are over all workloads the first session measured, hopeless ones included. Machines are
    never pooled; where several measured a workload, the newest that came to an end decides.
    """
    return decide_runs(runs_of(timings), settings, stamp)


def decide_runs(runs: Sequence[MeasuredWorkload], settings: SelectSettings, stamp: Stamp) -> list[Evidence]:
    """`decide`, from timings already put together."""
    findings = _deciding(runs, settings)
    qs = _families([f.select.p_value if f.select else None for f in findings])
    cold_qs = _families([f.cold_p for f in findings])
    return [
        _evidence(replace(f, q=q, cold_q=cold_q), settings, stamp)
        for f, q, cold_q in zip(findings, qs, cold_qs, strict=True)
    ]


def deciding_runs(timings: Sequence[Timing], settings: SelectSettings) -> dict[str, MeasuredWorkload]:
    """The run that decides on each workload, by workload_id: the same that `decide` reads."""
    return {finding.run.workload_id: finding.run for finding in _deciding(runs_of(timings), settings)}


def passed_selection(session: Session, settings: SelectSettings) -> bool:
    """Whether a first session is worth confirming: a gain is there by itself and the workload is stable."""
    statistics = summarise(session, settings)
    if statistics is None or session.outcomes or len(session.plain) < settings.min_pairs:
        return False
    return promising(statistics, settings) and unbiased(statistics, settings)


def _deciding(runs: Sequence[MeasuredWorkload], settings: SelectSettings) -> list[_Finding]:
    found: dict[str, list[_Finding]] = {}
    for run in runs:
        found.setdefault(run.workload_id, []).append(_examine(run, settings))
    return [_newest_whole(candidates, settings) for candidates in found.values()]


def _examine(run: MeasuredWorkload, settings: SelectSettings) -> _Finding:
    select, confirm = run.last_round
    finding = _Finding(run, summarise(select, settings), summarise(confirm, settings) if confirm else None)
    if finding.select is None:
        return finding
    base, head = select.cold
    if len(base) == 0:
        return finding
    logs = np.array([log_ratio(before, after) for before, after in zip(base, head, strict=True)])
    return replace(
        finding,
        cold_speedup=math.exp(hodges_lehmann(logs)),
        cold_delta=paired_delta(logs, settings.cold_alpha),
        cold_p=shift_p_value(logs),
    )


def _newest_whole(candidates: list[_Finding], settings: SelectSettings) -> _Finding:
    """Of several machines' runs of a workload the newest that came to an end; the newest of all if none did."""
    whole = [f for f in candidates if f.run.last_round[1] or (f.select and not promising(f.select, settings))]
    chosen = max(whole or candidates, key=lambda f: f.run.newest)
    others = len(candidates) - 1
    return replace(chosen, note=f"{others} other machine(s) left out") if others else chosen


def _families(p_values: list[float | None]) -> list[float | None]:
    """q-values of the p-values that exist, in their places."""
    qs = iter(q_values([p for p in p_values if p is not None]))
    return [None if p is None else next(qs) for p in p_values]


def _evidence(finding: _Finding, settings: SelectSettings, stamp: Stamp) -> Evidence:
    reason = _reason(finding, settings)
    sessions = [statistics for statistics in (finding.select, finding.confirm) if statistics]
    published = sessions[-1] if sessions else None
    figures: dict[str, Any] = {}
    if published:
        figures = published.model_dump(include={"speedup", "low", "high", "delta"})
    return Evidence(
        **stamp.fields(),
        status="rejected" if reason else "kept",
        reason=reason,
        workload_id=finding.run.workload_id,
        change_id=finding.run.change_id,
        sessions=sessions,
        p_value=finding.select.p_value if finding.select else None,
        q_value=finding.q,
        cold_speedup=finding.cold_speedup,
        margin=published.margin if published else None,
        detail=_detail(finding, published, reason),
        **figures,
    )


def _reason(finding: _Finding, settings: SelectSettings) -> Reason | None:
    """The first rule that the workload breaks; None when it is kept. Noise is never a fact: it leaves undecided."""
    outcomes = {outcome for session in finding.run.sessions for outcome in session.outcomes}
    if outcomes:
        return Reason.WORKLOAD_TIMEOUT if outcomes == {"timeout"} else Reason.WORKLOAD_FAILED
    return _of_selection(finding, settings) or _of_confirmation(finding, settings)


def _of_selection(finding: _Finding, settings: SelectSettings) -> Reason | None:
    select = finding.select
    if select is None or select.n_base < settings.min_pairs:
        return Reason.TOO_FEW_SAMPLES
    if slower(select, settings):
        return Reason.SLOWER
    if excluded(select, settings):
        return Reason.COLD_ONLY if _gains_cold(finding, settings) else Reason.NO_GAIN
    return None if promising(select, settings) else Reason.UNDECIDED


def _of_confirmation(finding: _Finding, settings: SelectSettings) -> Reason | None:
    confirm = finding.confirm
    if not all(unbiased(one, settings) for one in (finding.select, confirm) if one):
        return Reason.UNSTABLE
    if finding.q is None or finding.q > settings.max_q:
        return Reason.NOT_SIGNIFICANT
    if confirm is None or confirm.n_base < settings.min_pairs:
        return Reason.TOO_FEW_SAMPLES
    if gains(confirm, settings):
        return None
    return Reason.NOT_CONFIRMED if excluded(confirm, settings) else Reason.UNDECIDED


def _gains_cold(finding: _Finding, settings: SelectSettings) -> bool:
    """Whether first calls are faster at a level that needs no second session, and more so than warm calls."""
    if finding.cold_q is None or finding.cold_speedup is None or finding.select is None:
        return False
    significant = finding.cold_q <= settings.max_q and finding.cold_delta > settings.cold_gain
    return significant and finding.cold_speedup > finding.select.high


def _detail(finding: _Finding, published: SessionStatistics | None, reason: Reason | None) -> str:
    """The decision in words: "1.42× [1.37, 1.47], δ 0.28, 8 pairs, confirmed, spread 1.2 %"."""
    parts = [MEANING[reason]] if reason else []
    parts += _figures(published, reason) if published else []
    if reason is Reason.NOT_SIGNIFICANT and finding.q is not None:
        parts.append(f"q {finding.q:.2g}")
    if reason is Reason.COLD_ONLY:
        parts.append(f"first call {finding.cold_speedup:.3g}×")
    if reason is None:
        parts.append("confirmed")
    disturbed = sum(session.disturbed for session in finding.run.sessions)
    if disturbed:
        parts.append(f"{disturbed} disturbed blocks")
    return ", ".join(parts + ([finding.note] if finding.note else []))


def _figures(published: SessionStatistics, reason: Reason | None) -> list[str]:
    parts = [f"{published.speedup:.2f}× [{published.low:.2f}, {published.high:.2f}]"]
    parts.append(f"δ {published.delta:.3f}, {published.n_base} pairs")
    if published.pair_spread is not None:
        parts.append(f"spread {100 * published.pair_spread:.1f} %")
    if published.margin is not None:
        parts.append(f"margin {published.margin:.0f}")
    if published.aa_delta is not None and (reason is Reason.UNSTABLE or published.aa_delta > 0):
        parts.append(f"A/A δ {published.aa_delta:.3f}")
    if reason is Reason.UNDECIDED and published.hold is not None:
        parts.append(f"a second look would show it with {100 * published.hold:.0f} %")
    return [*parts, "in processes of its own"] if published.alone else parts
