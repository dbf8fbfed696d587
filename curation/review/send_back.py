"""Candidates that curators sent back: the wish is written down, then the stages run as processes of their own.

The wish (table `renewals`) is what makes the stages do the change once more, so a run that is
interrupted is taken up by any later run of the same repository.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from perfquarry.curation.in_force import newest_tasks
from perfquarry.curation.names import repository_of
from perfquarry.curation.review.vocabulary import SendBack
from perfquarry.data.children import Need, environment
from perfquarry.data.errors import InfrastructureError, InputError, PerfquarryError
from perfquarry.data.figures import times
from perfquarry.data.home import Home
from perfquarry.data.own_rows import OwnRows
from perfquarry.data.records import Renewal, Task

Stage = Literal["generate", "measure", "select"]
STAGES: Mapping[SendBack, tuple[Stage, ...]] = {
    "more-tests": ("generate", "measure", "select"),
    "measure-again": ("measure", "select"),
}

_NEEDS = (Need.SETTINGS, Need.NETWORK, Need.INDEX, Need.TABLES)
_MODELS = {"generate": (Need.MODELS,)}
"""Stages that ask models."""


class Interrupted(InfrastructureError):
    """The review server ended while a flow ran."""


@dataclass
class SendBackRunner:
    """Starts `perfquarry STAGE REPO --changes SHA` with the options that the tasks were made with."""

    home: Home
    jobs: int
    rows_of: Callable[[str], OwnRows]
    """By what names a repository on the command line, its rows under the command's settings."""
    workloads: Sequence[str]
    """Every source of workloads that can be asked."""
    arguments: Sequence[str]
    """How the command line names the settings ('--settings', FILE, …)."""
    sources: Mapping[str, str]
    """Where to clone a repository from instead of the registry's URL."""

    def __post_init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._stopped = threading.Event()

    def run(self, task: Task, action: SendBack, wished_by: str, report: Callable[[str], None]) -> str:
        """Does the work to its end.

        Raises:
            InputError: the task was made with other settings than these.
            PerfquarryError: a stage ended with an error; its last line says which.
        """
        name = self._name_of(task)
        rows = self.rows_of(name)
        self._check(rows, task)
        before = times(task.speedup)
        rows.store.append(self._wishes(rows, task, action, wished_by))
        for stage in STAGES[action]:
            self._stage(stage, name, task, report)
        after = next((one for one in newest_tasks(rows.store, task.repo) if one.task_id == task.task_id), None)
        if after is None:
            raise InfrastructureError(f"{task.task_id} is no longer among the tasks: look at perfquarry funnel {name}")
        outcome = times(after.speedup) if after.status == "kept" else f"rejected ({after.reason})"
        return f"{before} before, {outcome} now; {len(after.workloads)} workloads kept (were {len(task.workloads)})"

    def stop(self) -> None:
        """Ends the stage that runs."""
        self._stopped.set()
        if (process := self._process) is not None:
            with suppress(ProcessLookupError):
                process.terminate()

    def _name_of(self, task: Task) -> str:
        """What names the repository on the command line."""
        for name in filter(None, (task.repo, task.url)):
            with suppress(InputError):
                if repository_of(self.home, name).name == task.repo:
                    return name
        raise InputError(f"{task.repo} is neither in the registry nor to be found at {task.url or 'its path'}")

    def _check(self, rows: OwnRows, task: Task) -> None:
        if task.change_id not in rows.column("measure"):
            raise InputError(
                "the timings of this task were taken with other settings: start `perfquarry review` with the "
                "--settings, --workloads and --judge of the run that made it"
            )

    def _wishes(self, rows: OwnRows, task: Task, action: SendBack, wished_by: str) -> list[Renewal]:
        wished: list[Renewal] = []
        for stage in STAGES[action]:
            if stage != "select":
                common = rows.stamp(stage).fields() | {"change_id": task.change_id, "wished_by": wished_by}
                wished.append(Renewal(**common, stage=stage, sources=self.workloads if stage == "generate" else []))
        return wished

    def _stage(self, stage: str, name: str, task: Task, report: Callable[[str], None]) -> None:
        command = [sys.executable, "-m", "perfquarry", stage, name, "--home", str(self.home.root), "--no-server"]
        command += ["--jobs", str(self.jobs), *self.arguments]
        if stage != "select":
            command += ["--changes", task.head_sha]
        if source := self.sources.get(task.repo):
            command += ["--source", source]
        if self._stopped.is_set():
            raise Interrupted("the review server ended; send it back again to go on")
        report(f"{stage} …")
        began = datetime.now(UTC)
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="backslashreplace",
            env=environment(*_NEEDS, *_MODELS.get(stage, ()), COLUMNS="200", NO_COLOR="1"),
            start_new_session=True,
        ) as process:
            self._process = process
            last = _follow(process, stage, report)
        self._process = None
        if self._stopped.is_set():
            raise Interrupted("the review server ended; send it back again to go on")
        if process.returncode:
            spent = (datetime.now(UTC) - began).total_seconds()
            raise PerfquarryError(f"perfquarry {stage} ended with {process.returncode} after {spent:.0f} s: {last}")


def _follow(process: subprocess.Popen[str], stage: str, report: Callable[[str], None]) -> str:
    """Passes the stage's own lines on; returns the last line of all."""
    assert process.stdout
    last = ""
    for line in process.stdout:
        if text := line.strip():
            last = text
            if text.startswith(stage):
                report(text)
    return last
