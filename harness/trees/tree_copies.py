"""A second copy of a built tree: base against base must not share the files that are timed."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

from perfquarry.data.files import remove
from perfquarry.harness.contracts import BuiltSide

SHORTEST = 8
"""Characters of the copy's name at least."""


@contextlib.contextmanager
def second_copy(built: BuiltSide, scratch: Path, most_bytes: int) -> Iterator[BuiltSide]:
    """The side on a copy of its tree, at a path of the same length where that can be; itself where it is too large.

    Args:
        scratch: folder for the copy; it is removed at the end.
        most_bytes: largest tree that is copied.
    """
    if _bytes(built.tree, most_bytes) > most_bytes:
        yield built
        return
    scratch = scratch.resolve()
    scratch.mkdir(parents=True, exist_ok=True)
    length = max(SHORTEST, len(str(built.tree)) - len(str(scratch)) - 1)
    copy = scratch / (uuid.uuid4().hex * (length // 32 + 1))[:length]
    try:
        shutil.copytree(built.tree, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        roots = tuple(copy / root.relative_to(built.tree) for root in built.source_roots)
        yield dataclasses.replace(built, tree=copy, source_roots=roots)
    finally:
        remove(copy)


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
