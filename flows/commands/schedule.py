"""`perfquarry schedule` and `perfquarry worker`: nightly deployments, and what does their runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perfquarry.data.errors import InputError
from perfquarry.flows.commands.completion import repositories
from perfquarry.flows.commands.shared import HomeFolder, Json, app
from perfquarry.flows.homes import home_of

Names = Annotated[
    list[str] | None, typer.Argument(help="Names in the registry; default: all.", autocompletion=repositories)
]

schedule = typer.Typer(
    no_args_is_help=True, help="Nightly deployments on the Prefect server: PREFECT_API_URL, or the home's own."
)
app.add_typer(schedule, name="schedule")


@schedule.command("list")
def show(home: HomeFolder = None, as_json: Json = False) -> None:
    """List what is deployed, with its next and its last run."""
    from perfquarry.flows.schedules import show as show_deployed

    show_deployed(home_of(home), as_json=as_json)


@schedule.command()
def apply(names: Names = None, home: HomeFolder = None, as_json: Json = False) -> None:
    """Create or update the nightly deployments of repositories of the registry."""
    from perfquarry.flows.schedules import apply as apply_deployments

    apply_deployments(home_of(home), names or [], as_json=as_json)


@schedule.command()
def remove(
    names: Names = None,
    everything: Annotated[bool, typer.Option("--all", help="Remove all of them.")] = False,
    home: HomeFolder = None,
    as_json: Json = False,
) -> None:
    """Remove nightly deployments; runs that are under way go on."""
    from perfquarry.flows.schedules import remove as remove_deployments

    if bool(names) == everything:
        raise InputError("name the repositories whose deployments go, or give --all")
    remove_deployments(home_of(home), names or [], as_json=as_json)


@schedule.command("run")
def start(
    names: Annotated[list[str], typer.Argument(help="Names of deployed repositories.", autocompletion=repositories)],
    home: HomeFolder = None,
    as_json: Json = False,
) -> None:
    """Start the nightly run of repositories now: a worker does it."""
    from perfquarry.flows.schedules import start as start_runs

    start_runs(home_of(home), names, as_json=as_json)


@schedule.command("yaml")
def print_yaml() -> None:
    """Print `prefect.yaml`, made from the registry: for `prefect deploy --all`."""
    from perfquarry.flows.deployments import prefect_yaml

    typer.echo(prefect_yaml(), nl=False)


@app.command()
def worker(
    limit: Annotated[int, typer.Option(min=1, help="Runs at the same time; their timings wait for each other.")] = 1,
    name: Annotated[str | None, typer.Option(help="The worker's name on the page.", show_default="host's")] = None,
    settings: Annotated[Path | None, typer.Option(help="Settings file of runs that name none.")] = None,
    home: HomeFolder = None,
) -> None:
    """Do the runs of the deployments in this home, until Ctrl-C: a process worker of Prefect."""
    from perfquarry.flows.schedules import work

    work(home_of(home), limit, name, settings)
