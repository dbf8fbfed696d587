"""`perfquarry costs`: what models were asked and what it cost."""

from __future__ import annotations

import json

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from perfquarry.data.home import Home
from perfquarry.data.records import LlmCall
from perfquarry.data.store import TableStore
from perfquarry.flows.names import repository_of
from perfquarry.llm import By
from perfquarry.llm.costs import Cost, costs

SHOWN = 40
"""Most rows of the table; --json has all."""


def report(home: Home, repo: str | None, by: By, *, as_json: bool) -> None:
    """Sums of the ledger of one repository, or of all of the home.

    Raises:
        InputError: no such repository.
    """
    store = TableStore(home.tables)
    names = store.repositories(LlmCall)
    if repo is not None:
        name = repository_of(home, repo).name
        names = [name] if name in names else []
    found = costs(store, names, by)
    usd, unpriced = sum(cost.usd for cost in found), sum(cost.unpriced for cost in found)
    if as_json:
        rows = [cost.model_dump(mode="json") for cost in found]
        print(json.dumps({"usd": usd, "unpriced": unpriced, "by": by, "rows": rows}, indent=2))
        return
    console = Console()
    if not found:
        console.print(f"no model was asked for {repo or 'anything'} in {home.root}", highlight=False, markup=False)
        return
    console.print(_table(found))
    if len(found) > SHOWN:
        console.print(f"… and {len(found) - SHOWN} more (--json lists all)\n")
    unknown = f"; the price of {unpriced} calls is not known" if unpriced else ""
    console.print(f"{usd:.4f} USD in all{unknown}", highlight=False)


def _table(found: list[Cost]) -> Table:
    table = Table(title="Calls of models", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for name in found[0].group:
        table.add_column(name.replace("_", " "), overflow="fold")
    for name in ("changes", "calls", "cached", "bad", "tokens in", "cached", "out", "USD", "USD / 1,000 changes"):
        table.add_column(name, justify="right", no_wrap=True)
    for cost in found[:SHOWN]:
        counts = (cost.changes, cost.calls, cost.cached, cost.malformed + cost.refused)
        tokens = (cost.input_tokens, cost.cached_tokens, cost.output_tokens)
        per_1000 = cost.usd_per_1000_changes
        table.add_row(
            *map(escape, cost.group.values()),
            *(f"{number:,}" for number in (*counts, *tokens)),
            f"{cost.usd:.4f}" + (" + ?" if cost.unpriced else ""),
            "–" if per_1000 is None else f"{per_1000:.2f}",
        )
    return table
