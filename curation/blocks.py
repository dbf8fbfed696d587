"""Timings put together into blocks, sessions and runs: what the statistics read.

A block is a pair of processes, and the unit of analysis: turns of one pair are not independent of each other
(Kalibera and Jones, 2013).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

import numpy as np

from perfquarry.curation.intervals import hodges_lehmann
from perfquarry.curation.stability import Floats
from perfquarry.data.records import SessionStatistics, Timing

SHORTEST = 1e-9
"""Seconds: what a clock shows as nothing lasted that long."""

_Attempt = tuple[int, bool, int]  # session, aa, block


@dataclass(frozen=True)
class Block:
    """Both processes of a block; a side's value is the median of its timed calls, seconds."""

    base: float
    head: float
    log: float
    """Log ratio of base to head: Hodges-Lehmann over the turns, or of the two values."""
    cold_base: float | None = None
    """Seconds of the first call of the process."""
    cold_head: float | None = None
    at: datetime | None = None
    """When its last row was made; None: not known."""
    load: float = 0.0
    """CPU seconds per second that others used on the core."""
    middle: tuple[float, float] | None = None
    """Quartiles of the turns' log ratios."""


@dataclass(frozen=True)
class Session:
    """The blocks of one session of one workload, in the order they were run.

    In A/A blocks both sides ran the base; `head` is the second role.
    """

    number: int
    plain: tuple[Block, ...]
    aa: tuple[Block, ...] = ()
    outcomes: frozenset[str] = frozenset()
    """Outcomes other than 'passed', of any attempt: what fails once is not run again."""
    disturbed: int = 0
    """Blocks whose last attempt was disturbed, too (older homes)."""
    alone: bool = False
    """Whether its processes ran one after the other."""

    @property
    def logs(self) -> Floats:
        """Log ratios of base to head of the plain blocks, shape (n,)."""
        return np.array([block.log for block in self.plain])

    @property
    def aa_logs(self) -> Floats:
        """The same of base to base, shape (k,)."""
        return np.array([block.log for block in self.aa])

    @property
    def base(self) -> Floats:
        """Base values of the plain blocks, shape (n,), seconds."""
        return np.array([block.base for block in self.plain])

    @property
    def head(self) -> Floats:
        """Head values of the plain blocks, shape (n,), seconds."""
        return np.array([block.head for block in self.plain])

    @property
    def cold(self) -> tuple[Floats, Floats]:
        """First calls of base and head where both are known, shapes (k,), seconds."""
        pairs = [(b.cold_base, b.cold_head) for b in self.plain if b.cold_base is not None and b.cold_head is not None]
        array = np.array(pairs, dtype=np.float64).reshape(-1, 2)
        return array[:, 0], array[:, 1]


@dataclass(frozen=True)
class MeasuredWorkload:
    """All that one machine measured of one workload."""

    workload_id: str
    change_id: str
    machine_id: str
    newest: datetime
    sessions: tuple[Session, ...]
    """By number, ascending."""

    @property
    def last_round(self) -> tuple[Session, Session | None]:
        """The selecting and the confirming session of the last round, which decides; None where not confirmed.

        Rounds have the sessions 1 and 2, 3 and 4, and so on: the odd ones select.
        """
        select = max((one for one in self.sessions if one.number % 2), key=lambda one: one.number)
        return select, next((one for one in self.sessions if one.number == select.number + 1), None)


def runs_of(timings: Iterable[Timing]) -> list[MeasuredWorkload]:
    """One run for each workload and machine, in the order of the workloads' first timings.

    Timings of different machines never meet in one run. Of a block that was run more than
    once the last attempt counts that has both sides.
    """
    groups: dict[tuple[str, str], list[Timing]] = defaultdict(list)
    for timing in timings:
        groups[timing.workload_id, timing.machine.machine_id].append(timing)
    return [
        MeasuredWorkload(workload, rows[0].change_id, machine, max(row.created_at for row in rows), sessions_of(rows))
        for (workload, machine), rows in groups.items()
    ]


def measured_session(statistics: SessionStatistics, timings: Sequence[Timing]) -> Session | None:
    """The session that the statistics are of: one machine's, under one configuration.

    The same workload may be measured on several machines, and again with other settings.
    """
    origins: dict[tuple[str, str], list[Timing]] = {}
    for row in timings:
        origins.setdefault((row.stage_version, row.config_hash), []).append(row)
    found = [
        session
        for rows in origins.values()
        for run in runs_of(rows)
        for session in run.sessions
        if session.number == statistics.session and session.plain
    ]
    found.sort(key=lambda one: (len(one.plain) != statistics.n_base, _apart(one, statistics)))
    return found[0] if found else None


