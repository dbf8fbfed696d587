"""The room that runs make for themselves; one process of a home makes room at a time."""

from __future__ import annotations

import logging

from filelock import FileLock

from perfquarry.data.figures import size
from perfquarry.data.home import Home
from perfquarry.harness.leases.eviction import make_room

_log = logging.getLogger("perfquarry.gc")


def making_room(home: Home) -> FileLock:
    """Held by whoever makes room."""
    return FileLock(home.locks / "gc.lock")


def tidy(home: Home, budget: int | None) -> None:
    """Brings a home within its budget.

    A disk that refuses is logged: what is too much now goes the next time.
    """
    try:
        with making_room(home):
            room = make_room(home, budget)
    except OSError as error:
        _log.warning("could not make room in %s: %s", home.root, error)
        return
    if room.removed:
        _log.info("evicted %d things, %s", len(room.removed), size(room.freed))
