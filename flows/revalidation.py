"""`perfquarry revalidate`: published tasks measured again on this machine, from their recipes."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from curation.release.folder import read_tasks as read_released
from curation.release.manifest import FILE
from curation.release.selection import as_task
from curation.revalidation import judge_again, outcome, read_tasks, share_that_holds, workloads_of
from curation.sessions import look
from data.errors import EnvironmentFailed, GitFailed, InputError
from data.home import Home
from data.records import Machine, ReleasedTask, Revalidation, Stamp, Task, content_id
from data.registry import names
from data.settings import Settings
from data.store import TableStore
from flows.decisions import newest_tasks
from flows.gold import GoldRuns
from flows.options import Options
from flows.reports import times
from flows.run import Run
from flows.runner import RunFailed
from harness.contracts import BuiltSide, Prober
from harness.machine import measurement_lock
from harness.remade import builds_of_recipe

STAGE_VERSION = "1"


def revalidate(
    home: Home, source: str, clone_from: str | None, only: Sequence[str], settings: Settings, *, as_json: bool
) -> None:
    """Measures the tasks of a release or a home again, a row each, and shows how many hold.

    Tasks that cannot be made runnable here are told, and are no rows: nothing is known of them.

    Raises:
        InputError: no such tasks, or one clone for several repositories.
        RunFailed: some tasks could not be tried.
    """
    released = _released(source)
    every = [as_task(row) for row in released.values()] or _tasks(home, source)
    tasks = [task for task in every if not only or task.task_id.startswith(tuple(only))]
    if not tasks:
        raise InputError(f"no task of {source} begins with {', '.join(only)}")
    if clone_from and released:
        raise InputError("--source is of no use: a release holds the files of its tasks")
    if clone_from and len({task.repo for task in tasks}) > 1:
        raise InputError("--source is one repository, and these tasks are of several: give --tasks of one of them")
    gold = GoldRuns(Path(source).expanduser(), home, settings)
    console, store = Console(stderr=as_json), TableStore(home.tables)
    run_id = content_id("revalidation", source, datetime.now(UTC).isoformat())
    rows: list[Revalidation] = []
    untried: dict[str, str] = {}
    for number, task in enumerate(tasks, 1):
        row_of_release = released.get(task.task_id)
        try:
            made = _of_release(gold, row_of_release) if row_of_release else _of_recipe(home, task, clone_from, settings)
            row = _again(task, made, settings, run_id)
        except (EnvironmentFailed, GitFailed) as error:
            untried[task.task_id] = str(error)
            continue
        store.append([row])
        rows.append(row)
        console.print(f"{number}/{len(tasks)} {task.task_id}: {outcome(row)}", highlight=False, markup=False)
    _report(rows, untried, as_json=as_json)
    if untried:
        first, why = next(iter(untried.items()))
        raise RunFailed(f"{len(untried)} of {len(tasks)} tasks could not be tried here; {first}: {why}")


def _released(source: str) -> dict[str, ReleasedTask]:
    """The tasks of a release by id; none where the source is no release's folder."""
    folder = Path(source).expanduser()
    return {row.task_id: row for row in read_released(folder)} if (folder / FILE).is_file() else {}


def _tasks(home: Home, source: str) -> list[Task]:
    path = Path(source).expanduser()
    if path.is_file() or (path.is_dir() and next(path.rglob("*.parquet"), None)):
        return read_tasks(path)
    store = TableStore(home.tables)
    kept = [task for task in newest_tasks(store, source) if task.status == "kept"]
    if not kept:
        raise InputError(f"{source!r} is no release's folder, and {home.tables} has no tasks of such a repository")
    return kept


@dataclass(frozen=True)
class _Made:
    """A task that can be run here."""

    base: BuiltSide
    head: BuiltSide
    prober: Prober
    machine: Machine
    python: str


def _of_release(gold: GoldRuns, row: ReleasedTask) -> _Made:
    """From the release alone, as its gate makes it."""
    return _Made(*gold.sides(row), gold.prober, gold.machine, row.recipe.python)


