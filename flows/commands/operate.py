"""The commands that look after the machine and the home."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from perfquarry.data.errors import InputError
from perfquarry.data.home import home_of
from perfquarry.data.output import Report, show
from perfquarry.flows.commands.shared import HomeFolder, Json, app


@app.command(example="doctor")
def doctor(home: HomeFolder = None) -> Report:
    """Check what is missing on this machine, and what that costs; exit code 1 if it cannot curate."""
    from perfquarry.harness.doctor import report

    return report(home_of(home))


@app.command(example="gc --keep 5GiB")
def gc(
    home: HomeFolder = None,
    keep: Annotated[str | None, typer.Option(help="Keep this much: '5GiB'.", show_default="the disk budget")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Keep only what is in use.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be deleted; delete nothing.")] = False,
) -> Report:
    """Free the disk of what can be made again: environments, trees, artifacts; the longest unused first."""
    from perfquarry.harness.leases.eviction import parse_size
    from perfquarry.harness.leases.tidying import report

    place, text = home_of(home), "0" if everything else keep
    wanted = None if text is None else parse_size(text, "--keep")
    if not place.root.is_dir():
        raise InputError(f"there is no home at {place.root}: name one with --home")
    return report(place, wanted, dry_run=dry_run)


@app.command(example="ui")
def ui(home: HomeFolder = None) -> None:
    """Open the local Prefect server's page, until Ctrl-C."""
    from perfquarry.flows.server import local_server, quiet

    quiet()
    with local_server(home_of(home)) as server:
        show(f"Prefect: {server.wait().removesuffix('/api')}   (Ctrl-C ends it)")
        while True:
            time.sleep(3600)


@app.command(example="status --once")
def status(
    once: Annotated[bool, typer.Option("--once", help="Print the table once instead of keeping it fresh.")] = False,
    home: HomeFolder = None,
    as_json: Json = False,
) -> Report:
    """Show each repository's stages, what runs now, the last run, and what it waits for."""
    from perfquarry.curation.status import report

    return report(home_of(home), live=not (once or as_json))
