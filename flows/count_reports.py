"""What is shown of instruction counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.text import Text

from perfquarry.curation.counts import change_count, counts_of, label_of, workloads_of
from perfquarry.data.errors import InputError
from perfquarry.data.figures import times
from perfquarry.data.records import Count, Task, node_of
from perfquarry.flows.count_runs import uncounted
from perfquarry.flows.display import showing
from perfquarry.flows.options import Options
from perfquarry.flows.output import Listing, put
from perfquarry.flows.runner import run_alone
from perfquarry.flows.screen_reports import opened, wanted
from perfquarry.flows.stages import BY_NAME
from perfquarry.flows.task_reports import count_facts
from perfquarry.flows.work import claiming
from perfquarry.harness.measuring.callgrind import REMEDY, Callgrind


def report(options: Options, *, as_json: bool) -> None:
    """Counts what was not counted yet, and shows the counts of the tasks.

    Raises:
        InputError: the repository has no task, or there is no valgrind.
        RunFailed: some tasks could not be counted.
    """
    run, console = opened(options, as_json)
    tasks = wanted(run)
    if uncounted(run, tasks) and Callgrind.find() is None:
        raise InputError(f"instructions are counted by valgrind, which is not installed here: {REMEDY}")
    with claiming(run, ["count"], console), showing(console, silent=as_json):
        run_alone(run, replace(BY_NAME["count"], todo=lambda run: uncounted(run, tasks)))
    counts = counts_of(run.store, run.name)
    known = {task.task_id: workloads_of(run, task) for task in tasks}
    own = {name: [counts[key] for key in workloads if key in counts] for name, workloads in known.items()}
    nodes = {key: node_of(*one, key) for workloads in known.values() for key, one in workloads.items()}
    put({"tasks": [_facts(task, own[task.task_id]) for task in tasks]}, [_table(tasks, own, nodes)], as_json=as_json)


def _facts(task: Task, rows: Sequence[Count]) -> dict[str, Any]:
    change = change_count(rows)
    accepted = {one.workload_id for one in task.workloads}
    return {
        "task_id": task.task_id,
        "ratio": change.ratio,
        "touched": change.touched,
        "counts": [count_facts(row, faster=row.workload_id in accepted) for row in rows],
    }


def _table(tasks: Sequence[Task], own: Mapping[str, Sequence[Count]], nodes: Mapping[str, str]) -> Listing:
    table = Listing(("workload", ">clock", ">instructions", ">seeds' range"), "Instructions, base over head")
    for task in tasks:
        change = change_count(own[task.task_id])
        touched = f"{change.touched} of {change.counted} workloads touched"
        table.add(
            Text.assemble((task.task_id, "bold"), "  ", (touched, "dim")), times(task.speedup), times(change.ratio), ""
        )
        named = {one.workload_id: one for one in task.workloads}
        for row in own[task.task_id]:
            known = named.get(row.workload_id)
            label = label_of(row, faster=known is not None)
            table.add(
                Text.assemble(nodes[row.workload_id], "  ", (label or row.detail[:120], "dim")),
                times(known.speedup) if known else "not faster",
                f"{row.ratio:.3f}×" if row.ratio else "–",
                f"{row.low:.3f}–{row.high:.3f}" if row.low and row.high else "",
            )
    return table
