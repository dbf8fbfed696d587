"""The commands that only read: tasks, funnel, workloads; and how a task is found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfquarry.curation.in_force import accepted_tasks, newest_tasks
from perfquarry.data import funnel as funnels
from perfquarry.data.errors import InputError, UnknownTask
from perfquarry.data.home import Home
from perfquarry.data.records import Change, Task
from perfquarry.data.store import TableStore
from perfquarry.flows.names import repository_of
from perfquarry.flows.output import print_json, show

if TYPE_CHECKING:
    from perfquarry.data.funnel import Funnel


def known(home: Home, repo: str) -> tuple[TableStore, str]:
    """The tables and the repository's name in them.

    Raises:
        InputError: the tables hold nothing of it.
    """
    store, name = TableStore(home.tables), repository_of(home, repo).name
    if name not in store.repositories(Change):
        raise InputError(f"nothing of {name} in {home.tables}: run `perfquarry curate {repo}` first")
    return store, name


def tasks(home: Home, repo: str, *, as_json: bool) -> None:
    """Accepted tasks of a repository."""
    from perfquarry.curation.intents import curated, intents_of, with_curators
    from perfquarry.flows.reports import task_row, tasks_table

    store, name = known(home, repo)
    accepted = accepted_tasks(store, name)
    intents = with_curators(intents_of(store, name, accepted), curated(home))
    if as_json:
        print_json([task_row(task, intents.get(task.task_id)) for task in accepted])
    elif accepted:
        from perfquarry.curation.counts import ratios_of

        show(tasks_table(accepted, ratios_of(store, name, accepted), intents))
    else:
        from perfquarry.data.funnel import funnel as count

        show(without_tasks(count(store, name), repo))


def without_tasks(counts: Funnel, repo: str) -> str:
    """What it means that there is no task, and which command comes next."""
    rejected = [(number, stage.stage, reason) for stage in counts.stages for reason, number in stage.rejected.items()]
    late = [one for one in rejected if one[1] not in ("mine", "judge")] or rejected
    pending = sum(stage.pending for stage in counts.stages)
    parts = []
    if pending:
        again = f"perfquarry curate {repo}"
        parts.append(
            f"{pending} changes wait for their next stage: `{again}` goes on (without --limit, or a larger one)"
        )
    if late:
        number, stage, reason = max(late)
        parts.append(f"most frequent reason of rejection: {reason}, at {stage} ({number} changes)")
    said = "No task was accepted" if counts.stages[-1].entered else "No task yet"
    return f"{said}. {'; '.join(parts) or 'Nothing was rejected'}. All reasons: perfquarry funnel {repo}"


def funnel(home: Home, repo: str, *, as_json: bool) -> None:
    """Funnel of a repository."""
    from perfquarry.flows.reports import funnel_table, reasons_table

    store, name = known(home, repo)
    counts = funnels.funnel(store, name)
    if as_json:
        print_json(counts.as_json())
    else:
        show(funnel_table(counts), "", reasons_table(counts.reasons))


def workloads(home: Home, repo: str, *, as_json: bool) -> None:
    """Workloads of a repository by source."""
    from perfquarry.flows.reports import reasons_table, sources_table

    store, name = known(home, repo)
    counts = funnels.by_source(store, name)
    if as_json:
        print_json(counts)
    elif not counts:
        show(
            f"no workload of {name} was tried yet: `perfquarry curate {repo}` goes on, or `perfquarry generate {repo}`"
        )
    else:
        seen = {reason for count in counts for reason in [*count.rejected, *count.without]}
        show(sources_table(name, counts), "", reasons_table(seen))


def find_task(home: Home, task_id: str) -> tuple[TableStore, Task]:
    """The tables, and the task whose id or head begins so.

    Raises:
        UnknownTask: none or several do.
    """
    store = TableStore(home.tables)
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
