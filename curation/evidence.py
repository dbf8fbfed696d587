"""Timings of a whole repository → one decision on each workload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from curation.blocks import Run, Session, runs_of
from curation.intervals import ratio_of_medians
from curation.stability import delta, p_value, q_values
from curation.summary import gains, hopeless, noisy, quiet, slower, smallest_speedup, summarise, unbiased
from data.records import MEANING, Evidence, Reason, SessionStatistics, Stamp, Timing
from data.settings import SelectSettings


@dataclass(frozen=True)
class _Finding:
    """A run with the statistics of its sessions and its place in the families of tests."""

    run: Run
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


def decide_runs(runs: Sequence[Run], settings: SelectSettings, stamp: Stamp) -> list[Evidence]:
    """`decide`, from timings already put together."""
    findings = _deciding(runs, settings)
    qs = _families([f.select.p_value if f.select else None for f in findings])
    cold_qs = _families([f.cold_p for f in findings])
    return [
        _evidence(replace(f, q=q, cold_q=cold_q), settings, stamp)
        for f, q, cold_q in zip(findings, qs, cold_qs, strict=True)
    ]


def deciding_runs(timings: Sequence[Timing], settings: SelectSettings) -> dict[str, Run]:
    """The run that decides on each workload, by workload_id: the same that `decide` reads."""
    return {finding.run.workload_id: finding.run for finding in _deciding(runs_of(timings), settings)}


def passed_selection(session: Session, settings: SelectSettings) -> bool:
    """Whether a first session is worth confirming: the gain is there by itself and the workload is stable."""
    statistics = summarise(session, settings)
    if statistics is None or session.outcomes or len(session.plain) < settings.min_blocks:
        return False
    return gains(statistics, settings) and unbiased(statistics, settings) and quiet(statistics)


def undecided(run: Run, settings: SelectSettings) -> bool:
    """Whether noise may have hidden in the last round what the workload shows, so that another one is worth it.

    It neither passed nor is a gain of `min_delta` excluded, and base against base is biased or differs by as much, or
    the pairs show a gain that the test does not: the clock had two modes.
    """
    select, confirm = run.last_round
    last = confirm or select
    statistics = summarise(last, settings)
    if statistics is None or hopeless(last, settings.min_delta) or any(one.outcomes for one in run.sessions):
        return False
    if not unbiased(statistics, settings):
        return True
    passed = _confirmed(statistics, settings) if confirm else passed_selection(select, settings)
    shown = statistics.low >= smallest_speedup(settings.min_delta)
    return not passed and (shown or noisy(statistics, settings.min_delta))


def shows_gain(run: Run, settings: SelectSettings) -> bool:
    """Whether a selecting session shows a gain by itself, stable or not."""
    statistics = (summarise(session, settings) for session in run.sessions if session.number % 2)
    return any(gains(one, settings) for one in statistics if one)


def _deciding(runs: Sequence[Run], settings: SelectSettings) -> list[_Finding]:
    found: dict[str, list[_Finding]] = {}
    for run in runs:
        found.setdefault(run.workload_id, []).append(_examine(run, settings))
    return [_newest_whole(candidates, settings) for candidates in found.values()]


def _examine(run: Run, settings: SelectSettings) -> _Finding:
    select, confirm = run.last_round
    finding = _Finding(run, summarise(select, settings), summarise(confirm, settings) if confirm else None)
    if finding.select is None:
        return finding
    base, head = select.cold
    if len(base) == 0:
        return finding
    return replace(
        finding,
        cold_speedup=ratio_of_medians(base, head),
        cold_delta=float(delta(base, head, settings.cold_alpha)),
        cold_p=p_value(base, head),
    )


def _newest_whole(candidates: list[_Finding], settings: SelectSettings) -> _Finding:
    """Of several machines' runs of a workload the newest that came to an end; the newest of all if none did."""
    whole = [f for f in candidates if f.run.last_round[1] or (f.select and not gains(f.select, settings))]
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
        detail=_detail(finding, published, reason),
        **figures,
    )


