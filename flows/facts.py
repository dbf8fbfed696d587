"""The commands that only read: tasks, funnel, workloads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType

from perfquarry.curation.counts import ratios_of
from perfquarry.curation.in_force import accepted_tasks, funnel_in_force
from perfquarry.curation.intents import curated, intents_of, with_curators
from perfquarry.curation.names import known
from perfquarry.data import funnel as funnels
from perfquarry.data.funnel import Funnel
from perfquarry.data.home import Home
from perfquarry.data.records import Intent, Task
from perfquarry.data.store import TableStore
from perfquarry.flows.output import put
from perfquarry.flows.reports import funnel_table, reasons_table, sources_table, task_row, tasks_table


class Accepted:
    """The accepted tasks of a repository, and whether their gains were meant."""

    def __init__(self, home: Home, store: TableStore, name: str) -> None:
        self._store, self._name = store, name
        self.tasks: list[Task] = accepted_tasks(store, name)
        self._intents: dict[str, Intent] = with_curators(intents_of(store, name, self.tasks), curated(home))

    def rows(self) -> list[dict[str, Any]]:
        """For JSON."""
        return [task_row(task, self._intents.get(task.task_id)) for task in self.tasks]

    def table(self) -> RenderableType:
        """For people."""
        return tasks_table(self.tasks, ratios_of(self._store, self._name, self.tasks), self._intents)


def tasks(home: Home, repo: str, *, as_json: bool) -> None:
    """Accepted tasks of a repository."""
    store, name = known(home, repo)
    accepted = Accepted(home, store, name)

    def parts() -> Iterator[RenderableType]:
        yield accepted.table() if accepted.tasks else without_tasks(funnel_in_force(store, name), repo)

    put(accepted.rows(), parts(), as_json=as_json)


def without_tasks(counts: Funnel, repo: str) -> str:
    """What it means that there is no task, and which command comes next."""
    rejected = [(number, stage.stage, reason) for stage in counts.stages for reason, number in stage.rejected.items()]
    late = [one for one in rejected if one[1] not in ("mine", "judge")] or rejected
    parts = []
    if counts.pending:
        again = f"perfquarry curate {repo}"
        parts.append(
            f"{counts.pending} changes wait for their next stage: `{again}` goes on (without --limit, or a larger one)"
        )
    if late:
        number, stage, reason = max(late)
        parts.append(f"most frequent reason of rejection: {reason}, at {stage} ({number} changes)")
    said = "No task was accepted" if counts.stages[-1].entered else "No task yet"
    return f"{said}. {'; '.join(parts) or 'Nothing was rejected'}. All reasons: perfquarry funnel {repo}"


def funnel(home: Home, repo: str, *, as_json: bool) -> None:
    """Funnel of a repository."""
    counts = funnel_in_force(*known(home, repo))
    put(counts, [funnel_table(counts), "", reasons_table(counts.reasons)], as_json=as_json)


def workloads(home: Home, repo: str, *, as_json: bool) -> None:
    """Workloads of a repository by source."""
    store, name = known(home, repo)
    counts = funnels.by_source(store, name)
    seen = {reason for count in counts for reason in [*count.rejected, *count.without]}
    none = f"no workload of {name} was tried yet: `perfquarry curate {repo}` goes on, or `perfquarry generate {repo}`"
    parts: list[RenderableType] = [sources_table(name, counts), "", reasons_table(seen)] if counts else [none]
    put(counts, parts, as_json=as_json)
