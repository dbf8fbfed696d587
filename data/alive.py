"""Signs of life: a locked file a process, by which others on this machine see at once that it has ended."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


class SignOfLife:
    """A file that this process holds locked; the kernel frees it when the process ends, however it ends.

    Args:
        folder: where the signs of all processes lie; on one machine, or on a file system whose locks span machines.
        name: unique for ever.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / name
        new = folder / f".{name}"
        self._file = os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        new.rename(self._path)  # nobody has seen it unlocked

    def end(self) -> None:
        """As if the process had ended."""
        self._path.unlink(missing_ok=True)
        os.close(self._file)


def dead(folder: Path) -> Iterator[str]:
    """Names of the signs whose processes have ended; each sign is removed once the caller goes on."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name.startswith("."):
            continue
        try:
            file = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield path.name
            path.unlink(missing_ok=True)
        except BlockingIOError:
            continue
        finally:
            os.close(file)


def lives(folder: Path, name: str) -> bool:
    """Whether the sign is there and held."""
    try:
        file = os.open(folder / name, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(file)