def _reason(finding: _Finding, settings: SelectSettings) -> Reason | None:
    """The first rule that the workload breaks; None when it is kept."""
    broken = _unmeasured(finding) or _no_gain(finding, settings)
    if broken:
        return broken
    assert finding.select and finding.q is not None
    if not (quiet(finding.select) and all(unbiased(s, settings) for s in (finding.select, finding.confirm) if s)):
        return Reason.UNSTABLE
    if finding.q > settings.max_q:
        return Reason.NOT_SIGNIFICANT
    if _too_few(finding.run.last_round[1], finding.confirm, settings):
        return Reason.TOO_FEW_SAMPLES
    assert finding.confirm
    return None if _confirmed(finding.confirm, settings) else Reason.NOT_CONFIRMED


def _confirmed(confirm: SessionStatistics, settings: SelectSettings) -> bool:
    return gains(confirm, settings) and confirm.low > 1  # the unpaired test bears more noise


def _unmeasured(finding: _Finding) -> Reason | None:
    outcomes = {outcome for session in finding.run.sessions for outcome in session.outcomes}
    if outcomes:
        return Reason.WORKLOAD_TIMEOUT if outcomes == {"timeout"} else Reason.WORKLOAD_FAILED
    return None


def _no_gain(finding: _Finding, settings: SelectSettings) -> Reason | None:
    session, _ = finding.run.last_round
    if _too_few(session, finding.select, settings):
        return Reason.TOO_FEW_SAMPLES
    assert finding.select
    if finding.select.delta > settings.min_delta:
        return None
    if _gains_cold(finding, settings):
        return Reason.COLD_ONLY
    return Reason.SLOWER if slower(session, settings) else Reason.NO_GAIN


def _too_few(session: Session | None, statistics: SessionStatistics | None, settings: SelectSettings) -> bool:
    """Whether a session has too few blocks to decide; one that was stopped as hopeless has enough."""
    if session is None or statistics is None:
        return True
    return len(session.plain) < settings.min_blocks and not hopeless(session, settings.min_delta)


def _gains_cold(finding: _Finding, settings: SelectSettings) -> bool:
    """Whether first calls are faster at a level that needs no second session, and more so than warm calls."""
    if finding.cold_q is None or finding.cold_speedup is None or finding.select is None:
        return False
    significant = finding.cold_q <= settings.max_q and finding.cold_delta > settings.min_delta
    return significant and finding.cold_speedup > finding.select.high


def _detail(finding: _Finding, published: SessionStatistics | None, reason: Reason | None) -> str:
    """The decision in words: "1.42× [1.37, 1.47], δ 0.28, 20 blocks, confirmed, noise 1.2 %"."""
    parts = [MEANING[reason]] if reason else []
    if published:
        blocks = next(one for one in finding.run.sessions if one.number == published.session)
        parts.append(f"{published.speedup:.3g}× [{published.low:.3g}, {published.high:.3g}]")
        parts.append(f"δ {published.delta:.3f}, {len(blocks.plain)} blocks")
    if reason is Reason.NOT_SIGNIFICANT and finding.q is not None:
        parts.append(f"q {finding.q:.2g}")
    if reason is Reason.COLD_ONLY:
        parts.append(f"first call {finding.cold_speedup:.3g}×")
    if reason is None:
        parts.append("confirmed")
    if published and published.aa_delta is not None and (reason is Reason.UNSTABLE or published.aa_delta > 0):
        parts.append(f"A/A δ {published.aa_delta:.3f}")
    if published and published.aa_spread is not None:
        parts.append(f"A/A {100 * published.aa_spread:.1f} %")
    disturbed = sum(session.disturbed for session in finding.run.sessions)
    if disturbed:
        parts.append(f"{disturbed} disturbed blocks")
    return ", ".join(parts + ([finding.note] if finding.note else []))
