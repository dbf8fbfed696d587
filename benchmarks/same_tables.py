"""What the tables of two runs must have in common."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from perfquarry.data.records import Row
from perfquarry.data.store import TableStore

VOLATILE = {"created_at", "seconds", "bytes", "log", "detail"}
"""Columns that speak of the clock, not of the work."""


def content(home: Path, repo: str, models: Sequence[type[Row]]) -> dict[str, list[tuple[str, str]]]:
    """Rows by table as (change, JSON), sorted, without what speaks of the clock."""
    store = TableStore(home / "tables")
    return {
        model.TABLE: sorted(
            (row.change_id, json.dumps(row.model_dump(mode="json", exclude=VOLATILE), sort_keys=True))  # type: ignore[attr-defined]
            for row in store.records(model, repo)
        )
        for model in models
    }
