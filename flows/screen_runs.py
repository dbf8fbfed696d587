"""`perfquarry screen --run`: the checks of tasks that run code, one task after the other."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.compute as pc

from perfquarry.curation.screening.found import rows_of, screened
from perfquarry.curation.screening.runs import CHECKS, try_out
from perfquarry.data.records import Build, Task
from perfquarry.flows.display import current, waiting_for_core
from perfquarry.flows.run import Run
from perfquarry.flows.runner import failed, run_stage
from perfquarry.flows.screening import guards_of, looked_at, screened_tasks, stamp_of, summary
from perfquarry.flows.stages import Batch, Stage
from perfquarry.harness.measuring.machine import measurement_lock


def run_checks(run: Run, tasks: Sequence[Task]) -> None:
    """Does what is not done yet of the tasks; each is written when it is done.

    Raises:
        RunFailed: some tasks could not be run here.
    """
    by_id = {task.task_id: task for task in tasks}

    def todo(run: Run) -> list[Batch]:
        return [(name,) for name in by_id if name not in screened_tasks(run, "run")]

    def work(run: Run, batch: Batch) -> None:
        for name in batch:
            _check(run, by_id[name])

    failures = run_stage(run, Stage("screen-run", todo, work, alone=True, summary=summary, keys="task"))
    if failures:
        raise failed(failures)


def _check(run: Run, task: Task) -> None:
    builds = list(run.store.records(Build, run.name, where=pc.field("change_id") == task.change_id))
    newest = {build.side: build for build in builds if build.status == "kept"}
    pair = [newest[side] for side in ("base", "head") if side in newest]
    base, _ = run.builder.reopen(pair)
    tools = run.tools(pair)["base"]
    current().note(task.title)
    lock = measurement_lock(on_wait=waiting_for_core)
    settings, guards = run.options.settings.screen, guards_of(run, task)
    found = try_out(task, base, run.prober, settings, tools, lock, guards)
    names = [(one.check, one.subject) for one in found]
    made = screened("run", CHECKS, of=looked_at(run, task), found=names)
    run.store.append(rows_of(task, [*found, made], stamp_of(run)))
