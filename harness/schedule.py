"""The block schedule: which process runs when, so that base and head differ in nothing but their code.

See the measurement design: interleaved blocks, both sides of a block in fresh processes on the
same core with the same hash seed, in balanced random order; base against base within some;
early stops for futility only.
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from data.records import Machine, Reason, Side, Stamp, Timing, Workload
from data.settings import MeasureSettings
from harness.contracts import BuiltSide, Limits, ProbeItem, Prober, ProbeReport, ProbeRequest
from harness.machine import LoadMeter, quiet_core

Outcome = Literal["passed", "failed", "timeout", "crashed"]
Role = Literal["base", "head", "again"]
"""What a process of a block is for; 'again': the base, to be compared with the block's base."""
Stop = Callable[[Sequence[Timing]], Collection[str]]
"""From the timings so far to the ids of workloads that are not worth going on with."""
Progress = Callable[[int, int], None]
"""Called with the number of blocks done and planned."""

BUDGET = 0.6
"""Part of a process's wall limit after which no further call is begun."""
ORDERS = 4
"""Within so many blocks in a row, half run the base first."""

_log = logging.getLogger("perfquarry.schedule")


@dataclass(frozen=True)
class Block:
    """Processes that run one after the other: of both sides, and in some blocks of the base once more."""

    number: int
    """Within the session, from 0."""
    roles: tuple[Role, ...]
    """In the order they run."""
    hash_seed: int


