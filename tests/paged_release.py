"""Releases to be shown as pages: folders of any number of synthetic tasks, as `perfquarry release` writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from perfquarry.curation.release import folder as files
from perfquarry.curation.release.manifest import Family, LeftOut, Manifest, Source
from perfquarry.curation.release.selection import ReleaseCandidate, select
from perfquarry.data.funnel import Funnel, StageCount
from perfquarry.data.records import Build, Count, FunctionCount, ReleasedTask, ReleasedTiming, Revalidation, Task
from tests.review_home import MACHINE, STAMP, count_of, task_of, timings_of

MOMENT = datetime(2026, 1, 2, tzinfo=UTC)
STAGES = ("mine", "judge", "build", "generate", "measure", "select")
REPOSITORIES = ("owner/sample", "other/library", "someone/very-long-name-of-a-repository-that-goes-on-and-on")


def candidates(number: int) -> list[ReleaseCandidate]:
    """So many accepted tasks over three repositories and several years, every second one counted."""
    made = []
    for place in range(number):
        codebase = REPOSITORIES[place % len(REPOSITORIES)]
        when = datetime(2018 + place % 5, 3, 1, tzinfo=UTC) + timedelta(hours=place)
        facts = {"codebase": codebase, "repo": codebase.rpartition("/")[2], "created_at_commit": when}
        task = task_of(place, 1.05 + 40 / (place + 3), **facts)
        functions = [
            FunctionCount(
                name=name, ir_base=9_000_000, ir_head=8_000_000, native=False, in_patch=not at, called_from_patch=False
            )
            for at, name in enumerate(["pkg/words.py::Words.count", *(f"pkg/words.py::helper_{n}" for n in range(9))])
        ]
        counts = [count_of(task, 1.5, functions)] if place % 2 == 0 else []
        made.append(candidate(task, counts))
    return made


def candidate(task: Task, counts: Sequence[Count] = ()) -> ReleaseCandidate:
    """A task with the build of its base."""
    build = Build(
        **STAMP.fields(), build_id="b", change_id=task.change_id, side="base", sha=task.base_sha[:40], python="3.11.7",
        environment_id="e" * 16, requirements=["attrs==23.1.0"], source_roots=["."],
    )  # fmt: skip
    short = {"base_sha": task.base_sha[:40], "head_sha": task.head_sha[:40]}
    tests = [one.code for one in task.workloads]
    return ReleaseCandidate(task.model_copy(update=short), build, "7" * 40, tests=tests, counts=counts)


def released(number: int) -> list[ReleasedTask]:
    """The rows of so many tasks."""
    selection = select(candidates(number), {}, {})
    assert not selection.left_out, selection.left_out[0]
    return selection.rows


def timings(rows: Sequence[ReleasedTask]) -> list[ReleasedTiming]:
    """Both sessions of each task's workload."""
    found = []
    for row in rows:
        [workload] = row.workloads
        like = task_of(0, row.speedup).model_copy(update={"workloads": [workload], "change_id": "c"})
        for timing in timings_of(like):
            facts = timing.model_dump(include=set(ReleasedTiming.model_fields))
            found.append(ReleasedTiming(task_id=row.task_id, **facts))
    return found


def revalidation(row: ReleasedTask, status: str = "kept", **fields: Any) -> Revalidation:
    """A task measured again."""
    reason = None if status == "kept" else "no_gain"
    facts: dict[str, Any] = {
        "task_id": row.task_id, "change_id": "c", "run_id": "r1", "speedup": row.speedup, "low": row.low,
        "high": row.high, "reason": reason, "python": "3.11.7", "machine": MACHINE, "seconds": 1.0,
        "created_at": MOMENT,
    }  # fmt: skip
    return Revalidation(**STAMP.fields(), status=status, **facts | fields)  # type: ignore[arg-type]


def manifest(rows: Sequence[ReleasedTask], **fields: Any) -> Manifest:
    """Facts of a release of these rows."""
    stages = [StageCount(stage=name, entered=90 - at, kept=80 - at) for at, name in enumerate(STAGES)]
    sources = [
        Source(
            repo=codebase.rpartition("/")[2], codebase=codebase, url="https://example.org/x", licence="MIT", tasks=1,
            mined_until=MOMENT, funnel=Funnel(repository=codebase, stages=stages),
            family=Family(workloads=4, accepted=2, max_p=0.01, max_confirming_p=0.01),
        )
        for codebase in REPOSITORIES
    ]  # fmt: skip
    dates = [row.created_at for row in rows]
    facts: dict[str, Any] = {
        "name": "sample-tasks", "version": "0.1.0", "made_at": MOMENT, "made_by": "perfquarry 0.1.0",
        "sources": sources, "machines": [MACHINE], "rows": {"default": len(rows)}, "accepted_by_curators": 0,
        "left_out": [LeftOut(task_id="owner__sample-0", why="rejected by a curator")],
        "oldest": min(dates, default=None), "newest": max(dates, default=None),
    }  # fmt: skip
    return Manifest(**facts | fields)


def write_release(
    to: Path,
    rows: Sequence[ReleasedTask],
    timed: Sequence[ReleasedTiming] = (),
    again: Sequence[Revalidation] = (),
    without: Mapping[str, Sequence[str]] | None = None,
    **fields: Any,
) -> Path:
    """Writes a release's tables and manifest.

    Args:
        to: its folder.
        rows: tasks.
        timed: processes.
        again: revalidations.
        without: by configuration, columns that an older perfquarry did not write; all of them: no such configuration.
        fields: of the manifest.
    """
    with files.writing(to) as partial:
        for name, table in files.tables(rows, [], timed, again).items():
            left = [column for column in table.column_names if column not in (without or {}).get(name, ())]
            if left:
                write_table(partial, name, table.select(left))
        manifest(rows, **fields).write(partial)
    return to


def write_table(folder: Path, name: str, table: pa.Table) -> None:
    """One configuration."""
    file = files.parquet_of(folder, name)
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, file)
