"""The stage `count`: instructions of the workloads of accepted tasks, of real repositories, where valgrind is."""

from __future__ import annotations

import platform
from collections.abc import Iterable

from perfquarry.curation.counts import counted, row_of, workloads_of
from perfquarry.curation.in_force import accepted_tasks
from perfquarry.data.display import current
from perfquarry.data.errors import EnvironmentFailed
from perfquarry.data.own_rows import OwnRows
from perfquarry.data.records import Count, Task, node_of
from perfquarry.harness.building.builder import Builder
from perfquarry.harness.measuring.callgrind import REMEDY, Callgrind
from perfquarry.harness.measuring.counting import Counter
from perfquarry.harness.runtime import Runtime
from perfquarry.harness.settings import CountSettings


def todo(rows: OwnRows) -> list[tuple[str, ...]]:
    """Accepted tasks with workloads that have no row yet; none of the demo, which is to be ready within minutes."""
    return uncounted(rows, accepted_tasks(rows.store, rows.name)) if rows.name != "demo" and Callgrind.find() else []


def uncounted(rows: OwnRows, tasks: Iterable[Task]) -> list[tuple[str, ...]]:
    """Those of the tasks with workloads that have no row yet, each a batch."""
    done = counted(rows)
    return [(task.task_id,) for task in tasks if workloads_of(rows, task).keys() - done]


def summary(rows: OwnRows) -> str:
    """'12 workloads counted, 1 could not be', and what is left where the time was over."""
    found = list(rows.store.records(Count, rows.name, **rows.where("count")))
    lost, left = sum(row.status != "kept" for row in found), len(todo(rows))
    text = f"{len(found) - lost} workloads counted, {lost} could not be"
    return f"{text}; {left} task(s) left for `perfquarry count {rows.name}`" if left else text


def count(rows: OwnRows, task: Task, builder: Builder, runtime: Runtime, settings: CountSettings) -> None:
    """Counts the workloads of a task that have no row yet, and writes their rows.

    Raises:
        EnvironmentFailed: there is no valgrind.
    """
    callgrind = Callgrind.find()
    if callgrind is None:  # it was there when the stage began
        raise EnvironmentFailed(f"valgrind is gone: {REMEDY}")
    base, head = builder.reopen(rows.builds_of(task))
    current().note(task.title)
    done = counted(rows)
    left = {key: value for key, value in workloads_of(rows, task).items() if key not in done}
    ids = {node_of(source, code, key): key for key, (source, code) in left.items()}
    scripts = {node: left[key][1] for node, key in ids.items() if left[key][0] != "unit-test"}
    counter = Counter(runtime.prober, callgrind, base, head, settings, task.oracle_targets)
    pairs = counter.count([node for node in ids if node not in scripts], scripts)
    facts = {"valgrind": callgrind.version, "cpu": runtime.machine.cpu, "libc": " ".join(platform.libc_ver())}
    rows.store.append(
        [
            row_of(
                rows.stamp("count"),
                ids[pair.node],
                task.change_id,
                pair.seeds,
                pair.problem,
                functions=pair.functions,
                **facts,
            )
            for pair in pairs
        ]
    )
