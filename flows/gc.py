"""`perfquarry gc`, and the room that runs make for themselves."""

from __future__ import annotations

import logging

from filelock import FileLock
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from perfquarry.data.errors import InputError
from perfquarry.data.home import Home
from perfquarry.flows.reports import size
from perfquarry.flows.run import Run
from perfquarry.harness.leases.eviction import Room, make_room, parse_size

SHOWN = 40
"""Most rows of the table; --json has all."""
_log = logging.getLogger("perfquarry.gc")


def tidy(run: Run) -> None:
    """Brings the home of a run within its budget.

    A disk that refuses is logged: what is too much now goes the next time.
    """
    run.home.locks.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(run.home.locks / "gc.lock"):
            room = make_room(run.home, run.options.settings.resources.disk)
    except OSError as error:
        _log.warning("could not make room in %s: %s", run.home.root, error)
        return
    if room.removed:
        _log.info("evicted %d things, %s", len(room.removed), size(room.freed))


def collect(home: Home, keep: str | None, *, dry_run: bool, as_json: bool) -> None:
    """Makes room by hand and prints what went.

    Args:
        keep: how much may stay, such as '5GiB'; None: the budget.
        dry_run: only tell.

    Raises:
        InputError: no such home, or `keep` is no size.
    """
    wanted = None if keep is None else parse_size(keep, "--keep")
    if not home.root.is_dir():
        raise InputError(f"there is no home at {home.root}: name one with --home")
    home.locks.mkdir(parents=True, exist_ok=True)
    with FileLock(home.locks / "gc.lock"):
        room = make_room(home, wanted, dry_run=dry_run)
    if as_json:
        print(room.model_dump_json(indent=2))
    else:
        _print(room, home, dry_run)


def _print(room: Room, home: Home, dry_run: bool) -> None:
    console = Console()
    if rows := [*((thing, "") for thing in room.removed), *((thing, "in use: stays") for thing in room.in_use)]:
        title = "Would go" if dry_run else "Went"
        table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
        table.add_column("kind", no_wrap=True)
        table.add_column("size", justify="right", no_wrap=True)
        table.add_column("last used, UTC", no_wrap=True)
        table.add_column("where", overflow="fold")
        table.add_column("")
        for thing, note in rows[:SHOWN]:
            where = escape(str(thing.path.relative_to(home.root)))
            table.add_row(thing.kind, size(thing.bytes), f"{thing.used_at:%Y-%m-%d %H:%M}", where, note)
        console.print(table)
        if len(rows) > SHOWN:
            console.print(f"… and {len(rows) - SHOWN} more (--json lists all)\n")
    verb = "would free" if dry_run else "freed"
    console.print(
        f"{verb} {size(room.freed)}; environments, trees, artifacts and build folders: {size(room.before)} before, "
        f"{size(room.after)} after, budget {size(room.budget)}",
        highlight=False,
    )
