"""What the pages of a release are made of: its manifest and tables, and an evaluation's report where one is given."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from perfquarry.curation.blocks import Session, runs_of
from perfquarry.curation.evaluation.report import EvaluationReport, read_grades, read_report
from perfquarry.curation.plots.strips import are_ratios
from perfquarry.curation.release import folder as files
from perfquarry.curation.release.manifest import Manifest
from perfquarry.data.errors import InputError
from perfquarry.data.records import Grade, ReleasedTask, ReleasedTiming, Revalidation, Stamp, Timing
from perfquarry.data.schema import arrow_schema

_THEN = datetime.fromtimestamp(0, UTC)
"""When released rows were made is not known."""
_STAMP = Stamp(repo="", stage_version="release", config_hash="release")
_SHARED = sorted(set(ReleasedTiming.model_fields) & set(Timing.model_fields))


@dataclass(frozen=True)
class PageSource:
    """A release that is to be shown."""

    folder: Path
    manifest: Manifest
    tasks: list[ReleasedTask]
    """The largest speedup first."""
    timings: pa.Table
    revalidations: list[Revalidation]
    report: EvaluationReport | None = None
    grades: dict[str, list[Grade]] = field(default_factory=dict)
    """By task."""

    def sessions(self, task: ReleasedTask) -> dict[str, tuple[Session, ...]]:
        """Sessions of a task's workloads by workload_id, those of its own machine before others'."""
        mine = self.timings.filter(pc.equal(self.timings["task_id"], task.task_id))
        rows = files.as_records(mine, ReleasedTiming, files.parquet_of(self.folder, "timings"))
        timings = [_timing(row) for row in rows if are_ratios(row.samples)]
        runs = sorted(runs_of(timings), key=lambda run: (run.machine_id == task.machine_id, run.machine_id))
        return {run.workload_id: run.sessions for run in runs}

    def again(self, task_id: str) -> list[Revalidation]:
        """A task's revalidations, oldest first."""
        found = [row for row in self.revalidations if row.task_id == task_id]
        return sorted(found, key=lambda row: (row.created_at, row.run_id))


def read_source(folder: Path, report: Path | None = None) -> PageSource:
    """Reads a release; it may be of an older version, without the configurations that came later.

    Raises:
        InputError: the folder is no release, a file cannot be read, or the report is not of its tasks.
    """
    manifest = Manifest.read(folder)
    tasks = files.read_every_task(folder)
    if len({task.task_id.lower() for task in tasks}) < len(tasks):
        raise InputError(f"{folder} holds a task twice: no page is written; make the release again")
    timed = files.is_there(folder, "timings")
    found = _read_report(report, tasks) if report else (None, {})
    return PageSource(
        folder=folder,
        manifest=manifest,
        tasks=sorted(tasks, key=lambda task: (-task.speedup if are_ratios([task.speedup]) else 0.0, task.task_id)),
        timings=files.read_table(folder, "timings") if timed else arrow_schema(ReleasedTiming).empty_table(),
        revalidations=files.read(folder, Revalidation, "revalidations"),
        report=found[0],
        grades=found[1],
    )


def _timing(row: ReleasedTiming) -> Timing:
    """As a row of the table; where the schedule is not known, calls that fit into turns are taken as such."""
    facts = {name: getattr(row, name) for name in _SHARED} | {"schedule": row.schedule or "turns"}
    return Timing.model_construct(**_STAMP.fields(), change_id="", created_at=_THEN, **facts)


def _read_report(folder: Path, tasks: list[ReleasedTask]) -> tuple[EvaluationReport, dict[str, list[Grade]]]:
    report = read_report(folder)
    speedups = {task.task_id: task.speedup for task in tasks}
    for name, speedup in report.experts.items():
        if speedups.get(name) != speedup:
            why = "its expert has another speedup there" if name in speedups else "it is not in the release"
            raise InputError(f"{folder} is a report of another dataset ({name}: {why}): evaluate this release first")
    grades: dict[str, list[Grade]] = defaultdict(list)
    for row in sorted(read_grades(folder), key=lambda row: (row.model, row.attempt)):
        grades[row.task_id].append(row)
    return report, dict(grades)
