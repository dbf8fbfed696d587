"""`perfquarry curate`, and each of its stages alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perfquarry.data.errors import InputError
from perfquarry.flows.commands.shared import (
    Budget,
    Changes,
    HomeFolder,
    Jobs,
    Json,
    Judge,
    Limit,
    Llm,
    Repo,
    Server,
    SettingsFile,
    Since,
    SomeRepo,
    Source,
    Until,
    Workloads,
    options_of,
)

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


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    for name, text in STAGES.items():
        _add(app, name, ALL if name == "curate" else (name,), text)
    app.command()(judge)


def _add(app: typer.Typer, name: str, stages: Sequence[str], text: str) -> None:
    @app.command(name, help=text)
    def command(
        repo: Repo,
        source: Source = None,
        since: Since = None,
        until: Until = None,
        changes: Changes = None,
        limit: Limit = None,
        seconds: Annotated[
            str | None,
            typer.Option("--for", help="Start no further change after this time: 90s, 30m, 2h, 1d."),
        ] = None,
        tasks: Annotated[int | None, typer.Option(min=1, help="End once the repository has N accepted tasks.")] = None,
        judge: Judge = "heuristic",
        workloads: Workloads = "unit-test",
        llm: Llm = None,
        budget_usd: Budget = None,
        home: HomeFolder = None,
        jobs: Jobs = None,
        settings: SettingsFile = None,
        server: Server = True,
        as_json: Json = False,
    ) -> None:
        if tasks is not None and "select" not in stages:
            raise InputError(f"--tasks goes with curate: {name} accepts none; try perfquarry curate {repo}")
        options = options_of(
            repo,
            source,
            home=home,
            settings=settings,
            jobs=jobs,
            since=since,
            until=until,
            changes=changes,
            limit=limit,
            seconds=seconds,
            tasks=tasks,
            judge=judge,
            workloads=workloads,
            llm=llm,
            budget_usd=budget_usd,
        )
        _work(name, options, stages, with_server=server, as_json=as_json)


def judge(
    repo: SomeRepo = None,
    source: Source = None,
    since: Since = None,
    until: Until = None,
    changes: Changes = None,
    limit: Limit = None,
    judge: Judge = "heuristic",
    workloads: Workloads = "unit-test",
    llm: Llm = None,
    budget_usd: Budget = None,
    home: HomeFolder = None,
    jobs: Jobs = None,
    settings: SettingsFile = None,
    server: Server = True,
    count_tokens: Annotated[
        bool, typer.Option("--count-tokens", help="Show what models would cost; ask none.")
    ] = False,
    evaluate: Annotated[Path | None, typer.Option(help="Only compare with the labels of this Parquet file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="--evaluate: reliability plot to write (SVG).")] = None,
    as_json: Json = False,
) -> None:
    """Judge which changes improve performance."""
    if count_tokens and judge == "heuristic":
        judge = "cascade"
    if count_tokens and judge == "cascade":
        llm = llm or "exchange:nobody"
    if (repo is None) == (evaluate is None) or (plot and not evaluate):
        raise InputError("give a repository to judge, or --evaluate LABELS.parquet (with --plot FILE.svg)")
    options = options_of(
        repo or "",
        source,
        home=home,
        settings=settings,
        jobs=jobs,
        since=since,
        until=until,
        changes=changes,
        limit=limit,
        judge=judge,
        workloads=workloads,
        llm=llm,
        budget_usd=budget_usd,
    )
    if evaluate:
        from perfquarry.flows.judge_evaluation import report as evaluation

        evaluation(options, evaluate, plot, as_json=as_json)
    elif count_tokens:
        from perfquarry.flows.judge_tokens import report as tokens

        tokens(options, as_json=as_json)
    else:
        _work("judge", options, ["judge"], with_server=server, as_json=as_json)


def _work(name: str, options: Options, stages: Sequence[str], *, with_server: bool, as_json: bool) -> None:
    if not as_json:
        from perfquarry.flows.output import say

        say(f"{name:<9} {options.repo}, home {options.home}")
    from perfquarry.flows.work import work  # the rooms take seconds to import

    work(options, stages, with_server=with_server, as_json=as_json)
