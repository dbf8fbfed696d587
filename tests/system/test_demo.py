"""The demo history: every commit ends as it must, at the stage and for the reason that is written down."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfquarry.data.demo import expected
from perfquarry.data.demo.expectations import Expected
from perfquarry.data.records import Build, Change, Reason, Row, Task, Verdict, Workload
from perfquarry.data.store import TableStore

STAGES: dict[str, type[Row]] = {
    "mine": Change,
    "judge": Verdict,
    "build": Build,
    "generate": Workload,
    "select": Task,
}

TIMED = {Reason.NO_GAIN, Reason.SLOWER, Reason.COLD_ONLY}
"""Reasons that only timings can give."""


def decisions(home: Path, last: str) -> dict[str, tuple[str, set[str]]]:
    """By head: the stage that rejected it with its reasons, or ('kept', {}) where it came through the last one."""
    store = TableStore(home / "tables")
    heads = {change.change_id: change.head_sha for change in store.records(Change, "demo")}
    alive, found = set(heads), {}
    for stage, model in STAGES.items():
        rows = store.scan(model, "demo", columns=["change_id", "status", "reason"]).to_pylist()
        kept = {row["change_id"] for row in rows if row["status"] == "kept"}
        if stage == "build":
            kept -= {row["change_id"] for row in rows if row["status"] != "kept"}
        for change in alive - kept:
            reasons = {row["reason"] for row in rows if row["change_id"] == change and row["reason"]}
            found[heads[change]] = (stage, reasons)
        alive &= kept
        if stage == last:
            break
    return found | {heads[change]: ("kept", set()) for change in alive}


def mismatches(home: Path, last: str) -> list[str]:
    found = decisions(home, last)
    order = list(STAGES)
    wrong = []
    for one in expected():
        stage, reasons = found[one.head_sha]
        if not _as_expected(one, stage, reasons, order.index(last)):
            wrong.append(f"{one.label}: {stage} {sorted(reasons)}, expected {one.stage} {one.reasons or 'accepted'}")
    return wrong


def _as_expected(one: Expected, stage: str, reasons: set[str], last: int) -> bool:
    if one.accepted:
        return stage == "kept"
    if reasons & set(one.reasons):
        return True
    # not yet where it is rejected, or may be: the stages so far must have let it through
    rejected_later = list(STAGES).index(one.stage) > last or bool(TIMED & set(one.reasons))
    return stage == "kept" and rejected_later and last < len(STAGES) - 1


@pytest.mark.slow
@pytest.mark.timeout(280)
def test_each_commit_is_rejected_where_it_must_before_anything_is_timed(
    tmp_path: Path, perfquarry: Callable[..., Any]
) -> None:
    for stage in ("mine", "judge", "build", "generate"):
        perfquarry(tmp_path, stage, "demo", "--no-server")
    assert mismatches(tmp_path, "generate") == []


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_exactly_the_true_improvements_are_accepted(tmp_path: Path, perfquarry: Callable[..., Any]) -> None:
    perfquarry(tmp_path, "curate", "demo")
    assert mismatches(tmp_path, "select") == []