def plan_blocks(settings: MeasureSettings, change_id: str, session: int) -> list[Block]:
    """The session's blocks in the order they run; the same arguments give the same plan everywhere.

    Blocks with the base twice lie spread among the others, each at a random place of its stretch. The base runs
    first in them and last, so that what a process leaves behind for later ones shows, and no head runs after it.
    """
    rng = random.Random(f"{settings.seed}/{change_id}/{session}")  # noqa: S311  # an order, not a secret
    orders: list[tuple[Role, ...]] = []
    while len(orders) < settings.blocks:
        group: list[tuple[Role, ...]] = [("base", "head"), ("head", "base")] * (ORDERS // 2)
        rng.shuffle(group)
        orders += group
    firsts = [number for number, order in enumerate(orders[: settings.blocks]) if order[0] == "base"]
    stretches = min(settings.aa_blocks, len(firsts))
    for stretch in range(stretches):
        begin, end = (len(firsts) * edge // stretches for edge in (stretch, stretch + 1))
        orders[firsts[rng.randrange(begin, end)]] += ("again",)
    return [Block(number, orders[number], rng.randrange(1, 2**32)) for number in range(settings.blocks)]


def calls_of(timings: Iterable[Timing]) -> dict[str, int]:
    """Number of timed calls by workload id, as a session calibrated them: what the next one is given."""
    return {timing.workload_id: len(timing.samples) for timing in timings if timing.samples}


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
    stop: Stop,
    calls: Mapping[str, int] | None = None,
    progress: Progress = lambda done, planned: None,
) -> list[Timing]:
    """Measures the workloads of one change; the caller holds the machine (`measurement_lock`).

    Args:
        change_id: of the change; decides the order together with the seed and the session.
        workloads: kept ones; all run in the same processes, unit tests before scripts.
        base: the built base.
        head: the built head.
        prober: runs the processes.
        settings: the schedule.
        stamp: where the rows come from.
        machine: facts that go with the rows.
        session: 1, or 2 for the confirming one.
        stop: for futility only; asked after every `futility_blocks` plain blocks.
        calls: timed calls a process by workload id (`calls_of` the first session); those missing are
            calibrated in one process of the base that is not stored.
        progress: called before the first and after every block.

    Returns:
        One row a process and workload, samples in seconds. A workload that fails in any process has that
        as its last rows and is not run again; those of a process that another workload ended have none.

    Raises:
        SandboxUnavailable: a process could not be started.
    """
    sides: dict[Side, BuiltSide] = {"base": base, "head": head}
    run = _Session(change_id, sides, prober, settings, stamp, machine, session, {w.node: w for w in workloads})
    blocks = plan_blocks(settings, change_id, session)
    progress(0, len(blocks))
    run.calibrate(calls or {}, blocks)
    for done, block in enumerate(blocks, 1):
        if not run.active:
            break
        run.block(block)
        if done % settings.futility_blocks == 0 and done < settings.blocks:
            run.drop(stop(tuple(run.timings)))
        progress(done, len(blocks))
    return run.timings


@dataclass
class _Session:
    change_id: str
    sides: Mapping[Side, BuiltSide]
    prober: Prober
    settings: MeasureSettings
    stamp: Stamp
    machine: Machine
    session: int
    active: dict[str, Workload]
    """Those still measured, by node."""
    timings: list[Timing] = field(default_factory=list)
    _calls: dict[str, int] = field(default_factory=dict)
    _core: int | None = field(default_factory=quiet_core)

    def calibrate(self, known: Mapping[str, int], blocks: Sequence[Block]) -> None:
        """Fixes the number of calls of every workload, the same for both sides and all processes."""
        self._calls = {code: known[one.workload_id] for code, one in self.active.items() if one.workload_id in known}
        missing = [code for code in self.active if code not in self._calls]
        if not missing or not blocks:
            return
        meter = LoadMeter(self._core)
        report = self._run("base", blocks[0].hash_seed, missing, self.settings.workload_seconds * len(missing))
        self._calls.update((item.node, item.calls) for item in report.items if item.calls)
        failed = [row for row in self._rows(blocks[0], 0, 0, "base", report, missing) if row.outcome != "passed"]
        self._keep(failed, meter.foreign(report.cpu_seconds), disturbed=False)
        uncalibrated = [one.workload_id for code, one in self.active.items() if code not in self._calls]
        self.drop(uncalibrated)

    def block(self, block: Block) -> None:
        """Runs a block, again when others disturbed it; every attempt is kept."""
        for attempt in range(self.settings.max_attempts):
            rows: list[Timing] = []
            meter, seconds = LoadMeter(self._core), 0.0
            codes = list(self.active)
            for position, role in enumerate(block.roles):
                report = self._run("head" if role == "head" else "base", block.hash_seed, codes)
                rows += self._rows(block, attempt, position, role, report, codes)
                seconds += report.cpu_seconds
            load = meter.foreign(seconds)
            disturbed = load > self.settings.max_foreign_load
            self._keep(rows, load, disturbed=disturbed)
            if not disturbed or not self.active:
                return
            self._core = quiet_core()

    def drop(self, workload_ids: Iterable[str]) -> None:
        """Ends the measurement of workloads."""
        gone = set(workload_ids)
        self.active = {code: one for code, one in self.active.items() if one.workload_id not in gone}

    def _keep(self, rows: Iterable[Timing], load: float, *, disturbed: bool) -> None:
        kept = [row.model_copy(update={"foreign_load": load, "disturbed": disturbed}) for row in rows]
        self.timings += kept
        self.drop(row.workload_id for row in kept if row.outcome != "passed")

    def _run(self, side: Side, hash_seed: int, codes: Sequence[str], seconds: float = math.inf) -> ProbeReport:
        settings = self.settings
        request = ProbeRequest(
            mode="time",
            arguments=[code for code in codes if not self.active[code].is_script],
            scripts={code: self.active[code].code for code in codes if self.active[code].is_script},
            warmups=settings.warmups,
            calls={code: self._calls[code] for code in codes if code in self._calls},
            min_timed_seconds=settings.min_timed_seconds,
            max_calls=settings.max_calls,
            max_seconds=min(seconds, settings.max_process_seconds * BUDGET),
        )
        limits = Limits(wall_seconds=settings.max_process_seconds, memory_bytes=settings.memory_bytes)
        report = self.prober.run(self.sides[side], request, limits=limits, hash_seed=hash_seed, core=self._core)
        if report.outcome != "finished":
            _log.info("a process of %s at %s %s: %s", self.change_id, side, report.outcome, report.output)
        return report

    def _rows(
        self, block: Block, attempt: int, position: int, role: Role, report: ProbeReport, codes: Sequence[str]
    ) -> Iterable[Timing]:
        items = {item.node: item for item in report.items}
        outcomes = outcomes_of(report, codes)
        for code, outcome in outcomes.items():
            item, passed = items.get(code), outcome == "passed"
            yield Timing(
                **self.stamp.fields(),
                status="kept" if passed else "rejected",
                reason=None if passed else _REASONS[outcome],
                workload_id=self.active[code].workload_id,
                change_id=self.change_id,
                session=self.session,
                block=block.number,
                attempt=attempt,
                position=position,
                side="base" if role == "base" else "head",
                aa=role == "again",
                samples=item.samples if item and passed else [],
                cold=item.seconds if item and passed else None,
                outcome=outcome,
                wall_seconds=report.wall_seconds,
                hash_seed=block.hash_seed,
                core=self._core,
                machine=self.machine,
            )


_REASONS = {
    "failed": Reason.WORKLOAD_FAILED,
    "crashed": Reason.WORKLOAD_FAILED,
    "timeout": Reason.WORKLOAD_TIMEOUT,
}


def outcomes_of(report: ProbeReport, codes: Iterable[str]) -> dict[str, Outcome]:
    """How each workload ended in a process; those of which nothing is known, since another one ended it, are left out.

    When the report names no test that was running as the process ended, none can be cleared.
    """
    items = {item.node: item for item in report.items}
    unknown: Outcome = "timeout" if report.outcome == "timeout" else "crashed"
    culprit = any(item.outcome in ("timeout", "crashed") for item in report.items)
    found: dict[str, Outcome] = {}
    for code in codes:
        item = items.get(code)
        if item is not None:
            found[code] = _outcome(item)
        elif report.outcome == "finished":
            found[code] = "failed"
        elif not culprit:
            found[code] = unknown
    return found


def _outcome(item: ProbeItem) -> Outcome:
    if item.outcome == "timeout" or item.outcome == "crashed":
        return item.outcome
    return "passed" if item.outcome == "passed" and item.samples else "failed"
