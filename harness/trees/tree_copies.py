"""Copies of built trees: base against base must not share the files that are timed, nor tests what they write."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from perfquarry.harness.contracts import BuiltSide
from perfquarry.harness.leases.leases import scratch_folder

OWN_TREE_BYTES = 64 * 1024**2
"""Largest tree that each process gets a copy of without being asked for it in a recipe."""


def end_search_for_settings(folder: Path) -> None:
    """Makes a folder where pytest's search for the settings of a tree below it ends: it looks in all folders above."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pytest.ini").touch()


@contextlib.contextmanager
def second_copy(built: BuiltSide, scratch: Path, most_bytes: int) -> Iterator[BuiltSide]:
    """The side on a copy of its tree, at a path of the same length where that can be; itself where it is too large.

    Args:
        scratch: the copy is made in a folder of its own in there, leased meanwhile, and removed at the end.
        most_bytes: largest tree that is copied.
    """
    if _bytes(built.tree, most_bytes) > most_bytes:
        yield built
        return
    with scratch_folder(scratch, "copy") as place:
        yield copied(built, place, "again".ljust(len(str(built.tree)) - len(str(place)) - 1, "-"))


def copied(built: BuiltSide, folder: Path, name: str) -> BuiltSide:
    """The side on a copy of its tree, by this name in a folder where pytest's search for settings ends."""
    end_search_for_settings(folder)
    copy = folder / name
    shutil.copytree(built.tree, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    roots = tuple(copy / root.relative_to(built.tree) for root in built.source_roots)
    return dataclasses.replace(built, tree=copy, source_roots=roots)


def can_have_own_trees(built: BuiltSide) -> bool:
    """Whether each of the hundred processes of a change could have a copy of the tree: `OWN_TREE_BYTES` at most."""
    return _bytes(built.tree, OWN_TREE_BYTES) <= OWN_TREE_BYTES


def _bytes(tree: Path, most: int) -> int:
    """Bytes of its regular files; stops counting above the most."""
    total = 0
    for place, folders, names in os.walk(tree):
        folders[:] = [name for name in folders if name != ".git"]
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_size  # noqa: PTH118  # large trees
        if total > most:
            break
    return total
