"""Published tasks measured again: does each still hold?"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import harmonic_mean, median
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
import scipy
from pydantic import ValidationError

from perfquarry.curation.blocks import MeasuredWorkload, durations_of, runs_of
from perfquarry.curation.settings import SelectSettings
from perfquarry.curation.summary import excluded, lasting, summarise
from perfquarry.data.errors import InputError
from perfquarry.data.records import Reason, Revalidation, SessionStatistics, Stamp, Task, Timing, Workload
from perfquarry.data.records.inputs import validation_message
from perfquarry.data.records.release import InputTask
from perfquarry.data.records.revalidation import RevalidatedWorkload
from perfquarry.data.records.task import TaskWorkload
from perfquarry.data.records.workload import Source
from perfquarry.data.schema import from_table

MOSTLY = 0.5
"""Share of disturbed processes above which a row is reported as of little worth."""
_NEEDED = frozenset({"task_id", "change_id", "base_sha", "head_sha", "python", "requirements", "workloads"})


def read_tasks(path: Path) -> list[Task]:
    """Kept tasks of a Parquet file with the columns of the table `tasks`, or of those in a folder.

    Raises:
        InputError: there is none, it cannot be read, or a task holds what could do harm here.
    """
    files = [path] if path.is_file() else sorted(path.glob("data/*.parquet")) or sorted(path.rglob("*.parquet"))
    found: dict[str, Task] = {}
    try:
        for file in files:
            columns = set(pq.read_schema(file).names)
            if columns >= _NEEDED:
                known = [name for name in Task.model_fields if name in columns]
                rows = from_table(Task, pq.ParquetFile(file).read(columns=known))
                found |= {row.task_id: _checked(row, file) for row in rows if row.status == "kept"}
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"cannot read the tasks in {path}: {error}") from error
    if not found:
        raise InputError(f"{path} holds no tasks: give a release's folder, or a Parquet file with the table `tasks`")
    return list(found.values())


def _checked(row: Task, file: Path) -> Task:
    """The row, if it names nothing that could do harm here."""
    try:
        InputTask.model_validate(row.model_dump())
    except ValidationError as error:
        raise InputError(f"{file}: {row.task_id[:100]!r} is refused: {validation_message(error)}") from error
    return row


def workloads_of(task: Task, stamp: Stamp) -> list[Workload]:
    """The task's workloads as rows that can be measured."""
    return [
        Workload(
            **stamp.fields(),
            workload_id=one.workload_id,
            change_id=task.change_id,
            source=cast(Source, one.source),
            code=one.code,
            role=one.role,
        )
        for one in task.workloads
    ]


def judge_again(
    task: Task,
    timings: Sequence[Timing],
    settings: SelectSettings,
    stamp: Stamp,
    run_id: str,
    python: str,
    seconds: float,
) -> Revalidation:
    """What a second look at a published task shows.

    A workload holds when the interval of its new session lies above 1, and the interval for any occasion meets the
    published one. One whose interval is too wide to say is undecided: it does not hold, and the reason says so.

    Raises:
        InputError: there are no timings.
    """
    if not timings:
        raise InputError(f"nothing was measured of {task.task_id}: its base fails before the first pair")
    runs = {run.workload_id: run for run in runs_of(timings)}
    again = [_workload(one, runs.get(one.workload_id), settings) for one in task.workloads]
    nodes = {one.workload_id: one.node for one in task.workloads}
    lost = next((one for one in again if not one.held), None)
    return Revalidation(
        **stamp.fields(),
        status="rejected" if lost else "kept",
        reason=lost.reason if lost else None,
        task_id=task.task_id,
        change_id=task.change_id,
        run_id=run_id,
        published_speedup=task.speedup,
        published_low=task.low,
        published_high=task.high,
        speedup=_harmonic([one.speedup for one in again]),
        low=_harmonic([one.low for one in again]),
        high=_harmonic([one.high for one in again]),
        workloads=again,
        durations=json.dumps(durations_of({nodes[name]: run for name, run in runs.items()})),
        foreign_load=median(row.foreign_load for row in timings),
        disturbed=sum(row.disturbed for row in timings) / len(timings),
        python=python,
        machine=timings[-1].machine,
        seconds=seconds,
    )


def share_that_holds(rows: Sequence[Revalidation]) -> tuple[float, float, float]:
    """Share of the tasks that hold, and its exact 95 % interval (Clopper-Pearson).

    Raises:
        InputError: there are no rows.
    """
    if not rows:
        raise InputError("no task was measured again")
    held = sum(row.status == "kept" for row in rows)
    interval = scipy.stats.binomtest(held, len(rows)).proportion_ci(0.95, method="exact")
    return held / len(rows), float(interval.low), float(interval.high)


def no_longer_held(rows: Iterable[Revalidation], tasks: Iterable[Task]) -> dict[str, str]:
    """By task_id why it would be no task today: on some machine none of its workloads would be accepted once more.

    Of each machine the newest row counts. Rows that are older than the task's own timings, and those that others
    disturbed for the most part, say nothing (decision 0032).
    """
    measured = {task.task_id: task.measured_at or task.created_at for task in tasks}
    newest = {
        (row.task_id, row.machine.machine_id): row
        for row in sorted(rows, key=lambda row: row.created_at)
        if row.task_id in measured and row.created_at > measured[row.task_id] and row.disturbed <= MOSTLY
    }
    return {
        row.task_id: f"measured again on {row.created_at:%Y-%m-%d}, none of its workloads holds ({row.reason})"
        for row in newest.values()
        if not any(one.held for one in row.workloads)
    }


def outcome(row: Revalidation) -> str:
    """What a row says, in words; also a speedup that differs from the published one, and what others disturbed."""
    said = "holds" if row.status == "kept" else f"does not hold: {row.reason}"
    if None not in (row.low, row.high, row.published_low, row.published_high):
        low, high = cast(float, row.low), cast(float, row.high)
        if low > cast(float, row.published_high) or high < cast(float, row.published_low):
            said += "; the speedup is another one here"
    if row.disturbed > MOSTLY:
        said += "; others disturbed most of it: measure again on a quiet machine"
    return said


def _workload(published: TaskWorkload, run: MeasuredWorkload | None, settings: SelectSettings) -> RevalidatedWorkload:
    session = run.sessions[-1] if run else None
    here = summarise(session, settings) if session and not session.outcomes else None
    found = RevalidatedWorkload(
        workload_id=published.workload_id,
        node=published.node,
        held=False,
        reason=Reason.WORKLOAD_FAILED if session and session.outcomes else Reason.TOO_FEW_SAMPLES,
        published=published.speedup,
    )
    if here is None:
        return found
    low, high = lasting(here, settings)
    lost = _lost(published, here, settings)
    figures = {"speedup": here.speedup, "low": low, "high": high, "delta": here.delta}
    return found.model_copy(update={"held": lost is None, "reason": lost, **figures})


def _lost(published: TaskWorkload, here: SessionStatistics, settings: SelectSettings) -> Reason | None:
    """Why a workload does not hold; None when it does."""
    if here.low <= 1:
        return Reason.NO_GAIN if excluded(here, settings) else Reason.UNDECIDED
    low, high = lasting(here, settings)
    return None if low <= published.high and high >= published.low else Reason.OTHER_SPEEDUP


def _harmonic(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return harmonic_mean(known) if known and len(known) == len(values) else None
