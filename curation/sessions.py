"""A round of two sessions of one change: the first selects, the second confirms what the first found."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import partial
from itertools import zip_longest
from typing import Literal

from perfquarry.curation.blocks import runs_of
from perfquarry.curation.evidence import passed_selection
from perfquarry.curation.settings import SelectSettings
from perfquarry.curation.summary import (
    chosen,
    excluded,
    gains,
    in_vain,
    precise,
    promising,
    smallest_speedup,
    summarise,
)
from perfquarry.data.records import Machine, Stamp, Timing, Workload
from perfquarry.harness.contracts import BuiltSide
from perfquarry.harness.measuring.schedule import Keep, Progress, run_session
from perfquarry.harness.probing.prober import Prober
from perfquarry.harness.settings import MeasureSettings

BESIDE = 12
"""Pairs of a session of a change, at most, of a workload beside one that gains."""
Purpose = Literal["select", "confirm", "look again"]
"""What a session is for: the first, the second of a round, and any other."""


def measure(
    change_id: str,
    workloads: Sequence[Workload],
    base: BuiltSide,
    head: BuiltSide,
    prober: Prober,
    machine: Machine,
    measure: MeasureSettings,
    select: SelectSettings,
    stamp: Stamp,
    *,
    core: int | None,
    first_session: int = 1,
    so_far: Sequence[Timing] = (),
    pair_seconds: float = math.inf,
    keep: Keep = lambda rows: None,
    progress: Progress = lambda done, planned: None,
) -> list[Timing]:
    """Timings of the kept workloads of a change; the caller holds the core (`measurement_lock`).

    The first session measures all, up to the limit (`in_turn`) and to `pair_seconds`; the second those that pass the
    first by themselves, in a new order and in fresh processes. Either ends for a workload when there is no gain worth a
    task or its interval is as narrow as wanted, or when another's is and it has had its pairs (`settled`). The first
    also ends when it shows a gain by itself, or will hardly show any: it is no more than the ticket to the second,
    whose figures are published and which never ends because it just became significant.
    `progress(done, planned)` counts the pairs of one session and begins again with the next. Rounds after the first
    have a `first_session` greater than 1, and odd: noise hid what the workloads show. Without a `core` the processes
    run anywhere. What `keep` was given of a measurement that did not come to its end is `so_far` when it goes on.

    Raises:
        SandboxUnavailable: a process could not be started.
    """
    session = partial(
        run_session,
        change_id,
        base=base,
        head=head,
        prober=prober,
        settings=measure,
        stamp=stamp,
        machine=machine,
        core=core,
        keep=keep,
        progress=progress,
    )

    def before(number: int) -> list[Timing]:
        return [row for row in so_far if row.session == number]

    selecting = partial(settled, settings=select, purpose="select", most=measure.max_pairs)
    confirming = partial(settled, settings=select, purpose="confirm")
    measured = in_turn([workload for workload in workloads if workload.status == "kept"], measure.max_workloads)
    first = session(
        workloads=measured,
        session=first_session,
        stop=selecting,
        so_far=before(first_session),
        pair_seconds=pair_seconds,
    )
    passed = {run.workload_id for run in runs_of(first) if passed_selection(run.sessions[0], select)}
    again = [workload for workload in measured if workload.workload_id in passed]
    if not again:
        return first
    second = first_session + 1
    return first + session(workloads=again, session=second, stop=confirming, alone=_alone(first), so_far=before(second))


def in_turn(workloads: Sequence[Workload], limit: int) -> list[Workload]:
    """At most so many: the first of each source and role, then their second, and so on."""
    groups: dict[tuple[str, str], list[Workload]] = {}
    for workload in workloads:
        groups.setdefault((workload.source, workload.role), []).append(workload)
    ranked = [one for rank in zip_longest(*groups.values()) for one in rank if one is not None]
    return ranked[:limit]


def settled(
    timings: Sequence[Timing], settings: SelectSettings, *, purpose: Purpose = "look again", most: float = math.inf
) -> set[str]:
    """Ids of workloads that need no more pairs of the same session.

    A session that selects only chooses what is confirmed: there a gain is enough, and what will hardly show one by the
    end of its `most` pairs is left undecided (docs/decisions/0078-pairs-in-vain.md). In both sessions of a change the
    others are not waited for beside a workload that needs no more and gains: `BESIDE` pairs decide what they show
    (docs/decisions/0076-nobody-waits-for-the-last-workload.md). A second look does wait: each is compared with what is
    published of it.
    """
    seen = {run.workload_id: summarise(run.sessions[0], settings) for run in runs_of(timings)}
    known = {workload: statistics for workload, statistics in seen.items() if statistics is not None}
    found = {one for one, shown in known.items() if excluded(shown, settings) or precise(shown, settings)}
    gaining: set[str] = set()
    if purpose == "select":
        gaining = {one for one, shown in known.items() if chosen(shown, settings)}
        found |= {one for one, shown in known.items() if in_vain(shown, settings, most)}
    elif purpose == "confirm":
        gaining = {one for one in found if gains(known[one], settings)}
    if gaining:
        found |= gaining | {one for one, shown in known.items() if shown.n_base >= BESIDE}
    return found


def shows_gain(timings: Sequence[Timing], settings: SelectSettings) -> bool:
    """Whether a session that has not come to its end shows of some workload a gain worth a task."""
    least = smallest_speedup(settings.min_gain)
    found = (summarise(run.sessions[-1], settings) for run in runs_of(timings))
    return any(one is not None and promising(one, settings) and one.speedup >= least for one in found)


def _alone(timings: Sequence[Timing]) -> Collection[str]:
    return {row.workload_id for row in timings if row.schedule == "fresh"}
