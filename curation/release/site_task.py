"""The page of one task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perfquarry.curation.blocks import Session
from perfquarry.curation.evaluation.metrics import best_known
from perfquarry.curation.plots.pairs import pair_sessions, pairs_plot
from perfquarry.curation.plots.strips import strips
from perfquarry.curation.release.site_data import PageSource
from perfquarry.curation.review.diff import side_by_side
from perfquarry.curation.review.rendering import inline, web_address
from perfquarry.curation.review.witness import Witness, witness_of
from perfquarry.curation.settings import SelectSettings
from perfquarry.curation.summary import summarise
from perfquarry.data.records import Count, Evidence, ReleasedTask, ReleasedWorkload

_PROBLEM = "problem_"
"""Begins the names of the columns with problem texts; what follows is the setting."""
_STAMP = {"repo": "", "stage_version": "release", "config_hash": "release"}
_SNIPPET = """\
from datasets import load_dataset

tasks = load_dataset("RELEASE", split="test")
task = tasks.filter(lambda row: row["task_id"] == "{task_id}")[0]
"""


def task_page(source: PageSource, number: int) -> dict[str, Any]:
    """What the template gets."""
    task, sessions = source.tasks[number], source.sessions(source.tasks[number])
    axis = strips([(one.low, one.speedup, one.high) for one in task.workloads])
    workloads = [_workload(task, one, sessions.get(one.workload_id, ())) for one in task.workloads]
    again = source.again(task.task_id)
    return {
        "task": task,
        "before": source.tasks[number - 1].task_id if number else "",
        "after": source.tasks[number + 1].task_id if number + 1 < len(source.tasks) else "",
        "kind": kind_of(task),
        "kind_by": task.intent_by,
        "kind_evidence": task.intent_evidence,
        "held_not": [
            f"measured again on {row.created_at:%Y-%m-%d}, not every workload held ({row.reason})"
            for row in again
            if row.status != "kept"
        ],
        "problems": _problems(task),
        "diff": side_by_side(task.patch, task.oracle_targets),
        "tests": side_by_side(task.test_patch),
        "notes": _notes(task),
        "workloads": workloads,
        "axis": axis,
        "timed": [(number, one.node, one, "kept") for number, one in enumerate(task.workloads, 1)],
        "drawn": any(one["svg"] for one in workloads),
        "graded": _graded(source, task.task_id),
        "commands": _commands(source, task),
        "again": again,
        "origin": _origin(source, task),
        "environment": "\n".join(
            [*task.recipe.setup_commands, *task.recipe.install_commands, "", *task.recipe.requirements]
        ).strip(),
    }


def kind_of(task: ReleasedTask) -> str:
    """Class of the change's intent in words; '' in releases that have none."""
    return (task.intent or "").replace("_", " ")


def _problems(task: ReleasedTask) -> list[dict[str, str]]:
    """The problem text of each setting that has one, with what the setting is."""
    fields = type(task).model_fields
    found = []
    for name in (name for name in fields if name.startswith(_PROBLEM)):
        setting = name.removeprefix(_PROBLEM)
        what = (fields[name].description or "").removeprefix("Problem text, ").removeprefix(f"setting '{setting}': ")
        found.append({"setting": setting, "what": what, "text": getattr(task, name)})
    return [one for one in found if isinstance(one["text"], str) and one["text"].strip()]


def _workload(task: ReleasedTask, row: ReleasedWorkload, sessions: Sequence[Session]) -> dict[str, Any]:
    statistics = [found for session in sessions if (found := summarise(session, SelectSettings()))]
    drawn = pair_sessions(sessions, statistics)
    title = f"Pairs of {row.node} ({task.task_id})"
    return {
        "row": row,
        "svg": inline(pairs_plot(title, drawn, narrow=True, headline=False)) if drawn else "",
        "sessions": statistics,
        "witness": _witness(row),
        "code": row.code if row.source != "unit-test" else "",
    }


