"""Which rows count of changes that were sent back to a stage (docs/decisions/0023)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Literal

import pyarrow.compute as pc

from perfquarry.data.records import Renewal, Timing
from perfquarry.data.store import TableStore

Renewed = Mapping[str, datetime]
"""By change_id: since when a stage is wanted once more."""


def renewed(store: TableStore, repo: str, stage: Literal["generate", "measure"]) -> Renewed:
    """The newest wish of each change for a stage."""
    wishes: dict[str, datetime] = {}
    for row in store.records(Renewal, repo, where=pc.field("stage") == stage):
        wishes[row.change_id] = max(row.created_at, wishes.get(row.change_id, row.created_at))
    return wishes


def extra_sources(store: TableStore, repo: str, change_id: str) -> list[str]:
    """Sources of workloads that were wished for a change beside those of the settings."""
    rows = store.records(Renewal, repo, where=(pc.field("stage") == "generate") & (pc.field("change_id") == change_id))
    return list(dict.fromkeys(source for row in rows for source in row.sources))


def fulfilled(newest: Mapping[str, datetime], wishes: Renewed) -> set[str]:
    """Changes that need nothing more of a stage.

    Args:
        newest: by change_id, when the stage wrote its newest row of the change.
        wishes: of the same stage.
    """
    return {change for change, at in newest.items() if change not in wishes or at >= wishes[change]}


def in_force(timings: Iterable[Timing], wishes: Renewed) -> list[Timing]:
    """Timings without those that newer ones of a renewed change replace."""
    rows = list(timings)
    replaced = {row.change_id for row in rows if row.change_id in wishes and row.created_at >= wishes[row.change_id]}
    return [row for row in rows if row.change_id not in replaced or row.created_at >= wishes[row.change_id]]
