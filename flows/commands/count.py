"""`perfquarry count`: how many instructions the workloads of tasks execute, before and after."""

from __future__ import annotations

from typing import Annotated

import typer

from perfquarry.flows.commands.screen import Changes, HomeFolder, Json, Repo, SettingsFile, Source, options_of


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(count)


def count(
    repo: Repo,
    source: Source = None,
    changes: Changes = None,
    workloads: Annotated[
        str, typer.Option(help="The sources with which the tasks were made, as given to curate.")
    ] = "unit-test",
    home: HomeFolder = None,
    settings: SettingsFile = None,
    as_json: Json = False,
) -> None:
    """Count the instructions of the tasks' workloads at base and head: a second witness beside the clock."""
    from perfquarry.flows.count_reports import report

    report(options_of(repo, source, changes, home, settings, workloads), as_json=as_json)
