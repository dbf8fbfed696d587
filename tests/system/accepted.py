"""Tasks as a decision writes them, without a history behind them."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime

from perfquarry.data.records import Task
from perfquarry.data.store import TableStore


def task(number: int, *, accepted: bool = True, decision: str = "first", title: str = "") -> Task:
    return Task(
        repo="demo",
        stage_version="2",
        config_hash=decision,
        status="kept" if accepted else "rejected",
        reason=None if accepted else "no_gain",
        task_id=f"perfquarry__demo-{number:010d}",
        change_id=f"c{number}",
        codebase="perfquarry/demo",
        base_sha="b" * 40,
        head_sha=f"{number:040d}",
        created_at_commit=datetime(2020, 1, 1, tzinfo=UTC),
        title=title or f"Make <it> {number}× faster & *better*",
        message="",
        patch="",
        python="3.11",
        speedup=1.5 if accepted else None,
        low=1.4,
        high=1.6,
        delta=0.3,
        durations=json.dumps([{"t": {"base": [1.0, 1.1, 0.9], "head": [0.5, 0.6, 0.55]}}]),
    )


def write(tables: str | os.PathLike[str], tasks: Sequence[Task]) -> None:
    TableStore(str(tables)).append(tasks)
