"""The commands that only read: tasks, show, funnel, export, stability."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table

from perfquarry.curation import Format, Mode
from perfquarry.curation.counts import counts_of, ratios_of
from perfquarry.curation.formats import export as export_tasks
from perfquarry.curation.in_force import accepted_tasks, newest_tasks
from perfquarry.curation.samples import analyse, read_cases
from perfquarry.data import funnel as funnels
from perfquarry.data.errors import InputError, UnknownTask
from perfquarry.data.home import Home
from perfquarry.data.records import Change, Evidence, Task, Timing, Workload
from perfquarry.data.store import TableStore
from perfquarry.flows.count_lines import count_lines, facts_of
from perfquarry.flows.names import repository_of
from perfquarry.flows.reports import (
    evidence_panel,
    explain,
    funnel_table,
    seconds,
    sources_table,
    task_head,
    task_row,
    tasks_table,
    times,
)


def _store(home: Home) -> TableStore:
    return TableStore(home.tables)


def _known(home: Home, repo: str) -> tuple[TableStore, str]:
    """The tables and the repository's name in them.

    Raises:
        InputError: the tables hold nothing of it.
    """
    store, name = _store(home), repository_of(home, repo).name
    if name not in store.repositories(Change):
        raise InputError(f"nothing of {name} in {home.tables}: run `perfquarry curate {repo}` first")
    return store, name


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, default=str))


def tasks(home: Home, repo: str, *, as_json: bool) -> None:
    """Accepted tasks of a repository."""
    store, name = _known(home, repo)
    accepted = accepted_tasks(store, name)
    if as_json:
        _print_json([task_row(task) for task in accepted])
    else:
        Console().print(tasks_table(accepted, ratios_of(store, name, accepted)))


def funnel(home: Home, repo: str, *, as_json: bool) -> None:
    """Funnel of a repository."""
    store, name = _known(home, repo)
    counts = funnels.funnel(store, name)
    if as_json:
        _print_json(counts.as_json())
    else:
        console = Console()
        console.print(funnel_table(counts))
        explain(console, counts.reasons)


def workloads(home: Home, repo: str, *, as_json: bool) -> None:
    """Workloads of a repository by source."""
    store, name = _known(home, repo)
    counts = funnels.by_source(store, name)
    if as_json:
        _print_json([count.model_dump() for count in counts])
    else:
        console = Console()
        console.print(sources_table(name, counts))
        explain(console, {reason for count in counts for reason in [*count.rejected, *count.without]})


def find_task(home: Home, task_id: str) -> tuple[TableStore, Task]:
    """The tables, and the task whose id or head begins so.

    Raises:
        UnknownTask: none or several do.
    """
    store = _store(home)
    found = [
        task
        for repo in store.repositories(Task)
        for task in newest_tasks(store, repo)
        if task.task_id.startswith(task_id) or task.head_sha.startswith(task_id)
    ]
    exact = [task for task in found if task.task_id == task_id]
    if len(exact or found) != 1:
        near = ", ".join(task.task_id for task in found[:5])
        raise UnknownTask(
            f"{len(found)} tasks begin with {task_id!r}: {near}"
            if found
            else f"no task {task_id!r} in {home.tables}: `perfquarry tasks REPO` lists them"
        )
    return store, (exact or found)[0]


def show(home: Home, task_id: str, *, as_json: bool) -> None:
    """One task, accepted or not, found by the start of its id or head."""
    store, task = find_task(home, task_id)
    evidence = list(
        store.records(Evidence, task.repo, config_hash=task.config_hash, where=pc.field("change_id") == task.change_id)
    )
    counts = counts_of(store, task.repo)
    if as_json:
        kept = {row.workload_id for row in evidence if row.status == "kept"}
        kept |= {one.workload_id for one in task.workloads}
        about = [row for row in counts.values() if row.change_id == task.change_id]
        _print_json(
            {
                "task": task.model_dump(mode="json"),
                "evidence": [row.model_dump(mode="json") for row in evidence],
                "counts": [facts_of(row, faster=row.workload_id in kept) for row in about],
            }
        )
        return
    timings = list(store.records(Timing, task.repo, where=pc.field("change_id") == task.change_id))
    names = _names(store, task)
    console = Console()
    console.print(task_head(task))
    for row in sorted(evidence, key=lambda one: (one.status != "kept", -(one.speedup or 0))):
        own = [timing for timing in timings if timing.workload_id == row.workload_id]
        console.print()
        console.print(evidence_panel(row, names.get(row.workload_id, row.workload_id), own))
        if row.workload_id in counts:
            for line in count_lines(counts[row.workload_id], row):
                console.print(line, highlight=False, soft_wrap=True)


def _names(store: TableStore, task: Task) -> dict[str, str]:
    """What to call each workload of a task's change."""
    rows = store.records(Workload, task.repo, where=pc.field("change_id") == task.change_id)
    return {row.workload_id: f"{row.node} ({row.source}): {row.detail}" if row.is_script else row.node for row in rows}


def export(
    home: Home,
    repo: str,
    to: Path,
    form: Format,
    *,
    as_json: bool,
    network: str = "",
    base_image: str = "",
    reviews: Path | None = None,
) -> None:
    """Accepted tasks as one Parquet file, or as folders for Harbor."""
    store, name = _known(home, repo)
    accepted = accepted_tasks(store, name)
    if form == "harbor":
        from perfquarry.curation.harbor import Network
        from perfquarry.curation.release.selection import read_reviews
        from perfquarry.flows import harbor  # needs the harness, which the other formats do not

        mode: Network = "public" if network == "public" else "no-network"
        decisions = read_reviews(reviews) if reviews else {}
        folders, left_out = harbor.export(home, store, accepted, to, base_image, mode, decisions)
        earlier = sorted({file.parent.name for file in to.glob("*/task.toml")} - {folder.name for folder in folders})
        if as_json:
            names = [folder.name for folder in folders]
            facts = {"folder": str(to), "format": form, "tasks": names, "left_out": left_out, "earlier": earlier}
            _print_json(facts)
            return
        say = Console(highlight=False, markup=False, soft_wrap=True).print
        say(f"{len(folders)} task(s) written to {to}")
        for task_id, why in left_out.items():
            say(f"left out: {task_id}: {why}")
        for folder in earlier:
            say(f"{to / folder} is of an earlier export: remove it, or `harbor run` runs it, too")
        return
    rows = export_tasks(accepted, to, form)
    if as_json:
        _print_json({"file": str(to), "format": form, "rows": rows})
    else:
        others = f"; {len(accepted) - rows} without unit tests left out" if rows < len(accepted) else ""
        Console().print(f"{rows} task(s) written to {to}{others}", highlight=False, markup=False)


def stability(file: Path, mode: Mode, *, as_json: bool) -> None:
    """The stability filters on anybody's timings."""
    results = analyse(read_cases(file), mode)
    if as_json:
        _print_json({"results": [result.model_dump(mode="json") for result in results]})
        return
    table = Table(title=f"{len(results)} case(s), mode {mode}", title_justify="left")
    for name in ("case", "base median", "head median", "kept", "speedup", "95 % interval", "δ", "p"):
        table.add_column(name, justify="right")
    for number, result in enumerate(results):
        table.add_row(
            str(number),
            seconds(median(result.base_kept)),
            seconds(median(result.head_kept)),
            f"{len(result.base_kept)}, {len(result.head_kept)}",
            times(result.speedup),
            f"\\[{times(result.low)}, {times(result.high)}]",
            f"{result.delta:.3f}",
            "–" if result.p_value is None else f"{result.p_value:.3g}",
        )
    Console().print(table)
