"""`perfquarry sampling`: what became of the scripts that models wrote, round by round."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import pyarrow.compute as pc
from rich.console import RenderableType

from perfquarry.curation.names import repository_of
from perfquarry.data.home import Home
from perfquarry.data.records import Workload
from perfquarry.data.store import TableStore
from perfquarry.flows.output import Listing, put
from perfquarry.flows.reports import reasons_table


def report(home: Home, repo: str, *, as_json: bool) -> None:
    """Sampled scripts of a repository's newest configuration by round.

    Raises:
        InputError: no such repository.
    """
    name = repository_of(home, repo).name
    rounds = by_round(_newest(TableStore(home.tables), name))
    seen = {reason for one in rounds for reason in one["rejected"]}
    none = (
        f"no model wrote workloads for {repo} in {home.root}: "
        f"`perfquarry curate {repo} --workloads generated --llm SPEC` lets one"
    )
    parts: list[RenderableType] = [_table(name, rounds), "", reasons_table(seen)] if rounds else [none]
    put({"repository": name, "rounds": rounds}, parts, as_json=as_json)


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


def _newest(store: TableStore, name: str) -> list[Workload]:
    """Rows of models' scripts, of the configuration that wrote last."""
    rows = list(store.records(Workload, name, where=pc.field("source") == "generated"))
    newest = max(rows, key=lambda row: row.created_at, default=None)
    origin = newest and (newest.stage_version, newest.config_hash)
    return [row for row in rows if (row.stage_version, row.config_hash) == origin and row.round]


def _table(name: str, rounds: list[dict[str, Any]]) -> Listing:
    figures = ("round", "changes", "scripts", "kept", "hidden")
    names = (*(f">{figure}" for figure in (*figures, "share")), "why the rest were rejected")
    table = Listing(names, f"Sampled scripts of {name}")
    for one in rounds:
        share = "–" if one["share"] is None else f"{one['share']:.0%}"
        why = ", ".join(f"{reason} {count}" for reason, count in one["rejected"].items())
        table.add(*(str(one[figure]) for figure in figures), share, why)
    return table
