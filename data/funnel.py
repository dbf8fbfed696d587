"""The funnel: how many changes each stage kept, and why the rest were rejected. A group-by over the tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow.compute as pc
from pydantic import Field

from perfquarry.data.records import (
    INFORMATIVE,
    Build,
    Change,
    Evidence,
    Reason,
    Record,
    Row,
    Task,
    Timing,
    Verdict,
    Workload,
    workload_id_of,
)
from perfquarry.data.store import TableStore

KEPT = "kept"
_UNKNOWN = "unknown"

Outcomes = dict[str, str]
"""By change_id: 'kept', or the reason of the rejection. A change that is not in it has not been seen."""


class Provenance(Record):
    """Which rows count: by table, stage version and configuration hash. Tables not named: the newest there are."""

    tables: dict[str, tuple[str, str]] = Field(default_factory=dict)


class StageCount(Record):
    """One stage of the funnel. `entered` is `in` in JSON."""

    stage: str
    entered: int = Field(serialization_alias="in", description="Changes the stage before kept.")
    kept: int
    rejected: dict[str, int] = Field(default_factory=dict, description="Changes by reason, the most frequent first.")
    pending: int = Field(default=0, description="Changes the stage has not come to.")


class Funnel(Record):
    """All six stages of one repository; the unit is the change throughout."""

    repository: str
    stages: list[StageCount]

    @property
    def reasons(self) -> set[str]:
        """All reasons that occur."""
        return {reason for stage in self.stages for reason in stage.rejected}

    @property
    def pending(self) -> int:
        """Changes that wait for their next stage."""
        return sum(stage.pending for stage in self.stages)


def funnel(store: TableStore, repo: str, *provenances: Provenance) -> Funnel:
    """Counts the changes of a repository through mine, judge, build, generate, measure and select.

    A stage's `in` is what the stage before kept: rows of changes that did not get that far
    under their provenance are not counted. in = kept + rejected + pending. Of several provenances
    that one counts for a change under which it got through most stages, the first of equal ones.

    Raises:
        StoreError: a table cannot be read.
    """
    readers = [_Reader(store, repo, provenance) for provenance in provenances or [Provenance()]]
    stages: list[StageCount] = []
    alive: set[str] | None = None
    for stage, outcomes in _merged([_outcomes(read) for read in readers]).items():
        alive = set(outcomes) if alive is None else alive
        counts = Counter(outcomes[change] for change in alive if change in outcomes)
        kept = counts.pop(KEPT, 0)
        stages.append(
            StageCount(
                stage=stage,
                entered=len(alive),
                kept=kept,
                rejected=_frequencies(counts.elements()),
                pending=len(alive) - kept - counts.total(),
            )
        )
        alive = {change for change in alive if outcomes.get(change) == KEPT}
    return Funnel(repository=repo, stages=stages)


def reached(store: TableStore, repo: str) -> dict[str, str]:
    """By change the stage that rejected it or has not come to it; 'kept' for those that all stages kept.

    Raises:
        StoreError: a table cannot be read.
    """
    by_stage = _outcomes(_Reader(store, repo, Provenance()))
    return {
        change: next((stage for stage, outcomes in by_stage.items() if outcomes.get(change) != KEPT), KEPT)
        for change in by_stage["mine"]
    }


def _outcomes(read: _Reader) -> dict[str, Outcomes]:
    return {stage: outcomes_of(read) for stage, outcomes_of in _STAGES.items()}


def _merged(origins: list[dict[str, Outcomes]]) -> dict[str, Outcomes]:
    """Of each change, by stage, the outcomes of that origin which has most of them."""
    best: dict[str, tuple[int, int]] = {}
    for place, by_stage in enumerate(origins):
        for change, known in Counter(change for outcomes in by_stage.values() for change in outcomes).items():
            best[change] = max(best.get(change, (0, 0)), (known, -place))
    return {
        stage: {
            change: outcome
            for place, by_stage in enumerate(origins)
            for change, outcome in by_stage[stage].items()
            if best[change][1] == -place
        }
        for stage in _STAGES
    }


class SourceCount(Record):
    """What one source of workloads gave."""

    source: str
    changes: int = Field(description="Changes it was asked for workloads of and answered.")
    tried: int
    kept: int
    kept_changes: int = Field(description="Changes of which it has a kept workload.")
    accepted: int = Field(description="Workloads with a verified gain.")
    accepted_changes: int
    rejected: dict[str, int] = Field(default_factory=dict, description="Tried ones by reason, most frequent first.")
    without: dict[str, int] = Field(default_factory=dict, description="Changes of which it tried none, by reason.")


def by_source(store: TableStore, repo: str, provenance: Provenance | None = None) -> list[SourceCount]:
    """Counts the workloads of a repository by their source.

    Raises:
        StoreError: a table cannot be read.
    """
    read = _Reader(store, repo, provenance or Provenance())
    accepted = {row["workload_id"] for row in read.rows(Evidence, "workload_id", "status") if row["status"] == KEPT}
    sources: dict[str, list[dict[str, Any]]] = {}
    for row in read.rows(Workload, "source", "workload_id", "status", "reason"):
        sources.setdefault(row["source"], []).append(row)
    return [_count_of(source, rows, accepted) for source, rows in sources.items()]


def _count_of(source: str, rows: list[dict[str, Any]], accepted: set[str]) -> SourceCount:
    summaries: list[dict[str, Any]] = []
    tried: list[dict[str, Any]] = []
    for row in rows:
        empty = row["workload_id"] == workload_id_of(row["change_id"], source, "")
        (summaries if empty else tried).append(row)
    tried_of = {row["change_id"] for row in tried}
    kept = [row for row in tried if row["status"] == KEPT]
    verified = [row for row in kept if row["workload_id"] in accepted]
    return SourceCount(
        source=source,
        changes=len({row["change_id"] for row in rows}),
        tried=len(tried),
        kept=len(kept),
        kept_changes=len({row["change_id"] for row in kept}),
        accepted=len(verified),
        accepted_changes=len({row["change_id"] for row in verified}),
        rejected=_frequencies(_outcome(row) for row in tried if row["status"] != KEPT),
        without=_frequencies(_outcome(row) for row in summaries if row["change_id"] not in tried_of),
    )


def _frequencies(reasons: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(reasons).items(), key=lambda item: (-item[1], item[0])))


class _Reader:
    """Rows of the tables under one provenance, as dicts."""

    def __init__(self, store: TableStore, repo: str, provenance: Provenance) -> None:
        self._store, self._repo, self._provenance = store, repo, provenance

    def rows(self, model: type[Row], *columns: str) -> list[dict[str, Any]]:
        """Distinct values of `change_id` and these columns, in the order of the rows: timings agree by the hundred."""
        origin = self._provenance.tables.get(model.TABLE) or self._newest(model)
        if origin is None:
            return []
        version, config = origin
        names = ["change_id", *columns]
        table = self._store.scan(model, self._repo, columns=names, stage_version=version, config_hash=config)
        rows: list[dict[str, Any]] = table.group_by(names, use_threads=False).aggregate([]).to_pylist()
        return rows

    def _newest(self, model: type[Row]) -> tuple[str, str] | None:
        names = ["stage_version", "config_hash", "created_at"]
        table = self._store.scan(model, self._repo, columns=names)
        if not table.num_rows:
            return None
        newest = table.take([pc.index(table["created_at"], pc.max(table["created_at"])).as_py()]).to_pylist()[0]
        return newest["stage_version"], newest["config_hash"]


def _outcome(row: Mapping[str, Any]) -> str:
    return KEPT if row["status"] == "kept" else row["reason"] or _UNKNOWN


def _of_rows(model: type[Row]) -> Callable[[_Reader], Outcomes]:
    """Stages with one row per change."""
    return lambda read: {row["change_id"]: _outcome(row) for row in read.rows(model, "status", "reason")}


def _builds(read: _Reader) -> Outcomes:
    """Kept when both sides are; else the base's reason before the head's."""
    sides: dict[str, dict[str, str]] = {}
    for row in read.rows(Build, "side", "status", "reason"):
        sides.setdefault(row["change_id"], {})[row["side"]] = _outcome(row)
    outcomes = {}
    for change, by_side in sides.items():
        rejections = [by_side[side] for side in ("base", "head") if by_side.get(side, KEPT) != KEPT]
        if rejections or len(by_side) == 2:
            outcomes[change] = rejections[0] if rejections else KEPT
    return outcomes


def _workloads(read: _Reader) -> Outcomes:
    """Kept when any workload is; else the most informative reason."""
    order = {KEPT: -1, **{str(reason): rank for rank, reason in enumerate(INFORMATIVE)}}
    pairs = ((row["change_id"], _outcome(row)) for row in read.rows(Workload, "status", "reason"))
    return _least(pairs, lambda outcome: (order.get(outcome, len(order)), outcome))


def _timings(read: _Reader) -> Outcomes:
    """Kept when some workload passed on both sides in the first session; else timeout before failure."""
    runs: dict[tuple[str, str], dict[str, set[str]]] = {}
    for row in read.rows(Timing, "workload_id", "session", "aa", "side", "outcome"):
        if row["session"] == 1 and not row["aa"]:
            by_side = runs.setdefault((row["change_id"], row["workload_id"]), {})
            by_side.setdefault(row["side"], set()).add(row["outcome"])
    pairs = ((change, _timed(by_side)) for (change, _), by_side in runs.items())
    order = (KEPT, str(Reason.WORKLOAD_TIMEOUT), str(Reason.WORKLOAD_FAILED))
    return _least(pairs, order.index)


def _timed(by_side: Mapping[str, set[str]]) -> str:
    if all("passed" in by_side.get(side, ()) for side in ("base", "head")):
        return KEPT
    timed_out = any("timeout" in outcomes for outcomes in by_side.values())
    return str(Reason.WORKLOAD_TIMEOUT if timed_out else Reason.WORKLOAD_FAILED)


def _least(pairs: Iterable[tuple[str, str]], rank: Callable[[str], Any]) -> Outcomes:
    outcomes: Outcomes = {}
    for change, outcome in pairs:
        outcomes[change] = min(outcomes.get(change, outcome), outcome, key=rank)
    return outcomes


_STAGES: dict[str, Callable[[_Reader], Outcomes]] = {
    "mine": _of_rows(Change),
    "judge": _of_rows(Verdict),
    "build": _builds,
    "generate": _workloads,
    "measure": _timings,
    "select": _of_rows(Task),
}
