"""The schedule of a session: pairs of processes that take turns, so that their code is all that differs.

See docs/statistics.md: base and head alive together on one core, strictly alternating short turns, who is not on
turn stopped; pairs with fresh processes and hash seeds; base against base, from a second copy of the tree, in some.
What cannot live beside others runs in fresh processes, one after the other, and its rows say so.
"""

from __future__ import annotations

import contextlib
import logging
import math
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from perfquarry.data.records import Machine, Reason, Side, Stamp, Timing, Workload
from perfquarry.harness.alternation.figures import agree
from perfquarry.harness.alternation.turns import SLOW, Call, alternate, phases, turns_of
from perfquarry.harness.contracts import BuiltSide, Limits, PartnerFailed, ProbeItem, ProbeReport, ProbeRequest
from perfquarry.harness.measuring.machine import LoadMeter
from perfquarry.harness.probing.live import LiveProcess
from perfquarry.harness.probing.prober import Prober
from perfquarry.harness.sandbox.priority import preferred
from perfquarry.harness.settings import MeasureSettings
from perfquarry.harness.trees.tree_copies import second_copy

Role = Literal["base", "head", "again"]
"""What a process of a pair is for; 'again': the base, to be compared with the pair's base."""
Outcome = Literal["passed", "failed", "timeout", "crashed"]
Stop = Callable[[Sequence[Timing]], Collection[str]]
"""From the timings so far to the ids of workloads that are not worth going on with."""
Progress = Callable[[int, int], None]
"""Called with the number of pairs done and planned at most."""
Keep = Callable[[Sequence[Timing]], None]
"""Called with the rows of each pair; what it raises ends the session, which can go on from what was kept."""

FEWEST_WORKLOADS = 3
"""So many, the first of a change, are timed, however slow they are."""
ORDERS = 4
"""Within so many pairs in a row, half begin with the base."""
FRESH_CALLS = 40
"""Timed calls at most in a process by itself."""
BUDGET = 0.6
"""Part of the limit of a process by itself after which no further call is begun."""

_log = logging.getLogger("perfquarry.schedule")


@dataclass(frozen=True)
class LivePair:
    """Processes that are alive together: both sides and, in some pairs, the base once more."""

    number: int
    """Within the session, from 0."""
    roles: tuple[Role, ...]
    """In the order of their turns."""
    hash_seed: int
    order_seed: int
    """Of the generator that draws the order of the workloads and the phases of the garbage collector."""


