"""`perfquarry sampling`: what became of the scripts that models wrote, round by round."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType

from perfquarry.curation.names import repository_of
from perfquarry.curation.sampling import by_round, newest_scripts
from perfquarry.data.home import Home
from perfquarry.data.store import TableStore
from perfquarry.flows.output import Listing, put
from perfquarry.flows.reports import reasons_table


def report(home: Home, repo: str, *, as_json: bool) -> None:
    """Sampled scripts of a repository's newest configuration by round.

    Raises:
        InputError: no such repository.
    """
    name = repository_of(home, repo).name
    rounds = by_round(newest_scripts(TableStore(home.tables), name))
    seen = {reason for one in rounds for reason in one["rejected"]}
    none = (
        f"no model wrote workloads for {repo} in {home.root}: "
        f"`perfquarry curate {repo} --workloads generated --llm SPEC` lets one"
    )
    parts: list[RenderableType] = [_table(name, rounds), "", reasons_table(seen)] if rounds else [none]
    put({"repository": name, "rounds": rounds}, parts, as_json=as_json)


def _table(name: str, rounds: list[dict[str, Any]]) -> Listing:
    figures = ("round", "changes", "scripts", "kept", "hidden")
    names = (*(f">{figure}" for figure in (*figures, "share")), "why the rest were rejected")
    table = Listing(names, f"Sampled scripts of {name}")
    for one in rounds:
        share = "–" if one["share"] is None else f"{one['share']:.0%}"
        why = ", ".join(f"{reason} {count}" for reason, count in one["rejected"].items())
        table.add(*(str(one[figure]) for figure in figures), share, why)
    return table
