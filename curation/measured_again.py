"""Published tasks measured again on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from rich.console import RenderableType

from perfquarry.curation.published import MadeTask, PublishedTasks
from perfquarry.curation.revalidation import judge_again, outcome, share_that_holds, workloads_of
from perfquarry.curation.sessions import settled
from perfquarry.curation.settings import MakingSettings
from perfquarry.data.errors import EnvironmentFailed, GitFailed, RunFailed
from perfquarry.data.figures import times
from perfquarry.data.home import Home
from perfquarry.data.output import Listing, Report
from perfquarry.data.records import Revalidation, Stamp, Task, content_id
from perfquarry.data.store import TableStore
from perfquarry.harness.measuring.machine import measurement_lock
from perfquarry.harness.measuring.schedule import run_session

STAGE_VERSION = "1"


def revalidate(
    home: Home,
    source: str,
    clone_from: str | None,
    only: Sequence[str],
    settings: MakingSettings,
    say: Callable[[str], None],
) -> Report:
    """Measures the tasks of a release or a home again, a row each, and says how many hold.

    Tasks that cannot be made runnable here are listed, and are no rows: nothing is known of them. They are the
    report's error. The arguments are those of `PublishedTasks.open`; `say` receives the outcome of each task.

    Raises:
        InputError: no such tasks, or one clone for several repositories.
    """
    published = PublishedTasks.open(home, source, clone_from, only, settings)
    tasks, store = published.tasks, TableStore(home.tables)
    run_id = content_id("revalidation", source, datetime.now(UTC).isoformat())
    rows: list[Revalidation] = []
    untried: dict[str, str] = {}
    for number, task in enumerate(tasks, 1):
        try:
            made = published.make(task)
            row = measure_again(task, made, settings, run_id)
        except (EnvironmentFailed, GitFailed) as error:
            untried[task.task_id] = str(error)
            continue
        store.append([row])
        rows.append(row)
        say(f"{number}/{len(tasks)} {task.task_id}: {outcome(row)}")
    share = share_that_holds(rows) if rows else None
    held = sum(row.status == "kept" for row in rows)
    facts: dict[str, Any] = {"tasks": len(rows), "held": held, **held_in_part(rows), "untried": untried}
    facts |= {"share": dict(zip(("share", "low", "high"), share, strict=True)) if share else None}
    facts |= {"rows": [row.model_dump(mode="json", exclude={"durations"}) for row in rows]}
    report = Report(facts, _shown(rows, share, held))
    if untried:
        first, why = next(iter(untried.items()))
        report.error = RunFailed(f"{len(untried)} of {len(tasks)} tasks could not be tried here; {first}: {why}")
    return report


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


def _shown(
    rows: Sequence[Revalidation], share: tuple[float, float, float] | None, held: int
) -> Iterator[RenderableType]:
    names = (">published", ">95 % interval", ">here", ">95 % interval", ">load", "outcome")
    table = Listing(("task", *names))
    for row in rows:
        table.add(
            row.task_id,
            times(row.published_speedup),
            f"[{times(row.published_low)}, {times(row.published_high)}]",
            times(row.speedup),
            f"[{times(row.low)}, {times(row.high)}]",
            f"{row.foreign_load:.2f}",
            outcome(row),
        )
    yield table
    if share:
        part, low, high = (100 * value for value in share)
        machine = rows[-1].machine
        some = held_in_part(rows)
        yield (
            f"\n{held} of {len(rows)} tasks hold: {part:.0f} % (95 % interval {low:.0f} to {high:.0f} %) "
            f"on {machine.cpu}, {machine.cores} cores, sandbox {machine.sandbox}\n"
            f"{some['tasks_in_part']} of {len(rows)} hold with at least one workload; "
            f"{some['workloads_held']} of {some['workloads']} workloads hold"
        )
