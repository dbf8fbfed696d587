"""`perfquarry count`: how many instructions the workloads of tasks execute, before and after."""

from __future__ import annotations

from perfquarry.flows.commands.shared import Asked, Json, MadeWith, app, with_options


@app.command()
@with_options("repo", "source", "changes", "home", "settings", workloads=MadeWith)
def count(options: Asked, as_json: Json = False) -> None:
    """Count the instructions of the tasks' workloads at base and head: a second witness beside the clock."""
    from perfquarry.flows.count_reports import report

    report(options(), as_json=as_json)