def _of_recipe(home: Home, task: Task, clone_from: str | None, settings: Settings) -> _Made:
    """From a clone of the repository and the recipe in the task."""
    run = Run.open(
        Options(
            repo=repository_of(task, clone_from), source=clone_from, home=str(home.root), jobs=1, settings=settings
        ).model_dump_json()
    )
    builds = builds_of_recipe(
        home,
        run.clone,
        run.repository,
        _stamp(task, settings),
        task.change_id,
        (task.base_sha, task.head_sha),
        task.python,
        task.requirements,
    )
    return _Made(*run.builder.reopen(builds), run.prober, run.machine, builds[0].python)


def repository_of(task: Task, clone_from: str | None) -> str:
    """What names the task's repository: a name of the user's own is enough where its clone is given.

    Raises:
        InputError: nothing tells where it is.
    """
    if clone_from or task.repo in names():
        return task.repo
    if not task.url:
        raise InputError(f"nothing tells where the repository {task.repo!r} is: give its clone, --source PATH|URL")
    return task.url


def _again(task: Task, made: _Made, settings: Settings, run_id: str) -> Revalidation:
    stamp = _stamp(task, settings)
    workloads = workloads_of(task, stamp)
    with measurement_lock() as core:
        begin = time.monotonic()
        timings = look(
            task.change_id,
            workloads,
            made.base,
            made.head,
            made.prober,
            made.machine,
            settings.measure,
            settings.select,
            stamp,
            core=core,
        )
        seconds = time.monotonic() - begin
    return judge_again(task, timings, settings.select, stamp, run_id, made.python, seconds)


def _stamp(task: Task, settings: Settings) -> Stamp:
    config = settings.select.config_hash(settings.measure.config_hash())
    return Stamp(repo=task.repo, stage_version=STAGE_VERSION, config_hash=config)


def _report(rows: Sequence[Revalidation], untried: dict[str, str], *, as_json: bool) -> None:
    share = share_that_holds(rows) if rows else None
    if as_json:
        summary = dict(zip(("share", "low", "high"), share, strict=True)) if share else None
        held = sum(row.status == "kept" for row in rows)
        facts = {"tasks": len(rows), "held": held, "share": summary, **_partly(rows), "untried": untried}
        print(json.dumps({**facts, "rows": [row.model_dump(mode="json", exclude={"durations"}) for row in rows]}))
        return
    table = Table(box=None, title_justify="left")
    for name in ("published", "95 % interval", "here", "95 % interval", "load", "task and outcome"):
        table.add_column(name, justify="left" if name.startswith("task") else "right", overflow="fold")
    for row in rows:
        table.add_row(
            times(row.published_speedup),
            f"\\[{times(row.published_low)}, {times(row.published_high)}]",
            times(row.speedup),
            f"\\[{times(row.low)}, {times(row.high)}]",
            f"{row.foreign_load:.2f}",
            f"{row.task_id}\n{outcome(row)}",
        )
    console = Console()
    console.print(table)
    if share:
        held = sum(row.status == "kept" for row in rows)
        part, low, high = (100 * value for value in share)
        machine = rows[-1].machine
        console.print(
            f"\n{held} of {len(rows)} tasks hold: {part:.0f} % (95 % interval {low:.0f} to {high:.0f} %) "
            f"on {machine.cpu}, {machine.cores} cores, sandbox {machine.sandbox}",
            highlight=False,
        )
        some = _partly(rows)
        console.print(
            f"{some['tasks_in_part']} of {len(rows)} hold with at least one workload; "
            f"{some['workloads_held']} of {some['workloads']} workloads hold",
            highlight=False,
        )


def _partly(rows: Sequence[Revalidation]) -> dict[str, int]:
    """What the count of tasks that hold whole leaves out."""
    held = [[one.held for one in row.workloads] for row in rows]
    return {
        "tasks_in_part": sum(map(any, held)),
        "workloads": sum(map(len, held)),
        "workloads_held": sum(map(sum, held)),
    }
