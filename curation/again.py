"""What was not brought to an end: rows that only a time limit rejected are tried again (decision 0033).

Once a run, `MOST_TRIES` times in all. A run with `--limit N` is about changes that are not finished when it begins.
And where unit tests alone show no gain, other sources of workloads are asked once (decision 0075).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Literal

import pyarrow.compute as pc

from perfquarry.curation import rows_of_run
from perfquarry.curation.in_force import renewed
from perfquarry.data.own_rows import TABLES, OwnRows
from perfquarry.data.records import MOST_TRIES, Build, Reason, Renewal, Task, Timing, Workload, is_late

WISHED_BY = "a time limit"
GAINLESS = "unit tests that show no gain"
WITHOUT_GAIN = (Reason.NO_GAIN, Reason.SLOWER)
"""Reasons of changes of which no workload gains."""
_REASONS = [Reason.TEST_TIMEOUT, Reason.BUILD_TIMEOUT, Reason.TOO_LONG]
Stage = Literal["build", "generate"]
_STAGES: tuple[Stage, ...] = ("build", "generate")
Scope = Callable[[], Collection[str]]
"""Ids of the changes that a run is about, looked up only where some may be tried again."""


def waiting(run: OwnRows, stage: Stage, before: datetime | None = None) -> set[str]:
    """Changes with rows that the stage has to try again.

    Args:
        run: the run.
        stage: whose rows.
        before: only rows older than that count; the run's own rows are not tried again by itself.
    """
    of_limits = pc.field("reason").isin([str(reason) for reason in _REASONS])
    condition = (pc.field("status") == "rejected") & (pc.field("tries") < MOST_TRIES) & of_limits
    if before is not None:
        condition = condition & (pc.field("created_at") < before)
    columns = ["change_id", "reason"] + ["detail"] * (stage == "generate")
    rows = run.store.scan(TABLES[stage], run.name, columns=columns, where=condition, **run.where(stage)).to_pylist()
    found = {row["change_id"] for row in rows if is_late(row["reason"], row.get("detail", ""))}
    if not found or stage == "build":
        return found
    altering = (pc.field("reason") == str(Reason.FAILS_ON_HEAD)) & (pc.field("code") == "")
    return found - run.column("generate", where=altering)  # unit tests have shown that nothing of these is kept


def further_wishes(run: OwnRows, further: Collection[str], in_scope: Scope) -> list[Renewal]:
    """Wishes that other sources of workloads are asked about changes of which unit tests alone show no gain.

    Tests take small inputs: what grows with their size does not show in them. Each change is wished for once.

    Args:
        run: the run.
        further: names of the sources that its settings ask where unit tests show nothing.
        in_scope: the changes that it is about.
    """
    last = rows_of_run.decision(run) if further else None
    if last is None:
        return []
    gainless = pc.field("reason").isin([str(reason) for reason in WITHOUT_GAIN]) & (pc.field("config_hash") == last)
    found = set(run.store.scan(Task, run.name, columns=["change_id"], where=gainless)["change_id"].to_pylist())
    if found:
        found -= run.column("generate", where=pc.field("source") != "unit-test")
        wished = (pc.field("stage") == "generate") & (pc.field("wished_by") == GAINLESS)
        found -= {row.change_id for row in run.store.records(Renewal, run.name, where=wished, **run.where("generate"))}
    found &= set(in_scope() if found else ())
    common = run.stamp("generate").fields()
    return [Renewal(**common, change_id=change, stage="generate", wished_by=GAINLESS) for change in sorted(found)]


def seeks_further(run: OwnRows, change_id: str) -> bool:
    """Whether the newest wish for workloads of a change is one of `further_wishes`."""
    where = (pc.field("stage") == "generate") & (pc.field("change_id") == change_id)
    rows = list(run.store.records(Renewal, run.name, where=where))
    return bool(rows) and max(rows, key=lambda row: row.created_at).wished_by == GAINLESS


def left(run: OwnRows, stages: Sequence[str], in_scope: Scope) -> bool:
    """Whether the next run will have something to try again, of the changes that it is about."""
    late = {change for stage in _STAGES if stage in stages for change in waiting(run, stage)}
    if "measure" in stages:
        late |= {wish.change_id for wish in late_wishes(run, in_scope)} | rows_of_run.undecided(run).keys()
    return not late.isdisjoint(in_scope()) if late else False


def builds(run: OwnRows, change_id: str, rows: Sequence[Build]) -> list[Build]:
    """New builds of a change, with the number of tries."""
    tries = max((row.tries for row in run.rows_of(Build, "build", change_id) if is_late(row.reason)), default=0) + 1
    return [row.model_copy(update={"tries": tries}) for row in rows]


def workloads(run: OwnRows, change_id: str) -> list[Workload]:
    """The rows of a change that is only to be tried again; none where all is to be looked for."""
    rows = run.rows_of(Workload, "generate", change_id)
    wish = renewed(run.store, run.name, "generate").get(change_id)
    is_done = rows and (wish is None or max(row.created_at for row in rows) >= wish)
    return rows if is_done else []


def wishes(
    run: OwnRows, change_id: str, known: Sequence[Workload], found: Sequence[Workload], wished_by: str
) -> list[Renewal]:
    """A wish to measure a change once more, if it was measured without workloads that it has now."""
    before = {row.workload_id for row in known if row.status == "kept"}
    new = {row.workload_id for row in found if row.status == "kept"} - before
    if not new or change_id not in run.column("measure"):
        return []
    return [Renewal(**run.stamp("measure").fields(), change_id=change_id, stage="measure", wished_by=wished_by)]


def late_wishes(run: OwnRows, in_scope: Scope, before: datetime | None = None) -> list[Renewal]:
    """Wishes to measure changes once more of which a workload met a time limit while it was timed.

    To be written where measuring begins, before it is asked what is to do: then these changes are. The number of
    tries is that of the wishes. `before` its beginning, timings are those of an earlier run.
    """
    wishes = renewed(run.store, run.name, "measure")
    condition = pc.field("reason") == str(Reason.WORKLOAD_TIMEOUT)
    if before is not None:
        condition = condition & (pc.field("created_at") < before)
    columns = ["change_id", "created_at"]
    rows = run.store.scan(Timing, run.name, columns=columns, where=condition, **run.where("measure")).to_pylist()
    late = {
        row["change_id"]
        for row in rows
        if row["change_id"] not in wishes or row["created_at"] >= wishes[row["change_id"]]
    }
    late &= set(in_scope() if late else ())
    tries: dict[str, int] = dict.fromkeys(late, 1)
    for row in run.store.records(Renewal, run.name, where=pc.field("stage") == "measure"):
        if row.change_id in late and row.wished_by.startswith(f"{WISHED_BY}, try "):
            tries[row.change_id] += 1
    common = run.stamp("measure").fields()
    return [
        Renewal(**common, change_id=change, stage="measure", wished_by=f"{WISHED_BY}, try {number + 1}")
        for change, number in sorted(tries.items())
        if number < MOST_TRIES
    ]


def open_changes(run: OwnRows, stages: Collection[str], ranked: Sequence[str]) -> list[str]:
    """Those of the ranked changes with which the run's stages can begin, and which they have not brought to an end.

    What a time limit rejected, and what noise left undecided, has not come to an end: it is tried again.

    Args:
        run: the run.
        stages: the names of its stages; none: all.
        ranked: ids of changes, in their order.
    """
    order = ["build", "generate", "measure"]  # take one change at a time
    named = [name for name in order if name in stages] or order
    first, last = order.index(named[0]), order.index(named[-1])
    ended = run.column(named[-1]).union(*(run.column(name) - run.kept(name) for name in order[: last + 1]))
    ended -= waiting(run, "build") | waiting(run, "generate") | rows_of_run.undecided(run).keys()
    ready = run.kept(order[first - 1]) if first else set(ranked)
    return [one for one in ranked if one in ready and one not in ended]
