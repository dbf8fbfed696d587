"""Signs of life: a locked file a process, by which others on this machine see at once that it has ended."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from perfquarry.data.files import appearing, locked


class SignOfLife:
    """A file that this process holds locked; the kernel frees it when the process ends, however it ends.

    Args:
        folder: where the signs of all processes lie; on one machine, or on a file system whose locks span machines.
        name: unique for ever.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self._path = folder / name
        with appearing(self._path) as new:  # nobody sees it unlocked
            self._file = os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR)
            locked(self._file)

    def end(self) -> None:
        """As if the process had ended."""
        self._path.unlink(missing_ok=True)
        os.close(self._file)


def dead(folder: Path) -> Iterator[str]:
    """Names of the signs whose processes have ended; each sign is removed once the caller goes on."""
    for path in sorted(folder.glob("[!.]*")):
        with suppress(FileNotFoundError), path.open("r+b") as file:
            if locked(file, wait=False):
                yield path.name
                path.unlink(missing_ok=True)
