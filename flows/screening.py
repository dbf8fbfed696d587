"""The stage `screen`: problem texts of the accepted tasks, and the checks of them that run no code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow.compute as pc

from perfquarry.curation.in_force import accepted_tasks, decisions_in_force, newest_findings
from perfquarry.curation.intents import intents_of
from perfquarry.curation.problems import Fix, templates
from perfquarry.curation.screening.demands import Demand, demands
from perfquarry.curation.screening.duplicates import Landing
from perfquarry.curation.screening.found import SCREENED, carried, rows_of, screened
from perfquarry.curation.screening.runs import CHECKS, try_out
from perfquarry.curation.screening.sources import test_source
from perfquarry.curation.screening.static import Subject, look
from perfquarry.data.own_rows import VERSIONS
from perfquarry.data.records import Change, Evidence, Finding, Stamp, Task, Workload, content_id
from perfquarry.data.store import TableStore
from perfquarry.flows.display import current, waiting_for_core
from perfquarry.flows.intents import intents_in_words, without_intent, write_intents
from perfquarry.flows.run import Run
from perfquarry.harness.measuring.machine import measurement_lock
from perfquarry.miners.vocabulary import content_at, only_at_head


def accepted(run: Run) -> list[Task]:
    """Accepted tasks of the decisions in force."""
    return accepted_tasks(run.store, run.name)


def demands_of(run: Run) -> list[Demand]:
    """What the newest screening asks of the generator of workloads; nothing before the first."""
    findings = newest_findings(run.store, run.name)
    return demands(accepted(run), findings) if findings else []


def stamp_of(run: Run) -> Stamp:
    """Of findings and problem texts of the accepted tasks under the run's settings."""
    decisions = sorted(decisions_in_force(run.store, run.name).items())
    config = content_id(run.options.settings.screen.config_hash(), decisions)
    return Stamp(repo=run.name, stage_version=VERSIONS["screen"], config_hash=config)


def screened_tasks(run: Run, kind: str) -> set[str]:
    """Ids of the tasks whose checks of a kind ('static', 'run') were made."""
    stamp = stamp_of(run)
    made = run.store.scan(
        Finding,
        run.name,
        columns=["task_id"],
        where=(pc.field("check") == SCREENED) & (pc.field("subject") == kind),
        stage_version=stamp.stage_version,
        config_hash=stamp.config_hash,
    )
    return set(made["task_id"].to_pylist())


def todo(run: Run) -> list[tuple[str, ...]]:
    """One batch, all tasks together, unless they were screened and classed."""
    tasks = accepted(run)
    waiting = {task.task_id for task in tasks} - screened_tasks(run, "static") or without_intent(run, tasks)
    return [(stamp_of(run).config_hash,)] if waiting else []


def screen(run: Run, _: tuple[str, ...]) -> None:
    """Writes the texts and the findings; what was found by running an unchanged task is carried along."""
    stamp, settings = stamp_of(run), run.options.settings.screen
    subjects = [subject_of(run, task, stamp) for task in accepted(run)]
    write_intents(run, [one.task for one in subjects])
    found = look(subjects, history_of(run.store, run.name), settings)
    run.store.append([problem for one in subjects for problem in one.problems])
    run.store.append([row for one in subjects for row in rows_of(one.task, found[one.task.task_id], stamp)])
    for task in (one.task for one in subjects):
        known = run.store.records(Finding, run.name, where=pc.field("task_id") == task.task_id)
        run.store.append(carried(known, looked_at(run, task), stamp))


def run_checks(run: Run, tasks: Sequence[Task]) -> None:
    """The checks of tasks that run code.

    Raises:
        RunFailed: some tasks could not be run here.
    """
    for task in tasks:
        builds, guards = run.builds_of(task), guards_of(run, task)
        base, _ = run.builder.reopen(builds)
        tools = run.tools(builds)["base"]
        current().note(task.title)
        lock = measurement_lock(on_wait=waiting_for_core)
        found = try_out(task, base, run.runtime.prober, run.options.settings.screen, tools, lock, guards)
        names = [(one.check, one.subject) for one in found]
        made = screened("run", CHECKS, of=looked_at(run, task), found=names)
        run.store.append(rows_of(task, [*found, made], stamp_of(run)))


def looked_at(run: Run, task: Task) -> str:
    """Content address of what the checks that run code look at: the task, the other tests, their settings."""
    workloads = [(one.workload_id, one.speedup) for one in task.workloads]
    about = (task.base_sha, task.patch, workloads, task.oracle_targets, guards_of(run, task))
    return content_id(VERSIONS["screen"], run.options.settings.screen.config_hash(), *about)


def guards_of(run: Run, task: Task) -> list[str]:
    """Unit tests that execute the change and pass on both sides, and are no workloads of the task."""
    own = {one.node for one in task.workloads}
    rows = run.store.records(Workload, run.name, where=pc.field("change_id") == task.change_id)
    return sorted({row.node for row in rows if row.status == "kept" and not row.is_script} - own)


def summary(run: Run) -> str:
    """'8 tasks, 2 with blocking findings'."""
    rows = newest_findings(run.store, run.name)
    counts = Counter(row.severity for row in rows if row.check != SCREENED)
    blocked = {row.task_id for row in rows if row.severity == "blocking"}
    severities = ", ".join(f"{counts[severity]} {severity}" for severity in ("blocking", "warning", "info"))
    meant = Counter(one.intent for one in intents_of(run.store, run.name, accepted(run)).values())
    text = f"{len({row.task_id for row in rows})} tasks, findings: {severities}; {len(blocked)} task(s) blocked"
    return f"{text}; {intents_in_words(meant)}" if meant else text


def subject_of(run: Run, task: Task, stamp: Stamp) -> Subject:
    """A task with all that the static checks look at."""
    fix = fix_of(run, task)
    evidence = run.store.records(
        Evidence, run.name, config_hash=task.config_hash, where=pc.field("change_id") == task.change_id
    )
    return Subject(task, fix, list(evidence), templates(task, fix, stamp), _tests(run.clone, task))


def fix_of(run: Run, task: Task) -> Fix:
    """What a text about the task must not say."""
    return Fix.of(task, *only_at_head(run.clone, run.change_of(task)))


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
