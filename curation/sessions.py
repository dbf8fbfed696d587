"""Rounds of two sessions of one change: the first selects, the second confirms what the first found.

Another round is for what noise hid: measured once more, it is decided like the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import zip_longest

from curation.blocks import runs_of
from curation.evidence import passed_selection, shows_gain, undecided
from curation.summary import hopeless
from data.records import Machine, Stamp, Timing, Workload
from data.settings import MeasureSettings, SelectSettings
from harness.contracts import BuiltSide, Prober
from harness.schedule import Progress, calls_of, run_session


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
    progress: Progress = lambda done, planned: None,
) -> list[Timing]:
    """Timings of the kept workloads of a change; the caller holds the machine (`harness.machine.measurement_lock`).

    Session 1 measures all, up to the limit (`in_turn`); session 2 those that pass the first by themselves, in a new
    order and in fresh processes. Either gives up a workload only for futility or failure. Where a workload of the
    change shows a gain, those left undecided by noise get another round (sessions 3 and 4, …), `max_rounds` in all:
    else the figure of a task would be that of the workloads that noise happened to spare.
    `progress(done, planned)` counts the blocks of one session and begins again with the next.

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
        stop=partial(futile, min_gain=measure.min_gain),
        progress=progress,
    )
    timings: list[Timing] = []
    chosen = in_turn([workload for workload in workloads if workload.status == "kept"], measure.max_workloads)
    for number in range(1, 2 * measure.max_rounds, 2):
        timings += _round(session, chosen, number, calls_of(timings), select)
        runs = runs_of(timings)
        if not any(shows_gain(run, select) for run in runs):
            break
        again = {run.workload_id for run in runs if undecided(run, select)}
        chosen = [workload for workload in chosen if workload.workload_id in again]
        if not chosen:
            break
    return timings


def _round(
    session: Callable[..., list[Timing]],
    workloads: Sequence[Workload],
    number: int,
    calls: Mapping[str, int],
    settings: SelectSettings,
) -> list[Timing]:
    first: list[Timing] = []
    waiting = workloads
    while waiting:
        rows = session(workloads=waiting, session=number, calls=calls)
        first += rows
        # A workload that ends a process takes others along before they were timed at all: these are tried without it.
        seen = {row.workload_id for row in rows}
        waiting = [workload for workload in waiting if seen and workload.workload_id not in seen]
    passed = {run.workload_id for run in runs_of(first) if passed_selection(run.sessions[0], settings)}
    promising = [workload for workload in workloads if workload.workload_id in passed]
    return first + session(workloads=promising, session=number + 1, calls=calls_of(first)) if promising else first


def in_turn(workloads: Sequence[Workload], limit: int) -> list[Workload]:
    """At most so many: the first of each source and role, then their second, and so on."""
    groups: dict[tuple[str, str], list[Workload]] = {}
    for workload in workloads:
        groups.setdefault((workload.source, workload.role), []).append(workload)
    ranked = [one for rank in zip_longest(*groups.values()) for one in rank if one is not None]
    return ranked[:limit]


def futile(timings: Sequence[Timing], min_gain: float) -> set[str]:
    """Ids of workloads whose interval, in the timings of one session so far, excludes the smallest gain."""
    return {run.workload_id for run in runs_of(timings) if hopeless(run.sessions[0], min_gain)}
