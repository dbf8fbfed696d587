"""The ledger, summed up."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from perfquarry.data.records import LlmCall, Record
from perfquarry.data.store import TableStore
from perfquarry.llm import By

_COLUMNS: dict[By, list[str]] = {
    "stage": ["repo", "stage", "provider", "model"],
    "change": ["repo", "change_id", "stage", "model"],
    "prompt": ["repo", "prompt", "prompt_version", "prompt_hash", "model"],
}


class Cost(Record):
    """Calls of one group."""

    group: dict[str, str]
    changes: int
    calls: int = Field(description="Uses of the cache and of cassettes included.")
    cached: int = Field(description="Of these, answered without a call.")
    malformed: int
    refused: int
    input_tokens: int = Field(description="Of calls that were not answered from a cache of ours; so all tokens here.")
    cached_tokens: int
    output_tokens: int
    usd: float = Field(description="Sum of the known costs.")
    unpriced: int = Field(description="Calls whose cost is not known.")
    usd_per_1000_changes: float | None = Field(description="Null when a cost is not known or there is no change.")


def costs(store: TableStore, repos: Sequence[str], by: By = "stage") -> list[Cost]:
    """Sums of the ledger, the dearest group first."""
    columns = _COLUMNS[by]
    wanted = sorted(
        {*columns, "change_id", "cached", "reason", "input_tokens", "cached_tokens", "output_tokens", "cost_usd"}
    )
    tables = [store.scan(LlmCall, repo, columns=wanted) for repo in repos]
    if not any(len(table) for table in tables):
        return []
    table = pa.concat_tables(tables)
    paid = pc.cast(pc.invert(table["cached"]), pa.int64())
    for name in ("input_tokens", "cached_tokens", "output_tokens"):
        table = table.set_column(table.schema.get_field_index(name), name, pc.multiply(table[name], paid))
    for reason in ("malformed", "refused"):
        found = pc.cast(pc.fill_null(pc.equal(table["reason"], reason), False), pa.int64())
        table = table.append_column(f"is_{reason}", found)
    table = table.append_column("hits", pc.cast(table["cached"], pa.int64()))
    change = pc.if_else(pc.equal(table["change_id"], ""), pa.scalar(None, pa.string()), table["change_id"])
    table = table.append_column("change", change)
    sums = ["hits", "is_malformed", "is_refused", "input_tokens", "cached_tokens", "output_tokens", "cost_usd"]
    groups = table.group_by(columns).aggregate(
        [
            ("change", "count_distinct", pc.CountOptions(mode="only_valid")),
            ("hits", "count"),
            ("cost_usd", "count", pc.CountOptions(mode="only_null")),
            *((name, "sum") for name in sums),
        ]
    )
    found_costs = [_cost(row, columns) for row in groups.to_pylist()]
    return sorted(found_costs, key=lambda cost: (-cost.usd, -cost.calls, list(cost.group.values())))


def _cost(row: dict[str, int | float | str | None], columns: Sequence[str]) -> Cost:
    usd, changes, unpriced = (
        float(row["cost_usd_sum"] or 0.0),
        int(row["change_count_distinct"] or 0),
        row["cost_usd_count"],
    )
    return Cost(
        group={name: str(row[name]) for name in columns},
        changes=changes,
        calls=int(row["hits_count"] or 0),
        cached=int(row["hits_sum"] or 0),
        malformed=int(row["is_malformed_sum"] or 0),
        refused=int(row["is_refused_sum"] or 0),
        input_tokens=int(row["input_tokens_sum"] or 0),
        cached_tokens=int(row["cached_tokens_sum"] or 0),
        output_tokens=int(row["output_tokens_sum"] or 0),
        usd=usd,
        unpriced=int(unpriced or 0),
        usd_per_1000_changes=usd / changes * 1000 if changes and not unpriced else None,
    )
