"""What of the host a container sees: the command's paths at their own places, keys covered; and as whom it runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from docker.types import Mount

from perfquarry.harness.contracts import Command
from perfquarry.harness.sandbox.hidden import PRIVATE, hidden_paths, inside, needed_paths, within

NEVER = frozenset(map(Path, ("/", "/dev", "/proc", "/sys"))) | frozenset(PRIVATE)
NOBODY = (65534, 65534)


@dataclass(frozen=True)
class SandboxView:
    """Paths of the host that one command sees; `covered` are those that hold keys, inside readable ones."""

    readable: tuple[Path, ...]
    writable: tuple[Path, ...]
    covered: tuple[Path, ...]

    @classmethod
    def of(cls, command: Command, holds: Sequence[Path]) -> SandboxView:
        """What a command needs: its folder, its paths and its program, but for what the image holds itself."""
        writable = set(command.writable)
        hidden, covered = hidden_paths(), set[Path]()
        asked = {path for path in needed_paths(command) - NEVER if path.exists() and path.resolve() not in hidden}
        readable = {path for path in asked if not within(path, holds) and not within(path, writable)}
        for path in readable:
            real = path.resolve()
            covered |= {path / key.relative_to(real) for key in inside(hidden, [real])}
        shown = readable | writable
        covered = {path for path in covered - shown if not within(path, writable)}
        return cls(tuple(sorted(readable)), tuple(sorted(writable)), tuple(sorted(covered)))

    @property
    def shown(self) -> tuple[Path, ...]:
        """What is mounted."""
        return (*self.readable, *self.writable)

    def mounts(self, closed: Path) -> list[Mount]:
        """Bind mounts; the engine mounts outer folders first.

        Args:
            closed: an empty file nobody may read, to cover files with.
        """
        found = [_bind(path, path, read_only=False) for path in self.writable]
        found += [_bind(path, path, read_only=True) for path in self.readable]
        return found + [_bind(closed, path, read_only=True) for path in self.covered if not path.is_dir()]

    def empty_folders(self, holds: Sequence[Path]) -> dict[str, str]:
        """Folders of memory with their mount options: over folders that hold keys, and over a closed /root."""
        found = {str(path): "ro,size=64k,mode=555" for path in self.covered if path.is_dir()}
        root = Path("/root")
        if any(root in path.parents for path in self.shown) and not any(root in path.parents for path in holds):
            found[str(root)] = "ro,size=64k,mode=755"
        return found

    def user(self) -> tuple[int, int]:
        """User and group to run as: not root wherever that one may read and write what it needs.

        An ordinary user runs commands as itself. Under root it is the owner of the writable
        folders, or nobody; only what root alone may touch is run as root (without any capability).
        """
        if os.geteuid() != 0:
            return os.geteuid(), os.getegid()
        owners = {(path.stat().st_uid, path.stat().st_gid) for path in self.writable}
        chosen = owners.pop() if len(owners) == 1 and 0 not in next(iter(owners)) else NOBODY
        allowed = all(_may(path, *chosen, os.R_OK) for path in self.readable)
        return chosen if allowed and all(_may(path, *chosen, os.R_OK | os.W_OK) for path in self.writable) else (0, 0)


def _bind(source: Path, target: Path, *, read_only: bool) -> Mount:
    mount = Mount(str(target), str(source), type="bind", read_only=read_only, propagation="rprivate")
    # an older engine makes only the outermost mount read-only: what is mounted below would stay writable
    mount["BindOptions"]["NonRecursive"] = read_only
    return mount


def _may(path: Path, uid: int, gid: int, wanted: int) -> bool:
    """Whether the mode of a path lets that user in; folders must be searchable, too."""
    status = path.stat()
    shift = 6 if status.st_uid == uid else 3 if status.st_gid == gid else 0
    needed = wanted | (os.X_OK if path.is_dir() else 0)
    return status.st_mode >> shift & needed == needed
