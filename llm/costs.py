"""The ledger, summed up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
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
    if not repos:
        return []
    columns, tokens = _COLUMNS[by], ["input_tokens", "cached_tokens", "output_tokens"]
    wanted = sorted({*columns, *tokens, "change_id", "cached", "reason", "cost_usd"})
    calls = pa.concat_tables([store.scan(LlmCall, repo, columns=wanted) for repo in repos]).to_pandas()
    calls[tokens] = calls[tokens].mask(calls["cached"], 0)
    calls["change"] = calls["change_id"].replace("", None)
    for reason in ("malformed", "refused"):
        calls[reason] = calls["reason"] == reason
    calls["unpriced"] = calls["cost_usd"].isna()
    groups = calls.groupby(columns)
    sums = groups[["cached", "malformed", "refused", *tokens, "unpriced"]].sum()
    sums["calls"], sums["changes"], sums["usd"] = groups.size(), groups["change"].nunique(), groups["cost_usd"].sum()
    found = [_cost(dict(zip(columns, group, strict=True)), row) for group, row in sums.to_dict("index").items()]
    return sorted(found, key=lambda cost: (-cost.usd, -cost.calls, list(cost.group.values())))


def _cost(group: dict[str, str], sums: dict[str, Any]) -> Cost:
    known = sums["changes"] and not sums["unpriced"]
    return Cost(group=group, **sums, usd_per_1000_changes=sums["usd"] / sums["changes"] * 1000 if known else None)
