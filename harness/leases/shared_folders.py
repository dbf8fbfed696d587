"""Things made once in a shared folder, whoever asks first, whatever gets killed meanwhile."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from filelock import FileLock

from perfquarry.data.files import remove, write_whole
from perfquarry.data.records import Record
from perfquarry.harness.leases.build_slots import build_slot
from perfquarry.harness.leases.leases import lease, leases_held
from perfquarry.harness.rejections import Rejection

Made = TypeVar("Made", bound=Record)
MADE = "made.json"


@leases_held()
def make_shared(
    folder: Path,
    lock: Path,
    kind: type[Made],
    make: Callable[[Path], Made | Rejection],
    usable: Callable[[Made], bool],
    *,
    memory_bytes: int = 0,
) -> tuple[Made | Rejection, bool]:
    """What `make` made in `folder`, now or earlier, by this process or another.

    `make` gets a new folder inside `folder`, never used before: a child of a killed process may
    still be writing into an earlier one, and what it makes has its own path baked in, so it
    cannot be renamed afterwards. The record it returns is written last, as `folder/made.json`;
    without that file all that lies there is left over and is removed.

    Args:
        folder: the shared folder, one a thing.
        lock: the lock file; the lock dies with its holder. Beside it lies the marker of use.
        make: makes the thing; a `Rejection` is passed on and nothing is kept.
        usable: whether an earlier record still describes something that is there.
        memory_bytes: what making it may take; it waits until that is free (`build_slot`).

    Returns:
        The record or rejection, and whether it was made by this call.
    """
    lease(lease_marker(lock))
    marker = folder / MADE
    known = _read(marker, kind, usable)
    if known is not None:
        return known, False
    with FileLock(lock):
        known = _read(marker, kind, usable)
        if known is not None:
            return known, False
        remove(folder)
        place = folder / uuid.uuid4().hex[:8]
        place.mkdir(parents=True)
        with build_slot(lock.parent, memory_bytes):
            made = make(place)
        if isinstance(made, Rejection):
            remove(folder)
            return made, True
        write_whole(marker, made.model_dump_json())
        for other in folder.iterdir():  # what children of a killed maker wrote meanwhile
            if other not in (place, marker):
                remove(other)
        return made, True


def lease_marker(lock: Path) -> Path:
    """The marker of leases (`harness.leases.leases`) of the thing that is made under a lock."""
    return lock.with_suffix(".use")


def disk_bytes(folder: Path) -> int:
    """Bytes of disk that files below the folder use, those shared with a cache by hard links left out."""
    total = 0
    for path in folder.rglob("*"):
        status = path.lstat()
        if status.st_nlink == 1:
            total += status.st_blocks * 512
    return total


def _read(marker: Path, kind: type[Made], usable: Callable[[Made], bool]) -> Made | None:
    try:
        made = kind.model_validate_json(marker.read_bytes())
    except (OSError, ValueError):  # absent, or written by another version of the record
        return None
    return made if usable(made) else None
