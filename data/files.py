"""The one place for locks on files, and for files and folders that appear whole or not at all.

Locks are the kernel's (flock): one ends with its holder, however that ends. `filelock.FileLock` is such a lock of one
holder, taken by the name of a file; here are those on open files, which may be shared.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from perfquarry.data.children import environment


def locked(file: int | IO[bytes] | IO[str], *, shared: bool = False, wait: bool = True) -> bool:
    """Locks an open file until it is closed or unlocked; False where others hold it and we do not wait."""
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def unlock(file: IO[bytes] | IO[str]) -> None:
    """Ends the lock of a file that stays open."""
    fcntl.flock(file, fcntl.LOCK_UN)


def is_locked(path: Path) -> bool:
    """Whether the file is there and somebody holds a lock on it."""
    try:
        with path.open("r+b") as file:
            return not locked(file, wait=False)
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def appearing(path: Path, *, over: bool = False) -> Iterator[Path]:
    """A new name beside `path`; the file, link or folder made under it gets the name `path` when the block has ended.

    After an error, or a kill, `path` is as before. A file that was there is replaced.

    Args:
        path: its folder is made when missing.
        over: whether a folder that is there is replaced: it is deleted only when the new one is in its place.

    Raises:
        OSError: a folder is there and has something in it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    old = partial.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        yield partial
        if over and path.exists():
            path.rename(old)
        partial.replace(path)
    finally:
        if old.exists() and not path.exists():
            old.rename(path)
        remove(partial)
        remove(old)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """A locked file that gets its name when the block has ended; by then it is on the disk, and so is its name."""
    with appearing(path) as partial, partial.open("xb") as file:
        locked(file)
        yield file
        file.flush()
        os.fsync(file.fileno())
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_whole(path: Path, content: str | bytes) -> None:
    """Writes a file: a kill, or the end of power, leaves the old one or the new one, never a part."""
    with writing(path) as file:
        file.write(content if isinstance(content, bytes) else content.encode(errors="backslashreplace"))


def remove(path: Path) -> None:
    """Removes what is there, whatever was made of it: without rights, or nested more deeply than Python reaches."""
    if path.is_symlink() or path.is_file():
        path.unlink(missing_ok=True)
    with contextlib.suppress(RecursionError):
        shutil.rmtree(path, ignore_errors=True)
    if os.path.lexists(path):
        for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            subprocess.run([*command, "--", str(path)], env=environment(), stderr=subprocess.DEVNULL, check=False)
