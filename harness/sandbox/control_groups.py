"""The kernel's control groups of a process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal


def control_groups(process: int | Literal["self"]) -> Iterator[tuple[frozenset[str], Path]]:
    """Controllers and folder of each group of a process; that of version 2 names none. Nothing of one that is gone."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/cgroup").read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            named = frozenset(filter(None, controllers.split(",")))
            yield named, Path(f"/sys/fs/cgroup/{controllers}{path}")