def _witness(row: ReleasedWorkload) -> Witness | None:
    if row.count is None:
        return None
    count = Count(**_STAMP, workload_id=row.workload_id, change_id="", **row.count.model_dump())
    evidence = Evidence(**_STAMP, workload_id=row.workload_id, change_id="", speedup=row.speedup)
    return witness_of(count, evidence)


def _notes(task: ReleasedTask) -> dict[str, str]:
    """By name of a changed function what is noted beside it: its instructions, where they were counted."""
    names = {target: target.partition("::")[2] for target in task.oracle_targets}
    notes = {name: name for name in names.values()}
    differences: dict[str, int] = {}
    for workload in task.workloads:
        for one in workload.count.functions if workload.count else ():
            name, base, head = names.get(one.name), one.ir_base, one.ir_head
            if name and base and head and abs(base - head) >= differences.get(name, 0):
                differences[name] = abs(base - head)
                notes[name] = f"{name}: {base:,} → {head:,} instructions ({base / head:.2f}×) in {workload.node}"
    return notes


def _commands(source: PageSource, task: ReleasedTask) -> list[dict[str, str]]:
    there = (source.folder / "tasks" / task.task_id).is_dir()
    harbor = f"harbor run -p RELEASE/tasks/{task.task_id} -a oracle -n 1"
    made = (
        f"perfquarry export {task.repo} --format harbor --to tasks\nharbor run -p tasks/{task.task_id} -a oracle -n 1"
    )
    note = "RELEASE is the folder of this release, or its name on the Hub."
    export = "This release holds no folders for Harbor: make them from the home that has the repository."
    evaluate = f"perfquarry evaluate predictions.jsonl --dataset RELEASE --tasks {task.task_id} --to report"
    return [
        {"title": "Harbor", "note": "" if there else export, "text": harbor if there else made},
        {"title": "Grade patches", "note": "RELEASE is the folder of this release.", "text": evaluate},
        {"title": "Python", "note": note, "text": _SNIPPET.format(task_id=task.task_id)},
    ]


def _origin(source: PageSource, task: ReleasedTask) -> list[tuple[str, str, str]]:
    """Names, values, and addresses to follow or ''."""
    machine = next((one for one in source.manifest.machines if one.machine_id == task.machine_id), None)
    where = (
        f"{machine.cpu}, {machine.cores} cores, {machine.system} {machine.kernel}, {machine.sandbox}" if machine else ""
    )
    return [
        ("repository", task.codebase, web_address(task.url)),
        ("base", task.base_commit, web_address(task.url, "commit", task.base_commit)),
        ("expert", task.head_commit, web_address(task.url, "commit", task.head_commit)),
        ("public since", f"{task.created_at:%Y-%m-%d %H:%M} UTC", ""),
        ("version", task.version, ""),
        ("licence", task.licence, web_address(task.licence_url)),
        ("Python", task.recipe.python, ""),
        ("Debian packages", ", ".join(task.recipe.system_packages), ""),
        ("tree", task.recipe.tree, ""),
        ("environment", task.recipe.environment_id, ""),
        ("image", task.recipe.image_digest, ""),
        ("public functions", ", ".join(task.apis), ""),
        ("called by workloads", ", ".join(target.partition("::")[2] for target in task.realistic_targets), ""),
        ("measured on", where or task.machine_id, ""),
        ("review", task.review, ""),
    ]


def _graded(source: PageSource, task_id: str) -> Mapping[str, Any] | None:
    """What an evaluation found of the task; None without a report, or where it has no part in it."""
    rows = source.grades.get(task_id, [])
    if source.report is None or not rows:
        return None
    best = best_known(rows).get(task_id)
    order = source.report.orders.get(task_id, "")
    return {
        "order": order.removeprefix("! "),
        "doubtful": order.startswith("!"),
        "rows": rows,
        "best": best,
        "best_diff": side_by_side(best.patch) if best else None,
    }