def _apart(session: Session, statistics: SessionStatistics) -> float:
    return abs(float(np.median(session.base)) - statistics.base_median)


def durations_of(runs: Mapping[str, MeasuredWorkload]) -> list[dict[str, dict[str, list[float]]]]:
    """The selecting and, where any run has it, the confirming session of last rounds: block values by name, seconds."""
    sessions: list[dict[str, dict[str, list[float]]]] = [{}, {}]
    for name, run in runs.items():
        for values, session in zip(sessions, run.last_round, strict=True):
            if session:
                values[name] = {"base": session.base.tolist(), "head": session.head.tolist()}
    return [values for values in sessions if values]


def sessions_of(rows: Sequence[Timing]) -> tuple[Session, ...]:
    """Sessions of the timings of one workload on one machine, by number."""
    attempts: dict[_Attempt, dict[int, dict[str, Timing]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        attempts[row.session, row.aa, row.block][row.attempt][row.side] = row
    _share_bases(attempts)
    chosen = {key: _last_whole(tried) for key, tried in sorted(attempts.items())}
    return tuple(
        _session(
            number,
            {key: sides for key, sides in chosen.items() if key[0] == number},
            frozenset(row.outcome for row in rows if row.session == number and row.outcome != "passed"),
        )
        for number in sorted({session for session, _, _ in chosen})
    )


def _share_bases(attempts: dict[_Attempt, dict[int, dict[str, Timing]]]) -> None:
    """Gives A/A blocks without a base of their own that of the block they are a part of."""
    for (session, aa, block), tried in list(attempts.items()):
        for number, sides in tried.items() if aa else ():
            base = attempts.get((session, False, block), {}).get(number, {}).get("base")
            if base and "base" not in sides and base.hash_seed == sides["head"].hash_seed:
                sides["base"] = base


def _last_whole(tried: dict[int, dict[str, Timing]]) -> dict[str, Timing]:
    """The last attempt with both sides; the last of all where none has."""
    whole = [number for number, sides in tried.items() if len(sides) == 2]
    return tried[max(whole or tried)]


def _session(number: int, chosen: dict[_Attempt, dict[str, Timing]], outcomes: frozenset[str]) -> Session:
    blocks: dict[bool, list[Block]] = {False: [], True: []}
    whole = {
        key: sides
        for key, sides in chosen.items()
        if len(sides) == 2 and all(row.outcome == "passed" and row.samples for row in sides.values())
    }
    # what could not live beside others from some pair on is measured by itself, and judged by that alone
    alone = any(row.schedule == "fresh" for sides in whole.values() for row in sides.values())
    for (_, aa, _), sides in whole.items():
        if not alone or sides["head"].schedule == "fresh":
            blocks[aa].append(_block(sides["base"], sides["head"]))
    return Session(
        number=number,
        plain=tuple(blocks[False]),
        aa=tuple(blocks[True]),
        outcomes=outcomes,
        alone=alone,
        disturbed=len({row.hash_seed for sides in chosen.values() for row in sides.values() if row.disturbed}),
    )


def _block(base: Timing, head: Timing) -> Block:
    turns = _turns(base, head)
    ordered = np.sort(turns)
    return Block(
        base=median(base.samples),
        head=median(head.samples),
        log=hodges_lehmann(turns) if len(turns) else log_ratio(median(base.samples), median(head.samples)),
        cold_base=base.cold,
        cold_head=head.cold,
        at=max(base.created_at, head.created_at),
        load=max(base.foreign_load, head.foreign_load),
        middle=(float(ordered[len(ordered) // 4]), float(ordered[-1 - len(ordered) // 4])) if len(turns) else None,
    )


def _turns(base: Timing, head: Timing) -> Floats:
    """Log ratios of the turns, shape (n,); none where the sides did not take turns."""
    if "turns" not in (base.schedule, head.schedule) or len(base.samples) != len(head.samples):
        return np.array([])
    return np.log(_positive(base.samples) / _positive(head.samples))


def _positive(samples: Sequence[float]) -> Floats:
    return np.maximum(np.asarray(samples, dtype=np.float64), SHORTEST)


def log_ratio(base: float, head: float) -> float:
    """Log of base over head, both in seconds."""
    return float(np.log(max(base, SHORTEST) / max(head, SHORTEST)))
