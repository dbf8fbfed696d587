"""`perfquarry count`: how many instructions the workloads of tasks execute, before and after."""

from __future__ import annotations

import typer

from perfquarry.flows.commands.shared import Changes, HomeFolder, Json, MadeWith, Repo, SettingsFile, Source, options_of


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(count)


def count(
    repo: Repo,
    source: Source = None,
    changes: Changes = None,
    workloads: MadeWith = "unit-test",
    home: HomeFolder = None,
    settings: SettingsFile = None,
    as_json: Json = False,
) -> None:
    """Count the instructions of the tasks' workloads at base and head: a second witness beside the clock."""
    options = options_of(repo, source, home=home, settings=settings, changes=changes, workloads=workloads)
    from perfquarry.flows.count_reports import report

    report(options, as_json=as_json)
