"""`perfquarry screen`, `problems`, `statistics` and `count`: what machines say of the tasks of a repository."""

from __future__ import annotations

from typing import Annotated

import typer

from perfquarry.flows.commands.completion import repositories_and_tasks
from perfquarry.flows.commands.shared import Asked, Json, MadeWith, app, with_options


@app.command()
@with_options("repo", "source", "changes", "budget_usd", "home", "settings", workloads=MadeWith)
def screen(
    options: Asked,
    run: Annotated[bool, typer.Option("--run", help="Also the checks that run code, on this machine.")] = False,
    llm: Annotated[
        str | None, typer.Option(help="Also ask a model whether each gain was meant: openai:MODEL, …")
    ] = None,
    as_json: Json = False,
) -> None:
    """Screen the tasks: duplicates, leaks, weak workloads, trivial changes, licence, private data, intent."""
    from perfquarry.flows.screen_reports import report_findings

    report_findings(options(), llm, with_runs=run, as_json=as_json)


@app.command()
@with_options("source", "changes", "budget_usd", "home", "settings")
def problems(
    options: Asked,
    about: Annotated[
        str,
        typer.Argument(
            metavar="REPO|TASK",
            help="Repository, or one task: its id or the start of it, or of its head's hash.",
            autocompletion=repositories_and_tasks,
        ),
    ],
    llm: Annotated[str | None, typer.Option(help="Also let a model write them: openai:MODEL, …")] = None,
    plans: Annotated[
        bool, typer.Option("--plans", help="--llm: only plans of the fixes, for analysis; never shown to solvers.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the problem texts of the tasks, and which were rejected because they reveal the fix."""
    from perfquarry.flows.screen_reports import report_problems

    report_problems(options(repo=about), llm, plans=plans, as_json=as_json)


@app.command()
@with_options("repo", "source", "home")
def statistics(options: Asked, as_json: Json = False) -> None:
    """Show size, patches, functions, workloads and speedups of the tasks, as GSO's and SWE-Perf's papers do."""
    from perfquarry.flows.screen_reports import report_statistics

    report_statistics(options(), as_json=as_json)


@app.command()
@with_options("repo", "source", "changes", "home", "settings", workloads=MadeWith)
def count(options: Asked, as_json: Json = False) -> None:
    """Count the instructions of the tasks' workloads at base and head: a second witness beside the clock."""
    from perfquarry.flows.screen_reports import report_counts

    report_counts(options(), as_json=as_json)
