"""`perfquarry pulls`: pull requests and their issues, from GitHub or from git alone."""

from __future__ import annotations

from typing import Annotated

import typer

from perfquarry.flows.commands.shared import Asked, Json, app, with_options


@app.command()
@with_options("repo", "source", "home", "settings")
def pulls(
    options: Asked,
    policy: Annotated[
        str | None, typer.Option(help="Why others are rejected: all, merged, labelled, sweperf, swebench.")
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="From merge and squash commits alone; no key.")] = False,
    as_json: Json = False,
) -> None:
    """Read pull requests, their discussions and issues into the tables."""
    from perfquarry.flows.pulls import report

    report(options(jobs=1), policy, offline=offline, as_json=as_json)
