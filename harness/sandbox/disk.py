"""Disk that a program uses: its file system is asked often, its folders are walked only when that has shrunk."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path

ENTRY_BYTES = 4096
"""What a file counts at least: the file system's table of files can run out, too."""


class DiskMeter:
    """Tells when folders hold more than `limit` bytes on disk.

    Args:
        folders: those the program may write to; what lies there at the start counts.
        limit: bytes, with `ENTRY_BYTES` for every small file.
    """

    def __init__(self, folders: Sequence[Path], limit: int) -> None:
        self._folders = [folder for folder in folders if folder.is_dir()]
        self._limit = limit
        self._room = limit // 2
        """By how much the file system must shrink before it is worth a walk."""
        self._free = self._free_bytes()

    def exceeded(self, pids: Sequence[int]) -> bool:
        """Whether the limit is passed, files that are deleted but kept open by `pids` included."""
        free = self._free_bytes()
        if self._free - free < self._room:
            return False
        used = sum(map(_bytes_below, self._folders)) + self._deleted_bytes(pids)
        self._free, self._room = free, max(self._limit - used, 0)
        return used > self._limit

    def _free_bytes(self) -> int:
        total = 0
        for folder in {folder.stat().st_dev: folder for folder in self._folders}.values():
            facts = os.statvfs(folder)
            total += facts.f_bfree * facts.f_frsize + facts.f_ffree * ENTRY_BYTES
        return total

    def _deleted_bytes(self, pids: Sequence[int]) -> int:
        devices = {folder.stat().st_dev for folder in self._folders}
        found: dict[int, int] = {}
        for pid in pids:
            for path in _open_files(pid):
                try:
                    facts = path.stat()
                except OSError:
                    continue
                if stat.S_ISREG(facts.st_mode) and not facts.st_nlink and facts.st_dev in devices:
                    found[facts.st_ino] = max(facts.st_blocks * 512, ENTRY_BYTES)
        return sum(found.values())


def _bytes_below(folder: Path) -> int:
    """Of its files on disk, holes left out; what vanishes meanwhile counts nothing."""
    try:
        return _scanned_bytes(folder)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
    # nested more deeply than paths reach, perhaps to hide something
    told = subprocess.run(["du", "-s", "-k", "--", str(folder)], capture_output=True, text=True, check=False).stdout
    return int(told.split()[0]) * 1024 if told else 0


def _scanned_bytes(folder: Path) -> int:
    total, waiting = 0, [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    with contextlib.suppress(FileNotFoundError):
                        total += max(entry.stat(follow_symlinks=False).st_blocks * 512, ENTRY_BYTES)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except (FileNotFoundError, PermissionError):
            continue
    return total


def _open_files(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return []
