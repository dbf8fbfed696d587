"""What the screening looks at: tasks with all that the checks need, and which of them were looked at already."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc

from perfquarry.curation.in_force import accepted_tasks, decisions_in_force, newest_findings
from perfquarry.curation.problems import Fix, templates
from perfquarry.curation.screening.demands import Demand, demands
from perfquarry.curation.screening.duplicates import Landing
from perfquarry.curation.screening.found import SCREENED
from perfquarry.curation.screening.sources import test_source
from perfquarry.curation.screening.static import Subject
from perfquarry.data.own_rows import VERSIONS, OwnRows
from perfquarry.data.records import Change, Evidence, Finding, Stamp, Task, Workload, content_id
from perfquarry.data.store import TableStore
from perfquarry.miners.vocabulary import content_at, only_at_head


def demands_of(rows: OwnRows) -> list[Demand]:
    """What the newest screening asks of the generator of workloads; nothing before the first."""
    findings = newest_findings(rows.store, rows.name)
    return demands(accepted_tasks(rows.store, rows.name), findings) if findings else []


def stamp_of(rows: OwnRows) -> Stamp:
    """Of findings and problem texts of the accepted tasks under these settings."""
    decisions = sorted(decisions_in_force(rows.store, rows.name).items())
    config = content_id(rows.hashes["screen"], decisions)
    return Stamp(repo=rows.name, stage_version=VERSIONS["screen"], config_hash=config)


def screened_tasks(rows: OwnRows, kind: str) -> set[str]:
    """Ids of the tasks whose checks of a kind ('static', 'run') were made."""
    stamp = stamp_of(rows)
    made = rows.store.scan(
        Finding,
        rows.name,
        columns=["task_id"],
        where=(pc.field("check") == SCREENED) & (pc.field("subject") == kind),
        stage_version=stamp.stage_version,
        config_hash=stamp.config_hash,
    )
    return set(made["task_id"].to_pylist())


def looked_at(rows: OwnRows, task: Task) -> str:
    """Content address of what the checks that run code look at: the task, the other tests, their settings."""
    workloads = [(one.workload_id, one.speedup) for one in task.workloads]
    about = (task.base_sha, task.patch, workloads, task.oracle_targets, guards_of(rows, task))
    return content_id(VERSIONS["screen"], rows.hashes["screen"], *about)


def guards_of(rows: OwnRows, task: Task) -> list[str]:
    """Unit tests that execute the change and pass on both sides, and are no workloads of the task."""
    own = {one.node for one in task.workloads}
    found = rows.store.records(Workload, rows.name, where=pc.field("change_id") == task.change_id)
    return sorted({row.node for row in found if row.status == "kept" and not row.is_script} - own)


def subject_of(rows: OwnRows, clone: Path, task: Task, stamp: Stamp) -> Subject:
    """A task with all that the static checks look at."""
    fix = fix_of(rows, clone, task)
    evidence = rows.store.records(
        Evidence, rows.name, config_hash=task.config_hash, where=pc.field("change_id") == task.change_id
    )
    return Subject(task, fix, list(evidence), templates(task, fix, stamp), _tests(clone, task))


def fix_of(rows: OwnRows, clone: Path, task: Task) -> Fix:
    """What a text about the task must not say."""
    return Fix.of(task, *only_at_head(clone, rows.change_of(task)))


def _tests(clone: Path, task: Task) -> dict[str, str]:
    nodes = [one.code for one in task.workloads if one.source == "unit-test"]
    contents = content_at(clone, task.base_sha, [node.partition("::")[0] for node in nodes]) if nodes else {}
    texts = {path: content.decode("utf-8", "replace") for path, content in contents.items()}
    return {node: test_source(texts[path], node) for node in nodes if (path := node.partition("::")[0]) in texts}


def history_of(store: TableStore, repo: str) -> list[Landing]:
    """The history as the table of changes has it."""
    columns = ["head_sha", "parents", "title", "message", "patch_id", "merged_at"]
    rows = {row["head_sha"]: row for row in store.scan(Change, repo, columns=columns).to_pylist()}
    return [Landing(**{**row, "parents": tuple(row["parents"])}) for row in rows.values()]
