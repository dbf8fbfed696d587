"""Disk that a program uses: its file system is asked often, its folders are walked when that has shrunk, or seldom."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ENTRY_BYTES = 4096
"""What a file counts at least: the file system's table of files can run out, too."""
REST_SECONDS, RESTS = 1.0, 100
"""Between two walks: so many seconds, or so many times what the last one took. Others may free what is filled here."""

DU_SECONDS = 30.0
"""How long `du` may count."""


class DiskMeter:
    """Notices when folders hold more than `limit` bytes on disk.

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
        self._due = time.monotonic() + REST_SECONDS

    def exceeded(self, processes: Callable[[], Sequence[int]]) -> bool:
        """Whether the limit is passed, files that are deleted but kept open by these `processes` (ids) included."""
        free, now = self._free_bytes(), time.monotonic()
        if not self._folders or (self._free - free < self._room and now < self._due):
            return False
        used = self._deleted_bytes(processes())
        for folder in self._folders:
            used += _bytes_below(folder, self._limit - used)
        self._free, self._room = free, max(self._limit - used, 0)
        walked = time.monotonic()
        self._due = walked + max(REST_SECONDS, RESTS * (walked - now))
        return used > self._limit

    def _free_bytes(self) -> int:
        total = 0
        for folder in self._devices().values():
            facts = os.statvfs(folder)
            total += facts.f_bfree * facts.f_frsize + facts.f_ffree * ENTRY_BYTES
        return total

    def _devices(self) -> dict[int, Path]:
        """A folder of each file system; the program may have removed some where nothing keeps it from that."""
        found = {}
        for folder in self._folders:
            with contextlib.suppress(FileNotFoundError):
                found[folder.stat().st_dev] = folder
        return found

    def _deleted_bytes(self, pids: Sequence[int]) -> int:
        devices = self._devices()
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


def _bytes_below(folder: Path, most: int) -> int:
    """Of its files on disk, up to `most`, holes left out; what vanishes meanwhile counts nothing."""
    try:
        return _scanned_bytes(folder, most)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
    # nested more deeply than paths reach, perhaps to hide something
    command = ["du", "-s", "-k", "--", str(folder)]
    try:
        printed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DU_SECONDS).stdout
    except subprocess.TimeoutExpired:  # more is made than can be counted
        return most + 1
    return int(printed.split()[0]) * 1024 if printed else 0


def _scanned_bytes(folder: Path, most: int) -> int:
    """Ends once there is more than `most`: who makes files as fast as they are listed would keep us for ever."""
    total, waiting = 0, [str(folder)]
    while waiting and total <= most:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    with contextlib.suppress(FileNotFoundError):
                        total += max(entry.stat(follow_symlinks=False).st_blocks * 512, ENTRY_BYTES)
                    if total > most:
                        break
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
