"""Candidates that only a time limit rejected, tried once more in a later run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from perfquarry.data.records import MOST_TRIES, Reason, Workload, is_late
from perfquarry.testgen.case import Case
from perfquarry.testgen.scripts import Script
from perfquarry.testgen.sources import WorkloadSource
from perfquarry.testgen.trials import rows_of, try_scripts

NOTE = "tried again: a time limit had ended it before"


def is_tried_again(row: Workload) -> bool:
    """Whether a later run has to try it again."""
    return row.status == "rejected" and is_late(row.reason, row.detail) and row.tries < MOST_TRIES


def try_again(case: Case, known: Sequence[Workload], sources: Sequence[WorkloadSource]) -> list[Workload]:
    """Rows that replace those that only a time limit rejected, each with one try more.

    The sources that such rows came from look for workloads once more; of what they find, only the late rows
    count where the change has workloads already, so that a try changes nothing that was decided. A model
    is not asked again: its late scripts are tried as they are.

    Args:
        known: the newest rows of the change.
        sources: in the order in which they are asked.

    Raises:
        SandboxUnavailable: the sandbox itself could not start.
    """
    late = {row.workload_id: row for row in known if is_tried_again(row)}
    written = [row for row in late.values() if row.source == "generated" and row.code]
    tried = try_scripts(case, [Script(row.code, row.source, NOTE) for row in written])
    found = {row.workload_id: row for row in rows_of(case, tried)}
    has_workloads = any(row.status == "kept" for row in known)
    wanted = {row.source for row in late.values() if row.source != "generated"}
    for source in sources:
        if source.name not in wanted:
            continue
        rows = source.workloads(case)
        found.update((row.workload_id, row) for row in rows if row.workload_id in late or not has_workloads)
        if any(not row.code and row.reason == Reason.FAILS_ON_HEAD for row in rows):
            break
    now = datetime.now(UTC)
    for name, row in late.items():  # what nobody came to this time has been tried, too
        update = {"tries": row.tries + 1, "role": row.role, "round": row.round}
        found[name] = found.get(name, row.model_copy(update={"created_at": now})).model_copy(update=update)
    return list(found.values())
