"""`perfquarry screen`, `problems` and `statistics`: what machines say of the tasks of a repository."""

from __future__ import annotations

from typing import Annotated

import typer

from perfquarry.flows.commands.completion import repositories_and_tasks
from perfquarry.flows.commands.shared import (
    Budget,
    Changes,
    HomeFolder,
    Json,
    MadeWith,
    Repo,
    SettingsFile,
    Source,
    options_of,
)


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    for command in (screen, problems, statistics):
        app.command()(command)


def screen(
    repo: Repo,
    source: Source = None,
    changes: Changes = None,
    run: Annotated[bool, typer.Option("--run", help="Also the checks that run code, on this machine.")] = False,
    workloads: MadeWith = "unit-test",
    llm: Annotated[
        str | None, typer.Option(help="Also ask a model whether each gain was meant: openai:MODEL, …")
    ] = None,
    budget_usd: Budget = None,
    home: HomeFolder = None,
    settings: SettingsFile = None,
    as_json: Json = False,
) -> None:
    """Screen the tasks: duplicates, leaks, weak workloads, trivial changes, licence, private data, intent."""
    options = options_of(
        repo, source, home=home, settings=settings, changes=changes, workloads=workloads, budget_usd=budget_usd
    )
    from perfquarry.flows.screen_reports import report_findings

    report_findings(options, llm, with_runs=run, as_json=as_json)


def problems(
    about: Annotated[
        str,
        typer.Argument(
            metavar="REPO|TASK",
            help="Repository, or one task: its id or the start of it, or of its head's hash.",
            autocompletion=repositories_and_tasks,
        ),
    ],
    source: Source = None,
    changes: Changes = None,
    llm: Annotated[str | None, typer.Option(help="Also let a model write them: openai:MODEL, …")] = None,
    plans: Annotated[
        bool, typer.Option("--plans", help="--llm: only plans of the fixes, for analysis; never shown to solvers.")
    ] = False,
    budget_usd: Budget = None,
    home: HomeFolder = None,
    settings: SettingsFile = None,
    as_json: Json = False,
) -> None:
    """Show the problem texts of the tasks, and which were rejected because they reveal the fix."""
    options = options_of(about, source, home=home, settings=settings, changes=changes, budget_usd=budget_usd)
    from perfquarry.flows.screen_reports import report_problems

    report_problems(options, llm, plans=plans, as_json=as_json)


def statistics(repo: Repo, source: Source = None, home: HomeFolder = None, as_json: Json = False) -> None:
    """Show size, patches, functions, workloads and speedups of the tasks, as GSO's and SWE-Perf's papers do."""
    options = options_of(repo, source, home=home)
    from perfquarry.flows.screen_reports import report_statistics

    report_statistics(options, as_json=as_json)