def plan_pairs(settings: MeasureSettings, change_id: str, session: int) -> list[LivePair]:
    """The session's pairs in the order they run; the same arguments give the same plan everywhere."""
    rng = random.Random(f"{settings.seed}/{change_id}/{session}")  # noqa: S311  # an order, not a secret
    firsts: list[Role] = []
    while len(firsts) < settings.max_pairs:
        group: list[Role] = ["base", "head"] * (ORDERS // 2)
        rng.shuffle(group)
        firsts += group
    pairs = []
    for number, first in enumerate(firsts[: settings.max_pairs]):
        roles: list[Role] = ["base", "head"] if first == "base" else ["head", "base"]
        if number % settings.aa_every == 0:
            roles.insert(rng.randrange(3), "again")
        pairs.append(LivePair(number, tuple(roles), rng.randrange(1, 2**32), rng.randrange(2**32)))
    return pairs


def run_session(
    change_id: str,
    workloads: Sequence[Workload],
    base: BuiltSide,
    head: BuiltSide,
    prober: Prober,
    settings: MeasureSettings,
    stamp: Stamp,
    machine: Machine,
    *,
    session: int,
    core: int | None,
    stop: Stop,
    alone: Collection[str] = (),
    so_far: Sequence[Timing] = (),
    pair_seconds: float = math.inf,
    keep: Keep = lambda rows: None,
    progress: Progress = lambda done, planned: None,
) -> list[Timing]:
    """Measures the workloads of one change; the caller holds the core (`measurement_lock`).

    Args:
        change_id: of the change; decides the order together with the seed and the session.
        workloads: kept ones; all are loaded into the same processes.
        session: odd: it selects; even: it confirms.
        core: all processes are pinned to it; None: nowhere.
        stop: for futility and for precision only, never for success; asked after each pair from the sixth on.
        alone: ids of workloads known not to live beside others.
        so_far: rows of this session's first pairs, measured before: it goes on with the next pair.
        pair_seconds: slow workloads that would make a pair last longer are left out, but for the first few.
        keep: called after every pair.
        progress: called before the first and after every pair.

    Returns:
        One row a process and workload, samples in seconds. A workload that fails in a process by itself has that as
        its last rows and is not run again.

    Raises:
        SandboxUnavailable: a process could not be started.
    """
    pairs = plan_pairs(settings, change_id, session)
    done = 1 + max((row.block for row in so_far), default=-1)
    ended = {row.workload_id for row in so_far if row.outcome != "passed"}
    if done >= settings.pairs:
        ended.update(stop(tuple(so_far)))
    if so_far:  # what was too slow for its first pair has no row
        ended.update({one.workload_id for one in workloads}.difference(row.workload_id for row in so_far))
    active = [workload for workload in workloads if workload.workload_id not in ended]
    apart = {*alone, *(row.workload_id for row in so_far if row.schedule == "fresh")}
    progress(done, len(pairs))
    with contextlib.ExitStack() as stack:
        again = stack.enter_context(second_copy(base, prober.scratch, settings.copy_bytes)) if active else base
        stack.enter_context(preferred())
        sides: dict[Role, BuiltSide] = {"base": base, "head": head, "again": again}
        run = _Session(change_id, sides, prober, settings, stamp, machine, session, core, pair_seconds)
        run.active = {workload.node: workload for workload in active}
        run.alone = {workload.node for workload in active if workload.workload_id in apart}
        run.timings += so_far
        run.begun += pairs[:done]
        for pair in pairs[done:] if active else ():
            before = len(run.timings)
            run.pair(pair)
            keep(run.timings[before:])
            if pair.number + 1 >= settings.pairs:
                run.drop(stop(tuple(run.timings)))
            progress(pair.number + 1, len(pairs))
            if not run.active:
                break
    return run.timings


@dataclass
class _Session:
    change_id: str
    sides: Mapping[Role, BuiltSide]
    prober: Prober
    settings: MeasureSettings
    stamp: Stamp
    machine: Machine
    session: int
    core: int | None
    pair_seconds: float
    active: dict[str, Workload] = field(default_factory=dict)
    """Those still measured, by node."""
    alone: set[str] = field(default_factory=set)
    """Nodes that run in processes of their own."""
    timings: list[Timing] = field(default_factory=list)
    begun: list[LivePair] = field(default_factory=list)
    """Pairs so far."""
    _turns: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """By node, timed calls in a pair, and untimed and timed ones of a turn: the same in all pairs of the session."""
    _calls: dict[str, int] = field(default_factory=dict)
    _seconds: float = 0.0
    """Of the turns of all workloads in one pair."""

    @cached_property
    def _first(self) -> list[str]:
        return [*self.active][:FEWEST_WORKLOADS]

    def drop(self, workload_ids: Iterable[str]) -> None:
        """Ends the measurement of workloads."""
        gone = set(workload_ids)
        self.active = {node: one for node, one in self.active.items() if one.workload_id not in gone}

    def pair(self, pair: LivePair) -> None:
        """One pair of every active workload: of those that live beside others together, then the rest one by one.

        What has just turned out not to live beside others catches up: a session is judged by one schedule.
        """
        self.begun.append(pair)
        rng = random.Random(pair.order_seed)  # noqa: S311  # an order, not a secret
        together = [node for node in self.active if node not in self.alone]
        rng.shuffle(together)
        if not pair.number:
            together.sort(key=lambda node: node not in self._first)
        while together:
            together = self._together(pair, together, rng)
        for node in [node for node in self.active if node in self.alone]:
            for one in self.begun:
                if node in self.active and not self._has(one, node, "fresh"):
                    self._by_itself(one, node)

    def _together(self, pair: LivePair, nodes: list[str], rng: random.Random) -> list[str]:
        """Loads the workloads in all processes of the pair and measures them in turns; those that are left over.

        A workload that fails here is measured by itself from now on. One that ends a process takes the others along:
        they are begun anew without it.
        """
        meter = LoadMeter(self.core)
        rows: list[Timing] = []
        left = list(nodes)
        with contextlib.ExitStack() as stack:
            partners: dict[Role, LiveProcess] = {}
            try:
                opened = [(role, stack.enter_context(self._open(role, pair, nodes))) for role in pair.roles]
                for role, partner in opened:
                    partner.ready()
                    partners[role] = partner
                missing = [node for node in nodes if not all(node in partner.kinds for partner in partners.values())]
                self.alone.update(missing)
                for partner in partners.values():
                    partner.stop()
                while left:
                    node = left.pop(0)
                    if node not in self.alone:
                        rows += self._in_turns(pair, node, partners, rng)
            except PartnerFailed as failure:
                _log.info("a process of %s ended: %s", self.change_id, failure)
                if not partners or len(left) == len(nodes):  # nothing can be loaded: nobody knows whose fault it is
                    self.alone.update(nodes)
                    left = []
            used = sum(partner.end().cpu_seconds for partner in partners.values())
        load = meter.foreign(used)
        self.timings += [row.model_copy(update={"foreign_load": load}) for row in rows]
        return left

    def _open(self, role: Role, pair: LivePair, nodes: Sequence[str]) -> contextlib.AbstractContextManager[LiveProcess]:
        settings = self.settings
        request = self._request("turns", nodes)
        seconds = settings.max_process_seconds * (1 + len(nodes))
        limits = Limits(wall_seconds=seconds, memory_bytes=settings.memory_bytes)
        return self.prober.open(self.sides[role], request, limits=limits, hash_seed=pair.hash_seed, core=self.core)

    def _in_turns(
        self, pair: LivePair, node: str, partners: Mapping[Role, LiveProcess], rng: random.Random
    ) -> Iterable[Timing]:
        """Rows of one workload in the pair; none, and it is measured by itself, when it fails.

        Raises:
            PartnerFailed: a process is lost with it.
        """
        try:
            first, request = self._warm(node, partners)
            wanted, untimed, together = self._turns[node]
            seconds = len(partners) * request * wanted * (1 + untimed / together)
            if not pair.number and not self._has_time(node, seconds):
                self.drop([self.active[node].workload_id])
                return []
            drawn = phases(rng, wanted)
            calls = alternate(list(partners.values()), node, untimed, drawn, together, self._enough)
        except PartnerFailed as failure:
            _log.info("%s of %s goes on by itself: %s", node, self.change_id, failure)
            self.alone.add(node)
            if failure.gone:
                raise
            return []
        return [
            self._row(pair, node, position, role, "passed").model_copy(
                update={
                    "schedule": "turns",
                    "samples": [call[0] for call in mine],
                    "outside": [call[1] for call in mine],
                    "untimed": untimed,
                    "stopped": partners[role].stoppable,
                    "order_seed": pair.order_seed,
                    "cold": first[role],
                }
            )
            for position, (role, mine) in enumerate(zip(partners, calls, strict=True))
        ]

    def _enough(self, found: Sequence[Sequence[Call]]) -> bool:
        return agree([[inside for inside, _, _ in calls] for calls in found], self.settings.turn_error)

    def _has_time(self, node: str, seconds: float) -> bool:
        """Whether a workload is timed at all: its first pair tells what it costs."""
        self._seconds += seconds
        share = self.pair_seconds / self.settings.max_workloads
        if node in self._first or seconds <= share or self._seconds <= self.pair_seconds:
            return True
        self._seconds -= seconds
        _log.info("%s of %s is not timed: a pair would take %.1f s more", node, self.change_id, seconds)
        return False

    def _warm(self, node: str, partners: Mapping[Role, LiveProcess]) -> tuple[dict[Role, float], float]:
        """Warms it up in each process; seconds of the first call by role, and of the slowest with its fixtures.

        The first pair fixes the turns.
        """
        first, slowest, shortest = {}, 0.0, float("inf")
        for role, partner in partners.items():
            partner.go()
            try:
                first[role], last, busy = partner.warm(node, 1)
                if self.settings.warmups > 1 and busy < SLOW:
                    _, last, busy = partner.warm(node, self.settings.warmups - 1)
            finally:
                partner.stop()
            slowest, shortest = max(slowest, busy), min(shortest, last)
        if node not in self._turns:
            settings = self.settings
            fewest = settings.fewest_turns if slowest < SLOW else settings.slow_turns
            self._turns[node] = turns_of(slowest, shortest, settings.turn_seconds, fewest, settings.most_turns)
        return first, slowest

    def _by_itself(self, pair: LivePair, node: str) -> None:
        """A pair of processes one after the other, each with this workload alone."""
        rows: list[Timing] = []
        meter, seconds = LoadMeter(self.core), 0.0
        for position, role in enumerate(pair.roles):
            report = self._fresh(role, pair, node)
            seconds += report.cpu_seconds
            rows.append(self._alone_row(pair, node, position, role, report))
            if rows[-1].outcome != "passed":
                break
        load = meter.foreign(seconds)
        self.timings += [row.model_copy(update={"foreign_load": load}) for row in rows]
        self.drop(row.workload_id for row in rows if row.outcome != "passed")

    def _has(self, pair: LivePair, node: str, schedule: str) -> bool:
        mine = (row for row in self.timings if row.workload_id == self.active[node].workload_id)
        return any(row.block == pair.number and row.schedule == schedule for row in mine)

    def _fresh(self, role: Role, pair: LivePair, node: str) -> ProbeReport:
        settings = self.settings
        request = self._request("time", [node]).model_copy(
            update={
                "warmups": settings.warmups,
                "calls": {node: self._calls[node]} if node in self._calls else {},
                "min_timed_seconds": settings.fresh_seconds,
                "max_calls": FRESH_CALLS,
                "max_seconds": settings.max_process_seconds * BUDGET,
            }
        )
        limits = Limits(wall_seconds=settings.max_process_seconds, memory_bytes=settings.memory_bytes)
        report = self.prober.run(self.sides[role], request, limits=limits, hash_seed=pair.hash_seed, core=self.core)
        self._calls.update((item.node, item.calls) for item in report.items if item.calls)
        return report

    def _request(self, mode: Literal["turns", "time"], nodes: Sequence[str]) -> ProbeRequest:
        return ProbeRequest(
            mode=mode,
            arguments=[node for node in nodes if not self.active[node].is_script],
            scripts={node: self.active[node].code for node in nodes if self.active[node].is_script},
            test_timeout=self.settings.call_seconds,
        )

    def _alone_row(self, pair: LivePair, node: str, position: int, role: Role, report: ProbeReport) -> Timing:
        item = next((item for item in report.items if item.node == node), None)
        outcome = outcome_of(report, item)
        facts = {"wall_seconds": report.wall_seconds, "attempt": int(self._has(pair, node, "turns"))}
        row = self._row(pair, node, position, role, outcome).model_copy(update=facts)
        if item is None or outcome != "passed":
            return row
        return row.model_copy(update={"samples": item.samples, "cold": item.seconds})

    def _row(self, pair: LivePair, node: str, position: int, role: Role, outcome: Outcome) -> Timing:
        side: Side = "base" if role == "base" else "head"
        return Timing(
            **self.stamp.fields(),
            status="kept" if outcome == "passed" else "rejected",
            reason=_REASONS.get(outcome),
            workload_id=self.active[node].workload_id,
            change_id=self.change_id,
            session=self.session,
            block=pair.number,
            position=position,
            side=side,
            aa=role == "again",
            copied=role == "again" and self.sides["again"].tree != self.sides["base"].tree,
            outcome=outcome,
            hash_seed=pair.hash_seed,
            core=self.core,
            machine=self.machine,
        )


def outcome_of(report: ProbeReport, item: ProbeItem | None) -> Outcome:
    """How a workload ended in a process by itself; `item` is what the report says of it, if anything."""
    if item is None:
        return "failed" if report.outcome == "finished" else report.outcome
    if item.outcome == "timeout" or item.outcome == "crashed":
        return item.outcome
    return "passed" if item.outcome == "passed" and item.samples else "failed"


_REASONS: dict[str, Reason] = {
    "failed": Reason.WORKLOAD_FAILED,
    "crashed": Reason.WORKLOAD_FAILED,
    "timeout": Reason.WORKLOAD_TIMEOUT,
}
