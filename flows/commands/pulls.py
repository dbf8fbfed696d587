"""`perfquarry pulls`: pull requests and their issues, from GitHub or from git alone."""

from __future__ import annotations

from typing import Annotated

import typer

from perfquarry.flows.commands.shared import HomeFolder, Json, Repo, SettingsFile, Source, options_of


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(pulls)


def pulls(
    repo: Repo,
    policy: Annotated[
        str | None, typer.Option(help="Why others are rejected: all, merged, labelled, sweperf, swebench.")
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="From merge and squash commits alone; no key.")] = False,
    source: Source = None,
    home: HomeFolder = None,
    settings: SettingsFile = None,
    as_json: Json = False,
) -> None:
    """Read pull requests, their discussions and issues into the tables."""
    options = options_of(repo, source, home=home, settings=settings, jobs=1)
    from perfquarry.flows.pull_reports import report

    report(options, policy, offline=offline, as_json=as_json)
