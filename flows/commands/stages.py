"""`perfquarry curate`, and each of its stages alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perfquarry.data.errors import InputError
from perfquarry.data.output import Report, show
from perfquarry.flows.commands.shared import Asked, Json, Server, SomeRepo, app, with_options

if TYPE_CHECKING:
    from perfquarry.flows.options import Options

STAGES = {
    "curate": "All stages: from a repository's history to verified tasks.",
    "mine": "Read the history into the table of changes.",
    "build": "Make both sides of the kept changes runnable.",
    "generate": "Find workloads that execute changed lines: unit tests and scripts.",
    "measure": "Time the workloads on both sides, which take turns on one core.",
    "select": "Decide which changes are verified improvements.",
}
ALL = ("mine", "judge", "build", "generate", "measure", "select", "screen", "count")
"""Stages of `curate`, in their order."""


def _add(name: str, stages: Sequence[str], text: str) -> None:
    @app.command(name, help=text)
    @with_options()
    def command(asked: Asked, server: Server = True, as_json: Json = False) -> Report:
        options = asked()
        if options.tasks is not None and "select" not in stages:
            raise InputError(
                f"--tasks goes with curate: {name} accepts none; try perfquarry curate {asked.keywords['repo']}"
            )
        return _work(name, options, stages, with_server=server, as_json=as_json)


for _name, _text in STAGES.items():
    _add(_name, ALL if _name == "curate" else (_name,), _text)


@app.command()
@with_options(
    *("source", "since", "until", "changes", "limit", "judge", "workloads", "llm", "budget_usd"),
    *("home", "jobs", "settings"),
)
def judge(
    options: Asked,
    repo: SomeRepo = None,
    server: Server = True,
    count_tokens: Annotated[
        bool, typer.Option("--count-tokens", help="Show what models would cost; ask none.")
    ] = False,
    evaluate: Annotated[Path | None, typer.Option(help="Only compare with the labels of this Parquet file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="--evaluate: reliability plot to write (SVG).")] = None,
    as_json: Json = False,
) -> Report:
    """Judge which changes improve performance."""
    if (repo is None) == (evaluate is None) or (plot and not evaluate):
        raise InputError("give a repository to judge, or --evaluate LABELS.parquet (with --plot FILE.svg)")
    if evaluate:
        from perfquarry.flows.judge_reports import evaluation

        return evaluation(options(repo=""), evaluate, plot)
    if count_tokens:
        from perfquarry.flows.judge_reports import tokens

        who, llm = options.keywords["judge"], options.keywords["llm"]
        who = "cascade" if who == "heuristic" else who
        llm = llm or "exchange:nobody" if who == "cascade" else llm
        return tokens(options(repo=repo, judge=who, llm=llm))
    return _work("judge", options(repo=repo), ["judge"], with_server=server, as_json=as_json)


def _work(name: str, options: Options, stages: Sequence[str], *, with_server: bool, as_json: bool) -> Report:
    if not as_json:
        show(f"{name:<9} {options.repo}, home {options.home}")
    from perfquarry.flows.work import work  # the rooms take seconds to import

    return work(options, stages, with_server=with_server, as_json=as_json)
