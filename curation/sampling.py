"""What became of the scripts that models wrote, round by round."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import pyarrow.compute as pc

from perfquarry.data.records import Workload
from perfquarry.data.store import TableStore


def by_round(rows: Iterable[Workload]) -> list[dict[str, Any]]:
    """`[{"round", "changes", "scripts", "kept", "hidden", "share", "rejected": {REASON: N}}]`, ascending.

    Answers that could not be read count as rejected, not as scripts.
    """
    grouped: dict[int, list[Workload]] = defaultdict(list)
    for row in rows:
        grouped[row.round].append(row)
    found = []
    for number, group in sorted(grouped.items()):
        kept = [row for row in group if row.status == "kept"]
        scripts = sum(bool(row.code) for row in group)
        found.append(
            {
                "round": number,
                "changes": len({row.change_id for row in group}),
                "scripts": scripts,
                "kept": len(kept),
                "hidden": sum(row.role == "hidden" for row in kept),
                "share": len(kept) / scripts if scripts else None,
                "rejected": dict(Counter(str(row.reason) for row in group if row.reason).most_common()),
            }
        )
    return found


def newest_scripts(store: TableStore, name: str) -> list[Workload]:
    """Rows of models' scripts, of the configuration that wrote last."""
    rows = list(store.records(Workload, name, where=pc.field("source") == "generated"))
    newest = max(rows, key=lambda row: row.created_at, default=None)
    origin = newest and (newest.stage_version, newest.config_hash)
    return [row for row in rows if (row.stage_version, row.config_hash) == origin and row.round]
