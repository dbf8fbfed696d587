"""Which rows count for one run and its settings, and what its stages have to do again (decisions 0023, 0056)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import pyarrow.compute as pc

from perfquarry.curation.in_force import fulfilled, renewed, without_replaced
from perfquarry.data.funnel import Provenance
from perfquarry.data.own_rows import TABLES, VERSIONS, OwnRows
from perfquarry.data.records import Evidence, Reason, Task, Timing, content_id

ROUND = 2
"""Sessions of a round: one selects, one confirms."""
MOST_ROUNDS = 3
"""Rounds of a workload that noise leaves undecided, each in another run."""


def done(run: OwnRows, stage: Literal["generate", "measure"]) -> set[str]:
    """Changes that need nothing more of a stage: it wrote rows, and nobody wished it once more since then."""
    return fulfilled(_newest(run, stage), renewed(run.store, run.name, stage))


def timings_in_force(run: OwnRows) -> list[Timing]:
    """Timings that count: of a change measured again the newer ones, of workloads that are still kept."""
    timings = without_replaced(run.store.records(Timing, run.name, **run.where("measure")), _measured_again(run))
    generated_again = renewed(run.store, run.name, "generate")
    if not generated_again:
        return timings
    known = run.column("generate", "workload_id", pc.field("status") == "kept")
    return [row for row in timings if row.change_id not in generated_again or row.workload_id in known]


def family(run: OwnRows, changes: Sequence[str]) -> str:
    """Configuration hash of the decision over these changes: another one once a change was measured again."""
    wishes = _measured_again(run)
    again = {change: wishes[change].isoformat() for change in changes if change in wishes}
    again |= {f"{change} rounds": str(last) for change, last in _last_sessions(run).items() if last > ROUND}
    return content_id(run.hashes["select"], changes, *([again] if again else []))


def decision(run: OwnRows) -> str | None:
    """Configuration hash of the newest decision on timings of this run's settings; None before the first.

    A run with other settings may have decided later. A decision on fewer changes counts until that on all is made.
    """
    made = run.store.scan(Task, run.name, columns=["change_id", "config_hash", "created_at"])
    changes: dict[str, set[str]] = {}
    for row in made.sort_by([("created_at", "descending")]).to_pylist():
        changes.setdefault(row["config_hash"], set()).add(row["change_id"])
    if (now := family(run, sorted(_newest(run, "measure")))) in changes:
        return now
    for one, about in changes.items():
        ids = sorted(about)
        if one in (content_id(run.hashes["select"], ids), family(run, ids)):
            return one
    return None


def provenance(run: OwnRows) -> Provenance:
    """Which rows of each table belong to the run's settings."""
    tables = {model.TABLE: (VERSIONS[stage], run.hashes[stage]) for stage, model in TABLES.items()}
    of_decision = VERSIONS["select"], decision(run) or "none yet"
    return Provenance(tables=tables | {Evidence.TABLE: of_decision, Task.TABLE: of_decision})


@dataclass(frozen=True)
class Undecided:
    """What noise left open of a change."""

    workload_ids: frozenset[str]
    next_session: int


def undecided(run: OwnRows, before: datetime | None = None) -> dict[str, Undecided]:
    """Changes to be measured once more: the newest decision on their newest timings left workloads undecided.

    Not after `MOST_ROUNDS` rounds, each in another run; and not those that are measured anew as a whole.

    Args:
        run: the run.
        before: only decisions older than that count; the run's own ones are for the next.
    """
    columns = ["change_id", "workload_id", "reason", "created_at"]
    rows = run.store.scan(Evidence, run.name, columns=columns, where=pc.field("change_id").is_valid()).to_pylist()
    decided: dict[str, dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: row["created_at"]):
        decided[row["workload_id"]] = row
    open_now: dict[str, set[str]] = {}
    for row in decided.values():
        if row["reason"] == Reason.UNDECIDED:
            open_now.setdefault(row["change_id"], set()).add(row["workload_id"])
    if not open_now:
        return {}
    newest, last = _newest(run, "measure"), _last_sessions(run)
    whole = fulfilled(newest, renewed(run.store, run.name, "measure"))
    found = {}
    for change, workloads in open_now.items():
        at = max(decided[one]["created_at"] for one in workloads)
        sessions = last.get(change, 0)
        if before is not None and at >= before:
            continue
        if change in whole and newest[change] <= at and sessions <= ROUND * (MOST_ROUNDS - 1):
            found[change] = Undecided(frozenset(workloads), sessions + 1 + sessions % ROUND)
    return found


def _last_sessions(run: OwnRows) -> dict[str, int]:
    """By change, the highest number of a session of timings in force."""
    wishes = _measured_again(run)
    columns = ["change_id", "session"] + ["created_at"] * bool(wishes)
    table = run.store.scan(Timing, run.name, columns=columns, **run.where("measure"))
    for change, at in wishes.items():
        table = table.filter((pc.field("change_id") != change) | (pc.field("created_at") >= pc.scalar(at)))
    highest = table.group_by("change_id").aggregate([("session", "max")])
    return dict(zip(highest["change_id"].to_pylist(), highest["session_max"].to_pylist(), strict=True))


def _measured_again(run: OwnRows) -> dict[str, datetime]:
    """Wishes for measurements that were fulfilled: those before which timings no longer count."""
    wishes = renewed(run.store, run.name, "measure")
    if not wishes:
        return {}
    newest = _newest(run, "measure")
    return {change: at for change, at in wishes.items() if change in newest and newest[change] >= at}


def _newest(run: OwnRows, stage: str) -> dict[str, datetime]:
    table = run.store.scan(TABLES[stage], run.name, columns=["change_id", "created_at"], **run.where(stage))
    newest = table.group_by("change_id").aggregate([("created_at", "max")])
    return dict(zip(newest["change_id"].to_pylist(), newest["created_at_max"].to_pylist(), strict=True))
