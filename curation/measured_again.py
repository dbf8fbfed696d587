"""Published tasks measured again on this machine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from perfquarry.curation.published import MadeTask
from perfquarry.curation.revalidation import judge_again, workloads_of
from perfquarry.curation.sessions import settled
from perfquarry.curation.settings import MakingSettings
from perfquarry.data.records import Revalidation, Stamp, Task
from perfquarry.harness.measuring.machine import measurement_lock
from perfquarry.harness.measuring.schedule import run_session

STAGE_VERSION = "1"


def measure_again(task: Task, made: MadeTask, settings: MakingSettings, run_id: str) -> Revalidation:
    """One more session of a task that was made here, and what it shows."""
    config = settings.select.config_hash(settings.measure.config_hash())
    stamp = Stamp(repo=task.repo, stage_version=STAGE_VERSION, config_hash=config)
    workloads = workloads_of(task, stamp)
    with measurement_lock() as core:
        begin = time.monotonic()
        timings = run_session(  # one: nothing is selected by it, so nothing needs confirming
            task.change_id,
            workloads,
            made.base,
            made.head,
            made.runtime.prober,
            settings.measure,
            stamp,
            made.runtime.machine,
            session=1,
            core=core,
            stop=partial(settled, settings=settings.select),
        )
        seconds = time.monotonic() - begin
    return judge_again(task, timings, settings.select, stamp, run_id, made.python, seconds)


def held_in_part(rows: Sequence[Revalidation]) -> dict[str, int]:
    """What the count of tasks that hold whole leaves out."""
    held = [[one.held for one in row.workloads] for row in rows]
    return {
        "tasks_in_part": sum(map(any, held)),
        "workloads": sum(map(len, held)),
        "workloads_held": sum(map(sum, held)),
    }
