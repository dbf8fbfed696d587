"""What is in use is not evicted: shared locks that die with their holder, and the time of last use."""

from __future__ import annotations

import contextlib
import os
import tempfile
import weakref
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

from perfquarry.data.files import locked, remove


class Leases:
    """Shared locks on things, held until nothing refers to this object any more or its process ends."""

    def __init__(self) -> None:
        self._locks: dict[Path, int] = {}
        weakref.finalize(self, _close_all, self._locks)

    def add(self, marker: Path) -> None:
        """Marks a thing as used now and keeps it; waits while it is being evicted, which is one renaming."""
        if marker not in self._locks:
            self._locks[marker] = _open_locked(marker, shared=True)
        os.utime(self._locks[marker])


_scope: ContextVar[Leases | None] = ContextVar("leases", default=None)


@contextlib.contextmanager
def leases_held() -> Iterator[Leases]:
    """A scope: what is used within stays, and beyond it as long as anything refers to what this yields.

    A scope within another is part of it. Threads started within have none.
    """
    scope = _scope.get() or Leases()
    before = _scope.set(scope)
    try:
        yield scope
    finally:
        _scope.reset(before)


def current_leases() -> Leases | None:
    """The scope this thread is in."""
    return _scope.get()


def lease(marker: Path) -> None:
    """Marks the thing of a marker as used by the current scope, before it is looked for or made.

    Args:
        marker: its lock file, made when missing; or the thing itself, if that is a folder that is there.
    """
    scope = _scope.get()
    if scope is None:
        raise RuntimeError("nothing would hold it: call this within `leases_held()`")
    scope.add(marker)


@contextlib.contextmanager
def scratch_folder(parent: Path, name: str) -> Iterator[Path]:
    """A new folder, leased while it is used and then removed; of a killed process's, the eviction finds it unused.

    Args:
        parent: `Home.scratch`, for the eviction to find it.
        name: what its own name begins with.
    """
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=parent)).resolve()
    with leases_held():
        lease(folder)
        try:
            yield folder
        finally:
            remove(folder)


@contextlib.contextmanager
def unleased(marker: Path) -> Iterator[bool]:
    """Whether nobody uses the thing of a marker; if so, nobody begins to before this ends."""
    try:
        descriptor = _open_locked(marker, wait=False)
    except BlockingIOError:
        yield False
        return
    try:
        yield True
    finally:
        os.close(descriptor)


def is_leased(marker: Path) -> bool:
    """Whether somebody uses the thing of a marker at this moment; changes nothing."""
    if not marker.exists():
        return False
    with unleased(marker) as free:
        return not free


def _open_locked(marker: Path, *, shared: bool = False, wait: bool = True) -> int:
    """Descriptor of the locked marker, of the file that has its name now: an earlier one may have been removed."""
    marker.parent.mkdir(parents=True, exist_ok=True)
    while True:
        make = 0 if marker.is_dir() else os.O_CREAT
        descriptor = os.open(marker, os.O_RDONLY | os.O_CLOEXEC | make, 0o644)
        try:
            if not locked(descriptor, shared=shared, wait=wait):
                raise BlockingIOError(f"{marker} is in use")
            if os.path.samestat(os.fstat(descriptor), marker.stat()):
                return descriptor
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _close_all(locks: dict[Path, int]) -> None:
    for descriptor in locks.values():
        os.close(descriptor)
