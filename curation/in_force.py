"""Which rows of a repository count: there are decisions of several settings, screenings, and changes sent back.

Of each change the decision on its newest timings counts (docs/decisions/0031); everything else follows from it: the
tasks, the rows these were made of, their findings and problem texts. Changes that were sent back to a stage have
wishes (docs/decisions/0023): rows from before a fulfilled wish no longer count. What counts for one run and its
settings is `curation.rows_of_run`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from perfquarry.curation.screening.found import newest_screening
from perfquarry.data.funnel import Funnel, Provenance, funnel
from perfquarry.data.records import Build, Change, Finding, Problem, Renewal, Task, Timing, Verdict, Workload
from perfquarry.data.store import TableStore

R = TypeVar("R", Build, Finding, Timing, Workload)

Renewed = Mapping[str, datetime]
"""By change_id: since when a stage is wanted once more."""


def decisions_in_force(store: TableStore, repo: str) -> dict[str, str]:
    """By change the configuration hash of the decision on its newest timings, the newest first (decision 0031)."""
    rows = store.scan(Task, repo, columns=["change_id", "config_hash", "measured_at", "created_at"]).to_pylist()
    rows.sort(key=lambda row: (row["measured_at"] or row["created_at"], row["created_at"]), reverse=True)
    found: dict[str, str] = {}
    for row in rows:
        found.setdefault(row["change_id"], row["config_hash"])
    return found


def newest_tasks(store: TableStore, repo: str) -> list[Task]:
    """Rows of the decisions in force, accepted and rejected: one of each change."""
    decisions = decisions_in_force(store, repo)
    rows = store.records(Task, repo, where=pc.field("config_hash").isin(sorted(set(decisions.values()))))
    return [row for row in rows if decisions[row.change_id] == row.config_hash]


def accepted_tasks(store: TableStore, repo: str) -> list[Task]:
    """Those that are accepted by the decisions in force."""
    return [task for task in newest_tasks(store, repo) if task.status == "kept"]


def made_of(store: TableStore, model: type[R], repo: str, tasks: Sequence[Task]) -> list[R]:
    """Rows of a table that tasks were decided on: a later run, with other settings say, may have written newer ones.

    Of each change the rows of that configuration which wrote the newest row before the change's last timing.
    """
    until = {task.change_id: task.measured_at or task.created_at for task in tasks}
    groups: dict[str, list[R]] = {}
    for row in store.records(model, repo, where=pc.field("change_id").isin(pa.array(until, pa.string()))):
        if row.created_at <= until[row.change_id]:
            groups.setdefault(row.change_id, []).append(row)
    return [row for group in groups.values() for row in _of_newest_origin(group)]


def _of_newest_origin(rows: Sequence[R]) -> list[R]:
    newest = max(rows, key=lambda row: row.created_at)
    origin = (newest.stage_version, newest.config_hash)
    return [row for row in rows if (row.stage_version, row.config_hash) == origin]


def provenance_of(store: TableStore, repo: str, decisions: Mapping[str, str], decision: str) -> Provenance:
    """Which rows a decision was made of: a run with other settings may have written newer ones, before it or since.

    What was decided had been kept by every stage before: of each table those rows that lead most of it on, the newest
    of equal ones.
    """
    made = store.scan(Task, repo, columns=["created_at"], config_hash=decision)
    about = pc.field("change_id").isin([change for change, its in decisions.items() if its == decision])
    about &= pc.field("created_at") <= pc.max(made["created_at"])
    origins: dict[str, tuple[str, str]] = {}
    for model in (Change, Verdict, Build, Workload, Timing, Task):
        led_on = about & (pc.field("status") == "kept") if model in (Change, Verdict, Build, Workload) else about
        columns = ["stage_version", "config_hash", "created_at", "change_id"]
        rows = store.scan(model, repo, columns=columns, where=led_on).group_by(columns[:2])
        counts = rows.aggregate([("change_id", "count_distinct"), ("created_at", "max")])
        if counts.num_rows:
            order = [("change_id_count_distinct", "descending"), ("created_at_max", "descending")]
            (most,) = counts.sort_by(order).slice(0, 1).to_pylist()
            origins[model.TABLE] = most["stage_version"], most["config_hash"]
    return Provenance(tables=origins)


def funnel_in_force(store: TableStore, repo: str) -> Funnel:
    """The funnel of the decisions in force; changes without one count as the newest rows of each table say.

    A stage that was tried with other settings since then does not hide what was decided.
    """
    decisions = decisions_in_force(store, repo)
    origins = [provenance_of(store, repo, decisions, one) for one in dict.fromkeys(decisions.values())]
    return funnel(store, repo, *origins, Provenance())


def newest_findings(store: TableStore, repo: str) -> list[Finding]:
    """Rows of the newest screening; none before the first."""
    screening = newest_screening(store, repo)
    return list(store.records(Finding, repo, config_hash=screening)) if screening else []


def newest_findings_of(store: TableStore, repo: str, tasks: Sequence[Task]) -> list[Finding]:
    """Of each of the tasks the rows of its newest screening, whether the newest of all looked at it or not."""
    groups: dict[str, list[Finding]] = {}
    names = pa.array([task.task_id for task in tasks], pa.string())
    for row in store.records(Finding, repo, where=pc.field("task_id").isin(names)):
        groups.setdefault(row.task_id, []).append(row)
    return [row for group in groups.values() for row in _of_newest_origin(group)]


def newest_problems(store: TableStore, repo: str) -> list[Problem]:
    """Problem texts and plans of the tasks in force; of equal setting and author the newest."""
    tasks = {task.task_id for task in newest_tasks(store, repo) if task.status == "kept"}
    rows = {(row.task_id, row.setting, row.author): row for row in store.records(Problem, repo)}
    return [row for key, row in rows.items() if key[0] in tasks]


def renewed(store: TableStore, repo: str, stage: Literal["generate", "measure"]) -> Renewed:
    """The newest wish of each change for a stage."""
    wishes: dict[str, datetime] = {}
    for row in store.records(Renewal, repo, where=pc.field("stage") == stage):
        wishes[row.change_id] = max(row.created_at, wishes.get(row.change_id, row.created_at))
    return wishes


def extra_sources(store: TableStore, repo: str, change_id: str) -> list[str]:
    """Sources of workloads that were wished for a change beside those of the settings."""
    rows = store.records(Renewal, repo, where=(pc.field("stage") == "generate") & (pc.field("change_id") == change_id))
    return list(dict.fromkeys(source for row in rows for source in row.sources))


def fulfilled(newest: Mapping[str, datetime], wishes: Renewed) -> set[str]:
    """Changes that need nothing more of a stage.

    `newest` says when the stage wrote its newest row of each change.
    """
    return {change for change, at in newest.items() if change not in wishes or at >= wishes[change]}


def without_replaced(timings: Iterable[Timing], wishes: Renewed) -> list[Timing]:
    """Timings without those that newer ones of a renewed change replace."""
    rows = list(timings)
    replaced = {row.change_id for row in rows if row.change_id in wishes and row.created_at >= wishes[row.change_id]}
    return [row for row in rows if row.change_id not in replaced or row.created_at >= wishes[row.change_id]]
