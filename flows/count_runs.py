"""The stage `count`: instructions of the workloads of accepted tasks, of real repositories, where valgrind is."""

from __future__ import annotations

import platform
from collections.abc import Iterable

from perfquarry.curation.counts import counted, row_of, workloads_of
from perfquarry.curation.in_force import accepted_tasks
from perfquarry.data.display import current
from perfquarry.data.errors import EnvironmentFailed
from perfquarry.data.records import Count, Task, node_of
from perfquarry.flows.run import Run
from perfquarry.harness.measuring.callgrind import REMEDY, Callgrind
from perfquarry.harness.measuring.counting import Counter


def todo(run: Run) -> list[tuple[str, ...]]:
    """Accepted tasks with workloads that have no row yet; none of the demo, which is to be ready within minutes."""
    return uncounted(run, accepted_tasks(run.store, run.name)) if run.name != "demo" and Callgrind.find() else []


def uncounted(run: Run, tasks: Iterable[Task]) -> list[tuple[str, ...]]:
    """Those of the tasks with workloads that have no row yet, each a batch."""
    done = counted(run)
    return [(task.task_id,) for task in tasks if workloads_of(run, task).keys() - done]


def count(run: Run, names: tuple[str, ...]) -> None:
    """Counts accepted tasks, by their ids."""
    for task in accepted_tasks(run.store, run.name):
        if task.task_id in names:
            _count(run, task)


def summary(run: Run) -> str:
    """'12 workloads counted, 1 could not be'."""
    rows = list(run.store.records(Count, run.name, **run.where("count")))
    lost = sum(row.status != "kept" for row in rows)
    return f"{len(rows) - lost} workloads counted, {lost} could not be"


def _count(run: Run, task: Task) -> None:
    callgrind = Callgrind.find()
    if callgrind is None:  # it was there when the stage began
        raise EnvironmentFailed(f"valgrind is gone: {REMEDY}")
    base, head = run.builder.reopen(run.builds_of(task))
    current().note(task.title)
    done = counted(run)
    left = {key: value for key, value in workloads_of(run, task).items() if key not in done}
    ids = {node_of(source, code, key): key for key, (source, code) in left.items()}
    scripts = {node: left[key][1] for node, key in ids.items() if left[key][0] != "unit-test"}
    counter = Counter(run.runtime.prober, callgrind, base, head, run.options.settings.count, task.oracle_targets)
    pairs = counter.count([node for node in ids if node not in scripts], scripts)
    facts = {"valgrind": callgrind.version, "cpu": run.runtime.machine.cpu, "libc": " ".join(platform.libc_ver())}
    run.store.append(
        [
            row_of(
                run.stamp("count"),
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
