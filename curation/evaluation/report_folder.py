"""The folder of an evaluation: one writes to it at a time, and all of its grades are of the same kind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from perfquarry.curation.evaluation.report import address_of
from perfquarry.data.errors import InputError


@contextmanager
def held(to: Path, dataset: str, protocol: str) -> Iterator[None]:
    """Holds the folder, made where it is missing, while grades of this dataset and protocol are written to it.

    Raises:
        InputError: another evaluation writes to it, or it has grades of another dataset or protocol.
    """
    to.mkdir(parents=True, exist_ok=True)
    try:
        lock = FileLock(to / ".lock").acquire(timeout=0)
    except Timeout as error:
        raise InputError(f"another evaluation writes to {to}: wait for it, or give another --to") from error
    with lock:
        _same_kind(to, {"dataset": dataset, "protocol": protocol})
        yield


def _same_kind(to: Path, ours: dict[str, str]) -> None:
    """Notes in a new folder what its grades are of; an old one must have the same noted."""
    file = to / "evaluation.json"
    if not file.exists():
        file.write_text(json.dumps(ours), encoding="utf-8")
        return
    theirs = json.loads(file.read_text(encoding="utf-8"))
    for name, value in ours.items():
        if address_of(theirs.get(name, "")) != address_of(value):
            raise InputError(f"{to} holds grades of another {name} ({theirs.get(name)}): give another --to")
