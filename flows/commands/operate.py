"""The commands that look after the machine and the home."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from perfquarry.data.errors import InputError
from perfquarry.data.home import Home, home_of
from perfquarry.data.output import Listing, put, show
from perfquarry.flows.commands.shared import HomeFolder, Json, app

if TYPE_CHECKING:
    from perfquarry.harness.leases.eviction import Room

SHOWN = 40
"""Most rows of the table of `gc`; --json has all."""


@app.command()
def doctor(home: HomeFolder = None, as_json: Json = False) -> None:
    """Check what is missing on this machine, and what that costs; exit code 1 if it cannot curate."""
    from perfquarry.harness.doctor import examine, verdict

    checks = examine(home_of(home))
    table = Listing(("", "check", "found"), head=False)
    for check in checks:
        mark = Text("✓", "green") if check.ok else Text("✗", "red") if check.needed else Text("!", "yellow")
        costs, remedy = ("\ncosts: ", "dim"), ("\nto do: ", "dim")
        more = () if check.ok else (costs, check.cost, remedy, check.remedy)
        table.add(mark, check.name, Text.assemble(check.found, *more))
    put(checks, [verdict(checks), table], as_json=as_json)
    if any(check.needed and not check.ok for check in checks):
        raise typer.Exit(1)


@app.command()
def gc(
    home: HomeFolder = None,
    keep: Annotated[str | None, typer.Option(help="Keep this much: '5GiB'.", show_default="the disk budget")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Keep only what is in use.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be deleted; delete nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Free the disk of what can be made again: environments, trees, artifacts; the longest unused first."""
    from perfquarry.harness.leases.eviction import make_room, parse_size
    from perfquarry.harness.leases.tidying import making_room

    place, text = home_of(home), "0" if everything else keep
    wanted = None if text is None else parse_size(text, "--keep")
    if not place.root.is_dir():
        raise InputError(f"there is no home at {place.root}: name one with --home")
    with making_room(place):
        room = make_room(place, wanted, dry_run=dry_run)
    put(room, _evicted(room, place, dry_run), as_json=as_json)


def _evicted(room: Room, home: Home, dry_run: bool) -> Iterator[RenderableType]:
    from perfquarry.data.figures import size

    if rows := [*((thing, "") for thing in room.removed), *((thing, "in use: stays") for thing in room.in_use)]:
        table = Listing(("where", "kind", ">size", "last used, UTC", ""), "Would go" if dry_run else "Went")
        for thing, note in rows[:SHOWN]:
            where = str(thing.path.relative_to(home.root))
            table.add(where, thing.kind, size(thing.bytes), f"{thing.used_at:%Y-%m-%d %H:%M}", note)
        yield table
        yield f"… and {len(rows) - SHOWN} more (--json lists all)\n" if len(rows) > SHOWN else ""
    verb = "would free" if dry_run else "freed"
    yield (
        f"{verb} {size(room.freed)}; environments, trees, artifacts and build folders: {size(room.before)} before, "
        f"{size(room.after)} after, budget {size(room.budget)}"
    )


@app.command()
def ui(home: HomeFolder = None) -> None:
    """Open the local Prefect server's page, until Ctrl-C."""
    from perfquarry.flows.server import local_server, quiet

    quiet()
    with local_server(home_of(home)) as server:
        show(f"Prefect: {server.wait().removesuffix('/api')}   (Ctrl-C ends it)")
        while True:
            time.sleep(3600)


@app.command()
def status(
    once: Annotated[bool, typer.Option("--once", help="Print the table once instead of keeping it fresh.")] = False,
    home: HomeFolder = None,
    as_json: Json = False,
) -> None:
    """Show each repository's stages, what runs now, the last run, and what it waits for."""
    from perfquarry.flows.status import report

    report(home_of(home), once=once, as_json=as_json)
