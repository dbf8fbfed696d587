"""`perfquarry screen`, `problems` and `statistics`: what machines say of the tasks of a repository."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perfquarry.flows.options import Options, default_jobs, home_of, settings_from

Repo = Annotated[str, typer.Argument(help="Name in the registry, git URL, or local path.")]
Source = Annotated[str | None, typer.Option(help="Clone from this path or URL instead of the registry's.")]
Changes = Annotated[str | None, typer.Option(help="Only tasks of these heads: SHA,SHA (unique prefixes will do).")]
HomeFolder = Annotated[
    Path | None, typer.Option("--home", help="Folder of the whole state.", show_default="PERFQUARRY_HOME or ./var")
]
SettingsFile = Annotated[Path | None, typer.Option("--settings", help="TOML file with settings: \\[screen], …")]
Json = Annotated[bool, typer.Option("--json", help="Print facts as JSON, nothing else.")]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    for command in (screen, problems, statistics):
        app.command()(command)


def screen(
    repo: Repo,
    source: Source = None,
    changes: Changes = None,
    run: Annotated[bool, typer.Option("--run", help="Also the checks that run code, on this machine.")] = False,
    workloads: Annotated[
        str, typer.Option(help="--run: the sources with which the tasks were made, as given to curate.")
    ] = "unit-test",
    llm: Annotated[
        str | None, typer.Option(help="Also ask a model whether each gain was meant: openai:MODEL, …")
    ] = None,
    budget_usd: Annotated[float | None, typer.Option(min=0, help="Upper limit for model costs in USD.")] = None,
    home: HomeFolder = None,
    settings: SettingsFile = None,
    as_json: Json = False,
) -> None:
    """Screen the tasks: duplicates, leaks, weak workloads, trivial changes, licence, private data, intent."""
    from perfquarry.flows.screen_reports import report_findings

    options = options_of(repo, source, changes, home, settings, workloads, budget_usd)
    report_findings(options, llm, with_runs=run, as_json=as_json)


def problems(
    repo: Repo,
    source: Source = None,
    changes: Changes = None,
    llm: Annotated[str | None, typer.Option(help="Also let a model write them: openai:MODEL, …")] = None,
    plans: Annotated[
        bool, typer.Option("--plans", help="--llm: only plans of the fixes, for analysis; never shown to solvers.")
    ] = False,
    budget_usd: Annotated[float | None, typer.Option(min=0, help="Upper limit for model costs in USD.")] = None,
    home: HomeFolder = None,
    settings: SettingsFile = None,
    as_json: Json = False,
) -> None:
    """Show the problem texts of the tasks, and which were rejected because they tell the fix."""
    from perfquarry.flows.screen_reports import report_problems

    options = options_of(repo, source, changes, home, settings, budget_usd=budget_usd)
    report_problems(options, llm, plans=plans, as_json=as_json)


def statistics(repo: Repo, source: Source = None, home: HomeFolder = None, as_json: Json = False) -> None:
    """Show size, patches, functions, workloads and speedups of the tasks, as GSO's and SWE-Perf's papers do."""
    from perfquarry.flows.screen_reports import report_statistics

    report_statistics(options_of(repo, source, None, home, None), as_json=as_json)


def options_of(
    repo: str,
    source: str | None,
    changes: str | None,
    home: Path | None,
    settings: Path | None,
    workloads: str = "unit-test",
    budget_usd: float | None = None,
) -> Options:
    """The options of a command about the tasks of a repository."""
    return Options(
        repo=repo,
        source=source,
        changes=tuple(part.strip() for part in (changes or "").split(",") if part.strip()),
        home=str(home_of(home).root),
        jobs=default_jobs(),
        settings=settings_from(settings, "heuristic", workloads, budget_usd),
    )
