"""What runs are doing and how they ended: a small file a run, from which `perfquarry status` reads.

A run holds a lock beside its file, which dies with it: without an outcome and without the
lock, a run was killed.
"""

from __future__ import annotations

import contextlib
import os
import platform
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from filelock import FileLock
from pydantic import Field, ValidationError

from perfquarry.data.display import Display
from perfquarry.data.files import is_locked, write_whole
from perfquarry.data.home import Home
from perfquarry.data.records import Record

KEPT = 20
"""Runs of a repository that are remembered."""
WRITE_SECONDS = 1.0
"""Progress within a stage is written at most this often (seconds)."""

Outcome = Literal["running", "done", "nothing new", "waiting", "failed", "interrupted", "killed"]


class RunRecord(Record):
    """One run of one repository in one home."""

    run: str = Field(description="Name of the run; its log files have it, too.")
    repository: str
    stages: list[str]
    pid: int
    host: str
    flow_run: str = Field(default="", description="Id of the scheduled flow run of Prefect; empty without one.")
    began: datetime
    ended: datetime | None = None
    stage: str = ""
    done: int = Field(default=0, description="Steps of the stage that are done.")
    total: int | None = None
    note: str = Field(default="", description="What is being worked on.")
    outcome: Outcome = "running"
    message: str = Field(default="", description="Why it failed, or what it waits for.")


class Recorder(Display):
    """Writes the record of this process's run."""

    def __init__(self, path: Path, record: RunRecord) -> None:
        self.record = record
        self._path = path
        self._lock = threading.Lock()
        self._written = 0.0

    def stage(self, name: str, total: int | None) -> None:
        """A stage begins."""
        super().stage(name, total)
        self.set(stage=name, total=total, done=0, note="")

    def advance(self, steps: int = 1) -> None:
        """Steps are done."""
        super().advance(steps)
        with self._lock:
            self._change(done=self.record.done + steps)

    def note(self, text: str) -> None:
        """What is being worked on."""
        super().note(text)
        with self._lock:
            self._change(note=text[:200])

    def finish(self, summary: str) -> None:
        """The stage is done."""
        super().finish(summary)
        self.set(note=summary)

    def set(self, **changes: object) -> None:
        """Changes fields and writes the record now."""
        with self._lock:
            self._written = 0.0
            self._change(**changes)

    def _change(self, **changes: object) -> None:
        self.record = self.record.model_copy(update=changes)
        if time.monotonic() - self._written >= WRITE_SECONDS or not self._written:
            self._written = time.monotonic()
            write_whole(self._path, self.record.model_dump_json())


def run_name(repository: str) -> str:
    """A new run's name: the repository, the time, and the process."""
    return f"{repository}-{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}"


@contextlib.contextmanager
def recorded(home: Home, run: str, repository: str, stages: Sequence[str], flow_run: str = "") -> Iterator[Recorder]:
    """Keeps the record of a run from here on; whoever is in charge sets the outcome of one that ends by itself."""
    folder = home.runs / repository
    folder.mkdir(parents=True, exist_ok=True)
    _forget(folder)
    record = RunRecord(
        run=run,
        repository=repository,
        stages=list(stages),
        pid=os.getpid(),
        host=platform.node(),
        flow_run=flow_run,
        began=datetime.now(UTC),
    )
    with FileLock(folder / f"{run}.lock"):
        recorder = Recorder(folder / f"{run}.json", record)
        recorder.set()
        try:
            yield recorder
        except KeyboardInterrupt:
            recorder.set(outcome="interrupted")
            raise
        except BaseException as error:
            if recorder.record.outcome == "running":
                recorder.set(outcome="failed", message=f"{error}")
            raise
        finally:
            recorder.set(ended=datetime.now(UTC))


def runs_of(home: Home, repository: str) -> list[RunRecord]:
    """The remembered runs of a repository, oldest first; those killed are marked as such."""
    found = []
    for path in sorted((home.runs / repository).glob("*.json")):
        try:
            record = RunRecord.model_validate_json(path.read_text(encoding="utf-8"))
        except (OSError, ValidationError):
            continue  # it went meanwhile, or a newer perfquarry wrote it
        if record.outcome == "running" and not record.ended and not is_locked(path.with_suffix(".lock")):
            record = record.model_copy(update={"outcome": "killed"})
        found.append(record)
    return sorted(found, key=lambda record: record.began)


def repositories(home: Home) -> list[str]:
    """Names of the repositories that had runs in this home."""
    return sorted(folder.name for folder in home.runs.glob("*") if folder.is_dir())


def _forget(folder: Path) -> None:
    for path in sorted(folder.glob("*.json"), key=lambda one: one.stat().st_mtime)[: -KEPT + 1]:
        if not is_locked(path.with_suffix(".lock")):
            path.unlink(missing_ok=True)
            path.with_suffix(".lock").unlink(missing_ok=True)
