"""What a home holds that can be made again, how much disk it takes, and what goes when that is too much.

Environments, trees, artifacts and folders of native builds are evicted, the least recently used
first, until they are within a budget; tables, clones and logs never are. What a process uses stays
(`harness.leases.leases`). What was evicted is made again by whoever needs it (`Builder.reopen`).
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import ByteSize, Field, TypeAdapter, ValidationError

from perfquarry.data.errors import InputError
from perfquarry.data.files import remove, write_whole
from perfquarry.data.home import Home
from perfquarry.data.records import Record
from perfquarry.harness.building.build_folders import build_folder_lock
from perfquarry.harness.leases.leases import is_leased, unleased
from perfquarry.harness.leases.shared_folders import MADE, disk_bytes, lease_marker
from perfquarry.harness.trees.checkouts import tree_marker

BUDGET_VARIABLE = "PERFQUARRY_DISK_BUDGET"
DEFAULT_BUDGET = 20 * 1024**3
"""Bytes; less where the disk is small (`disk_budget`)."""
UNFINISHED_SECONDS = 30 * 86400.0
"""Timings of which nobody has measured a pair for so long are not gone on with."""
UNLOCKED_SECONDS = 60.0
"""A scratch folder younger than that may not be locked by its maker yet."""

Kind = Literal["environment", "tree", "artifacts", "build folder", "leftover"]
_PARTIAL_TREE = re.compile(r"\.(?P<tree>[^.].*)\.[0-9a-f]{32}(\.index(\.lock)?)?")
_PARTIAL_CLONE = re.compile(r"\.(?P<name>.+)\.git\.([0-9a-f]{32}|partial-\d+)")
_SIZES = TypeAdapter(dict[str, tuple[int, float]])


class Thing(Record):
    """One environment, tree, set of artifacts or build folder, or what a dead process left."""

    kind: Kind
    path: Path
    marker: Path = Field(exclude=True, description="Its marker of use; of a leftover that of its maker.")
    used_at: datetime
    bytes: int = Field(description="Disk that only it uses: files it shares by hard links left out.")


class Room(Record):
    """What making room did, or would do."""

    budget: int = Field(description="Bytes of environments, trees, artifacts and build folders together.")
    before: int = Field(description="Bytes of them.")
    after: int
    freed: int = Field(description="Bytes, leftovers included.")
    removed: list[Thing]
    in_use: list[Thing] = Field(description="What would have been removed and stays, because a process uses it.")


def disk_budget(home: Home, used: int, wanted: int | None = None) -> int:
    """Bytes that environments, trees, artifacts and build folders may take together.

    The first of `wanted`, `PERFQUARRY_DISK_BUDGET` ('30GiB'), and 20 GiB or, if that is less, half
    of what is free and what they use.

    Raises:
        InputError: the variable is no size.
    """
    if wanted is not None:
        return wanted
    if text := os.environ.get(BUDGET_VARIABLE):
        return parse_size(text, BUDGET_VARIABLE)
    place = next(folder for folder in (home.root, *home.root.parents) if folder.exists())
    return min(DEFAULT_BUDGET, (shutil.disk_usage(place).free + used) // 2)


def parse_size(text: str, what: str) -> int:
    """Bytes from '30GiB'.

    Raises:
        InputError: it is no size; `what` names it.
    """
    try:
        return TypeAdapter(ByteSize).validate_python(text)
    except ValidationError as error:
        raise InputError(f"{what} {text!r} is no size: give bytes, or a number like 30GiB") from error


def make_room(home: Home, wanted: int | None = None, *, dry_run: bool = False) -> Room:
    """Removes leftovers, and evicts what was used longest ago until the rest is within `disk_budget`.

    Raises:
        InputError: see `disk_budget`.
        OSError: the disk failed.
    """
    things = inventory(home)
    before = after = sum(thing.bytes for thing in things)
    budget = disk_budget(home, before, wanted)
    removed: list[Thing] = []
    busy: list[Thing] = []
    for thing in [*_leftovers(home), *sorted(things, key=lambda one: one.used_at)]:
        if thing.kind != "leftover" and after <= budget:
            break
        if is_leased(thing.marker) if dry_run else not _evict(home, thing):
            busy.append(thing)
            continue
        removed.append(thing)
        after -= thing.bytes if thing.kind != "leftover" else 0
    freed = sum(thing.bytes for thing in removed)
    return Room(budget=budget, before=before, after=after, freed=freed, removed=removed, in_use=busy)


def inventory(home: Home) -> list[Thing]:
    """Every whole environment, tree, set of artifacts and build folder with its size; sizes are measured once a use."""
    file = home.cache / "sizes.json"
    try:
        known = _SIZES.validate_json(file.read_bytes())
    except (OSError, ValidationError):
        known = {}
    things: list[Thing] = []
    sizes: dict[str, tuple[int, float]] = {}
    for kind, path, marker in _whole(home):
        with contextlib.suppress(FileNotFoundError):  # evicted meanwhile
            used_at = (marker if marker.exists() else path).stat().st_mtime
            name = str(path.relative_to(home.root))
            size, measured_at = known.get(name, (0, 0.0))
            if measured_at != used_at:
                size = disk_bytes(path)
            if measured_at == used_at or not is_leased(marker):  # what is in use may grow
                sizes[name] = (size, used_at)
            things.append(_thing(kind, path, marker, used_at, size))
    if sizes != known:
        write_whole(file, _SIZES.dump_json(sizes))
    return things


def _whole(home: Home) -> Iterator[tuple[Kind, Path, Path]]:
    for kind, path, marker in _shared_folders(home):
        if (path / MADE).exists():
            yield kind, path, marker
    for tree in home.trees.glob("*/[!.]*"):
        yield "tree", tree, tree_marker(home.locks, tree)
    for pattern in ("*/build-*", "*/yard-*"):  # their name until version 0.2
        for folder in filter(Path.is_dir, home.compiled.glob(pattern)):
            yield "build folder", folder, build_folder_lock(folder)


def _shared_folders(home: Home) -> Iterator[tuple[Kind, Path, Path]]:
    """Folders of `make_shared`, half-made ones included; their locks are named by those who make them."""
    kinds: tuple[tuple[Kind, Path, str], ...] = (
        ("environment", home.environments, "environment"),
        ("artifacts", home.artifacts, "build"),
    )
    for kind, folder, prefix in kinds:
        for path in folder.glob("[!.]*"):
            yield kind, path, lease_marker(home.locks / f"{prefix}-{path.name}.lock")


def _leftovers(home: Home) -> Iterator[Thing]:
    """What dead processes left: half-made things, scratch folders, unfinished work, what no eviction had deleted."""
    found = [(path, path) for path in home.trash.glob("*")]
    found += [(path, marker) for _, path, marker in _shared_folders(home) if not (path / MADE).exists()]
    for path in home.trees.glob("*/.*"):  # their makers use the tree that they are to become
        if part := _PARTIAL_TREE.fullmatch(path.name):
            found.append((path, tree_marker(home.locks, path.with_name(part["tree"]))))
    for path in home.repositories.glob(".*"):
        if clone := _PARTIAL_CLONE.fullmatch(path.name):
            found.append((path, home.clone_lock(clone["name"])))
    for path in home.scratch.glob("*"):
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_ctime < time.time() - UNLOCKED_SECONDS:
                found.append((path, path))
    for path in (*home.unfinished.glob("*"), *home.searches.glob("*")):
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_mtime < time.time() - UNFINISHED_SECONDS:
                found.append((path, path))
    for path, marker in found:
        with contextlib.suppress(FileNotFoundError):  # its maker was alive and has finished
            status = path.lstat()
            size = disk_bytes(path) if path.is_dir() else status.st_size
            yield _thing("leftover", path, marker, status.st_ctime, size)


def _thing(kind: Kind, path: Path, marker: Path, used_at: float, size: int) -> Thing:
    return Thing(kind=kind, path=path, marker=marker, used_at=datetime.fromtimestamp(used_at, UTC), bytes=size)


def _evict(home: Home, thing: Thing) -> bool:
    """Removes a thing that nobody uses. It is renamed first: at its place it is whole or not there."""
    doomed = home.trash / uuid.uuid4().hex
    doomed.parent.mkdir(parents=True, exist_ok=True)
    with unleased(thing.marker) as free:
        if not free or not thing.path.exists() or (thing.kind == "leftover" and (thing.path / MADE).exists()):
            return False
        thing.path.rename(doomed)
        if thing.kind not in ("leftover", "build folder"):  # builds wait for the very file of a build folder's lock
            thing.marker.unlink()
    remove(doomed)
    return True
