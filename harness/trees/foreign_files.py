"""Files that foreign processes left, read without trusting what they are."""

from __future__ import annotations

import contextlib
import os
import stat
from itertools import islice
from pathlib import Path

from perfquarry.harness.contracts import Files

MOST_FILES = 8
"""Of a folder."""


class Forged(Exception):
    """What was left is not what our own program can have written."""


def content_of(path: Path | str, limit: int, folder: int | None = None) -> bytes:
    """Bytes of a file, perhaps of an open folder; nothing put in its place is followed or waited for.

    Raises:
        FileNotFoundError: there is none.
        Forged: it is no ordinary file within the limit.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Forged(f"it cannot be opened: {error.strerror}") from error
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode) or facts.st_size > limit:
        os.close(descriptor)
        raise Forged(f"it is no ordinary file of at most {limit} bytes")
    with os.fdopen(descriptor, "rb") as file:
        return file.read(limit)


def files_below(parent: Path, name: str, limit: int) -> Files:
    """The files of a folder below another, none of which is followed elsewhere.

    Raises:
        Forged: it is something else than a few ordinary files, together within the limit.
    """
    with contextlib.ExitStack() as stack:
        folder = None
        for part in (str(parent), name):
            try:
                folder = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY, dir_fd=folder)
            except OSError as error:
                raise Forged(f"there is no folder of it: {error.strerror}") from error
            stack.callback(os.close, folder)
        assert folder is not None
        with os.scandir(folder) as entries:
            names = [entry.name for entry in islice(entries, MOST_FILES + 1)]
        if not 0 < len(names) <= MOST_FILES:
            raise Forged(f"it is not one to {MOST_FILES} files")
        files: Files = {}
        for file in sorted(names):
            try:
                files[file] = content_of(file, limit - sum(map(len, files.values())), folder)
                file.encode()
            except (FileNotFoundError, UnicodeEncodeError) as error:
                raise Forged("a file of it has no name that can be kept") from error
        return files
