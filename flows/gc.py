"""`perfquarry gc`, and the room that runs make for themselves."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from filelock import FileLock
from rich.console import RenderableType

from perfquarry.data.errors import InputError
from perfquarry.data.figures import size
from perfquarry.data.home import Home
from perfquarry.flows.output import Listing, put
from perfquarry.flows.run import Run
from perfquarry.harness.leases.eviction import Room, make_room, parse_size

SHOWN = 40
"""Most rows of the table; --json has all."""
_log = logging.getLogger("perfquarry.gc")


def tidy(run: Run) -> None:
    """Brings the home of a run within its budget.

    A disk that refuses is logged: what is too much now goes the next time.
    """
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
        dry_run: only show what would go.

    Raises:
        InputError: no such home, or `keep` is no size.
    """
    wanted = None if keep is None else parse_size(keep, "--keep")
    if not home.root.is_dir():
        raise InputError(f"there is no home at {home.root}: name one with --home")
    with FileLock(home.locks / "gc.lock"):
        room = make_room(home, wanted, dry_run=dry_run)
    put(room, _shown(room, home, dry_run), as_json=as_json)


def _shown(room: Room, home: Home, dry_run: bool) -> Iterator[RenderableType]:
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
