"""The room that runs make for themselves; one process of a home makes room at a time."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from filelock import FileLock
from rich.console import RenderableType

from perfquarry.data.figures import size
from perfquarry.data.home import Home
from perfquarry.data.output import Listing, Report
from perfquarry.harness.leases.eviction import Room, make_room

_log = logging.getLogger("perfquarry.gc")
SHOWN = 40
"""Most rows of the table of `gc`; --json has all."""


def report(home: Home, wanted: int | None, *, dry_run: bool) -> Report:
    """Makes room, down to so many bytes, and says what went."""
    with FileLock(home.locks / "gc.lock"):
        room = make_room(home, wanted, dry_run=dry_run)
    return Report(room, _evicted(room, home, dry_run))


def _evicted(room: Room, home: Home, dry_run: bool) -> Iterator[RenderableType]:
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


def tidy(home: Home, budget: int | None) -> None:
    """Brings a home within its budget.

    A disk that refuses is logged: what is too much now goes the next time.
    """
    try:
        with FileLock(home.locks / "gc.lock"):
            room = make_room(home, budget)
    except OSError as error:
        _log.warning("could not make room in %s: %s", home.root, error)
        return
    if room.removed:
        _log.info("evicted %d things, %s", len(room.removed), size(room.freed))
