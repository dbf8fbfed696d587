"""Sources of workloads: each gives what it has for a change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Protocol

from perfquarry.data.records import INFORMATIVE, Reason, Source, Workload
from perfquarry.testgen.candidates import NEEDS
from perfquarry.testgen.case import Case
from perfquarry.testgen.definitions import NodeId
from perfquarry.testgen.expectations import edited_expectations

_NAMED = 5
"""Tests named in a row."""


class WorkloadSource(Protocol):
    """Unit tests, benchmarks of the repository, generated scripts, replayed calls."""

    @property
    def name(self) -> Source:
        """What `--workloads` calls it, and the `source` of its rows."""

    def workloads(self, case: Case) -> list[Workload]:
        """Rows of a change: kept ones first, best first, then rejected ones, each with its reason; possibly none.

        Called from several threads.

        Raises:
            SandboxUnavailable: the sandbox itself could not start.
        """


def gather(case: Case, sources: Sequence[WorkloadSource], further: Sequence[WorkloadSource] = ()) -> list[Workload]:
    """Rows of all sources for a change; if none is kept, at least one of them has an empty `code` and says why.

    The further sources are asked one after the other as long as no workload before them may show a gain: none was kept,
    or only unit tests that spend too little of their time in the changed functions (`generate.enough_share`).

    Where a source has shown that the change alters behaviour (the summary row of unit tests that only
    the head fails), the sources after it are not asked: what the head saves may be work it no longer does.
    For the same reason none is asked where the change edits nothing of a test but the values it expects.

    Raises:
        SandboxUnavailable: the sandbox itself could not start.
    """
    if edited := edited_expectations(case.change, case.base.tree, case.head.tree):
        return [case.row(sources[0].name, reason=Reason.EXPECTATIONS_CHANGED, detail="; ".join(edited[:_NAMED]))]
    rows = _asked(case, sources, further, case.settings.enough_share)
    if any(row.status == "kept" or not row.code for row in rows):
        return rows
    return [_summary(case, sources[0].name, rows), *rows]


def ask_further(case: Case, known: Sequence[Workload], further: Sequence[WorkloadSource]) -> list[Workload]:
    """New rows of a change whose unit tests were measured and show no gain, as if they had not been usable.

    Args:
        case: the change.
        known: its rows so far. Where no source has any, one of them is given back as it is, with the present time.
        further: the sources.

    Raises:
        SandboxUnavailable: the sandbox itself could not start.
    """
    tests = [row for row in known if row.source == "unit-test" and row.hits]
    case.seen.nodes[:] = [row.code for row in tests if row.reason not in (Reason.FAILS_ON_BASE, *NEEDS)]
    case.seen.files[:] = dict.fromkeys(NodeId.parse(row.code).path for row in tests)
    rows = _asked(case, (), further, math.inf)
    return rows or [row.model_copy(update={"created_at": datetime.now(UTC)}) for row in known[:1]]


def _asked(
    case: Case, sources: Sequence[WorkloadSource], further: Sequence[WorkloadSource], share: float
) -> list[Workload]:
    rows: list[Workload] = []
    for source in (*sources, *further):
        if source in further and any(_may_show(row, share) for row in rows):
            break
        if source.name == "replay" and _none_executes(rows):
            continue
        rows += source.workloads(case)
        if any(not row.code and row.reason == Reason.FAILS_ON_HEAD for row in rows):
            break
    return rows


def _none_executes(rows: Sequence[Workload]) -> bool:
    """Whether all unit tests ran and none came to the change: there is hardly a call of it that could be recorded."""
    tests = [row for row in rows if row.source == "unit-test"]
    return [row.code for row in tests] == [""] and tests[0].reason in (Reason.NO_TEST_EXECUTES_CHANGE, *NEEDS)


def _may_show(row: Workload, share: float) -> bool:
    return row.status == "kept" and (row.source != "unit-test" or (row.share or 0.0) >= share)


def _summary(case: Case, source: Source, rejected: Sequence[Workload]) -> Workload:
    """The row of a change for which no source has anything to keep or to say."""
    order = {str(reason): rank for rank, reason in enumerate(INFORMATIVE)}
    most = min(rejected, key=lambda row: order.get(str(row.reason), len(order)), default=None)
    if most is None:
        return case.row(source, reason=Reason.NO_WORKLOADS, detail="no source has a workload for it")
    return case.row(most.source, reason=most.reason, detail=f"{most.node}: {most.detail}")
