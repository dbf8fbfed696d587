"""`perfquarry costs`: what models were asked and what it cost."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from perfquarry.curation.names import repository_of
from perfquarry.data.home import Home
from perfquarry.data.records import LlmCall
from perfquarry.data.store import TableStore
from perfquarry.flows.output import Listing, put
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
    facts = {"usd": usd, "unpriced": unpriced, "by": by, "rows": found}
    about = f"{repo or 'anything'} in {home.root}"
    put(facts, _shown(found, about, f"{usd:.4f} USD in all", unpriced), as_json=as_json)


def _shown(found: list[Cost], about: str, total: str, unpriced: int) -> Iterator[RenderableType]:
    if not found:
        yield (
            f"no model was asked for {about}: nothing was paid; models are asked with "
            "`perfquarry curate REPO --judge cascade --llm SPEC` or `--workloads generated --llm SPEC`"
        )
        return
    figures = ("changes", "calls", "cached", "bad", "tokens in", "cached", "out", "USD", "USD / 1,000 changes")
    names = [name.replace("_", " ") for name in found[0].group]
    table = Listing([*names, *(f">{name}" for name in figures)], "Calls of models")
    for cost in found[:SHOWN]:
        counts = (cost.changes, cost.calls, cost.cached, cost.malformed + cost.refused)
        tokens = (cost.input_tokens, cost.cached_tokens, cost.output_tokens)
        per_1000 = cost.usd_per_1000_changes
        table.add(
            *cost.group.values(),
            *(f"{number:,}" for number in (*counts, *tokens)),
            f"{cost.usd:.4f}" + (" + ?" if cost.unpriced else ""),
            "–" if per_1000 is None else f"{per_1000:.2f}",
        )
    yield table
    if len(found) > SHOWN:
        yield f"… and {len(found) - SHOWN} more (--json lists all)"
    yield total + (f"; the price of {unpriced} calls is not known" if unpriced else "")
