"""`perfquarry schedule` and `perfquarry worker`: nightly deployments, and what does their runs."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from perfquarry.data.errors import InputError
from perfquarry.data.home import home_of
from perfquarry.data.output import Listing, Report
from perfquarry.flows.commands.completion import repositories
from perfquarry.flows.commands.shared import Commands, HomeFolder, app

Names = Annotated[
    list[str] | None, typer.Argument(help="Names in the registry; default: all.", autocompletion=repositories)
]

schedule = Commands(
    "schedule",
    "schedule apply numpy pandas",
    no_args_is_help=True,
    help="Nightly deployments on the Prefect server: PREFECT_API_URL, or the home's own.",
)
app.add_typer(schedule)


@schedule.command("list", example="schedule list")
def show(home: HomeFolder = None) -> Report:
    """List what is deployed, with its next and its last run."""
    from perfquarry.flows.server import connected

    with connected(home_of(home)):
        from perfquarry.flows.prefect_deployments import listed

        deployed = listed()
    none = "nothing is deployed: `perfquarry schedule apply REPO…` does that, `perfquarry worker` does the runs"
    names = ("repository", "cron, UTC", "next run, UTC", "last run, UTC", "ended")
    table = Listing(names, f"{len(deployed)} deployment(s)")
    for one in deployed:
        cron = one.cron if one.active else Text(f"{one.cron} (paused)", "dim")
        table.add(one.repository, cron, _minute(one.next_run), _minute(one.last_run), one.last_state)
    return Report(deployed, [table if deployed else none])


def _minute(date: datetime | None) -> str:
    return f"{date:%Y-%m-%d %H:%M}" if date else "–"


@schedule.command(example="schedule apply numpy pandas")
def apply(names: Names = None, home: HomeFolder = None) -> Report:
    """Create or update the nightly deployments of repositories of the registry."""
    from perfquarry.flows.deployments import chosen
    from perfquarry.flows.server import connected

    wanted = chosen(names or [])
    with connected(home_of(home)) as url:
        from perfquarry.flows.prefect_deployments import apply as create

        create(wanted)
    return Report(wanted, [f"{len(wanted)} deployment(s) on {url}; `perfquarry worker` does their runs"])


@schedule.command(example="schedule remove numpy")
def remove(
    names: Names = None,
    everything: Annotated[bool, typer.Option("--all", help="Remove all of them.")] = False,
    home: HomeFolder = None,
) -> Report:
    """Remove nightly deployments; runs that are under way go on."""
    from perfquarry.flows.server import connected

    if bool(names) == everything:
        raise InputError("name the repositories whose deployments go, or give --all")
    with connected(home_of(home)):
        from perfquarry.flows.prefect_deployments import remove as delete

        gone = delete(names or [])
    return Report(gone, [f"{len(gone)} deployment(s) removed: {', '.join(gone) or '–'}"])


@schedule.command("run", example="schedule run numpy")
def start(
    names: Annotated[list[str], typer.Argument(help="Names of deployed repositories.", autocompletion=repositories)],
    home: HomeFolder = None,
) -> Report:
    """Start the nightly run of repositories now: a worker does it."""
    from perfquarry.flows.server import connected

    with connected(home_of(home)) as url:
        from perfquarry.flows.prefect_deployments import start as make_runs

        runs = make_runs(names)
    return Report(runs, [f"{len(runs)} run(s) on {url}: {', '.join(runs)}; `perfquarry worker` does them"])


@schedule.command("yaml", example="schedule yaml")
def print_yaml() -> None:
    """Print `prefect.yaml`, made from the registry: for `prefect deploy --all`."""
    from perfquarry.flows.deployments import prefect_yaml

    typer.echo(prefect_yaml(), nl=False)


@app.command(example="worker --limit 2")
def worker(
    limit: Annotated[int, typer.Option(min=1, help="Runs at the same time; their timings wait for each other.")] = 1,
    name: Annotated[str | None, typer.Option(help="The worker's name on the page.", show_default="host's")] = None,
    settings: Annotated[Path | None, typer.Option(help="Settings file of runs that name none.")] = None,
    home: HomeFolder = None,
) -> None:
    """Do the runs of the deployments in this home, until Ctrl-C: a process worker of Prefect."""
    from perfquarry.flows.schedules import work

    work(home_of(home), limit, name, settings)
