"""Two sessions of one change: the first selects, the second confirms what the first found."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import zip_longest

from curation.blocks import runs_of
from curation.evidence import CONFIRM, SELECT, passed_selection
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
    order and in fresh processes. Either gives up a workload only for futility or failure.
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
    first: list[Timing] = []
    waiting = in_turn([workload for workload in workloads if workload.status == "kept"], measure.max_workloads)
    while waiting:
        rows = session(workloads=waiting, session=SELECT)
        first += rows
        # A workload that ends a process takes others along before they were timed at all: these are tried without it.
        seen = {row.workload_id for row in rows}
        waiting = [workload for workload in waiting if seen and workload.workload_id not in seen]
    passed = {run.workload_id for run in runs_of(first) if passed_selection(run.sessions[0], select)}
    promising = [workload for workload in workloads if workload.workload_id in passed]
    if not promising:
        return first
    return first + session(workloads=promising, session=CONFIRM, calls=calls_of(first))


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
