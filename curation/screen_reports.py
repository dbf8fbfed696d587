"""Findings, problem texts, statistics and counts of tasks, for people; and what models are asked of tasks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from rich.console import RenderableType
from rich.text import Text

from perfquarry.curation.counts import change_count, counts_of, label_of, workloads_of
from perfquarry.curation.facts import intent_in_words
from perfquarry.curation.in_force import accepted_tasks, newest_findings, newest_problems
from perfquarry.curation.intent_rows import intent_row
from perfquarry.curation.intents import curated, intents_of, with_curators
from perfquarry.curation.problems import is_current, shown
from perfquarry.curation.problems.written import Plan, Statements, plan_in, plan_request, statements_request, texts_in
from perfquarry.curation.screening.demands import Demand
from perfquarry.curation.screening.found import SCREENED
from perfquarry.curation.screening.subjects import demands_of, fix_of, stamp_of
from perfquarry.curation.statistics_of_tasks import Line, overview, profile_of
from perfquarry.curation.task_reports import count_facts
from perfquarry.data.display import current
from perfquarry.data.figures import times
from perfquarry.data.output import Listing, Report
from perfquarry.data.own_rows import OwnRows
from perfquarry.data.records import Count, Finding, Intent, Problem, Row, Task, node_of
from perfquarry.llm.client import Client
from perfquarry.llm.request import Request
from perfquarry.miners.intent.model import intent_request, opinion_in
from perfquarry.miners.vocabulary import size_at

_ORDER = {"blocking": 0, "warning": 1, "info": 2}
_COLOURS = {"blocking": "red", "warning": "yellow", "info": "dim"}


def findings(rows: OwnRows, tasks: Sequence[Task], repo: str) -> Report:
    """What the newest screening found of these tasks, and whether their gains were meant."""
    asked = {task.task_id: task for task in tasks}
    found = [row for row in newest_findings(rows.store, rows.name) if row.task_id in asked]
    found.sort(key=lambda row: (list(asked).index(row.task_id), _ORDER[row.severity], row.check, row.subject))
    intents = with_curators(intents_of(rows.store, rows.name, tasks), curated(rows.home))
    demands = [one for one in demands_of(rows) if one.task_id in asked]
    facts = {
        "findings": [{**row.model_dump(mode="json"), "details": json.loads(row.details)} for row in found],
        "demands": [asdict(one) for one in demands],
        "intents": list(intents.values()),
    }
    said = [
        f"{name}  {intent_in_words(one)}: {one.evidence[0] if one.evidence else ''}" for name, one in intents.items()
    ]
    return Report(facts, [_findings_table(rows.name, found, tasks), *said, "", _sum_of(found, repo, demands)])


def _sum_of(rows: Sequence[Finding], repo: str, demands: Sequence[Demand]) -> str:
    """How many tasks are blocked, which checks were made, and which tasks need more workloads."""
    tasks, blocked = {row.task_id for row in rows}, {row.task_id for row in rows if row.severity == "blocking"}
    made = sorted({row.subject for row in rows if row.check == SCREENED})
    text = f"{len(tasks)} tasks, {len(blocked)} blocked; checks made: {', '.join(made)}"
    text += "" if "run" in made else " (perfquarry screen --run also runs code)"
    if demands:
        heads = ",".join(one.head_sha[:10] for one in demands)
        text += (
            f"\n{len(demands)} tasks need more workloads; the generator asks for what is missing:\n"
            f"perfquarry curate {repo} --workloads unit-test,generated --llm openai:MODEL --changes {heads}"
        )
    return text


def _findings_table(name: str, rows: Sequence[Finding], tasks: Sequence[Task]) -> Listing:
    """Findings, worst first within a task."""
    table = Listing(("task", "check", "evidence"), f"Findings of {name}")
    for task in tasks:
        own = [row for row in rows if row.task_id == task.task_id and row.check != SCREENED]
        first = Text.assemble(task.task_id, "\n", (task.title, "dim"))
        for row in own:
            about = f"{row.subject} " if row.subject and row.subject not in row.evidence else ""
            evidence = Text.assemble((about, "dim"), " ".join(row.evidence.split()))
            table.add(first, Text(row.check, _COLOURS[row.severity]), evidence)
            first = Text()
        if not own:
            table.add(first, Text("clean", "green"), "")
    return table


def problems(rows: OwnRows, tasks: Sequence[Task]) -> Report:
    """The problem texts of these tasks; never a plan."""
    asked = {task.task_id for task in tasks}
    found = [row for row in newest_problems(rows.store, rows.name) if row.task_id in asked]
    visible = [row for row in found if row.setting != "plan"]
    counts = f"{len(shown(found))} texts may be shown, {len(visible) - len(shown(found))} reveal the fix"
    plans = f"{len(found) - len(visible)} plans in the table, not shown"
    return Report(visible, [*(part for row in visible for part in _problem(row)), f"{counts}; {plans}"])


def write_problems(rows: OwnRows, clone: Path, tasks: Sequence[Task], client: Client, author: str, plans: bool) -> None:
    """Asks a model, for all tasks at once, for what they do not have of it yet: texts, or plans.

    Raises:
        PerfquarryError: it cannot be asked now; what was written is in the table.
    """
    mine = [row for row in newest_problems(rows.store, rows.name) if row.author == author]
    by_id = {task.task_id: task for task in tasks}
    done = {row.task_id for row in mine if (row.setting == "plan") == plans}
    stale = {row.task_id for row in mine if row.task_id in by_id and not is_current(by_id[row.task_id], row)}
    waiting = [task for name, task in by_id.items() if name not in done or (name in stale and not plans)]
    stamp = stamp_of(rows)

    def rows_of(task: Task, said: Plan | Statements) -> list[Problem]:
        if isinstance(said, Plan):
            return [plan_in(task, said, author, stamp)]
        return texts_in(task, said, fix_of(rows, clone, task), author, stamp)

    _ask(
        rows, "plans" if plans else "problems", client, waiting, plan_request if plans else statements_request, rows_of
    )


def ask_intents(rows: OwnRows, clone: Path, tasks: Sequence[Task], client: Client, author: str) -> None:
    """Asks a model for the class of the tasks that have none of it yet.

    Raises:
        PerfquarryError: it cannot be asked now; what was answered is in the table.
    """
    known = rows.store.scan(Intent, rows.name, columns=["task_id"], where=pc.field("author") == author)
    waiting = [task for task in tasks if task.task_id not in set(known["task_id"].to_pylist())]

    def request(task: Task) -> Request[Any]:
        return intent_request(clone, rows.change_of(task), task.test_patch)

    def rows_of(task: Task, said: Any) -> list[Intent]:
        opinion = opinion_in(said, task.patch + task.test_patch)
        return [intent_row(rows, task, opinion, author)] if opinion else []

    _ask(rows, "intent", client, waiting, request, rows_of)


def _ask(
    rows: OwnRows,
    about: str,
    client: Client,
    tasks: Sequence[Task],
    request: Callable[[Task], Request[Any]],
    rows_of: Callable[[Task, Any], Sequence[Row]],
) -> None:
    """Asks about all of the tasks at once, and writes what the model answers as it comes."""
    current().stage(about, len(tasks))
    for place, answer in client.ask_all([request(task) for task in tasks]):
        if answer.value is not None:
            rows.store.append(rows_of(tasks[place], answer.value))
        current().advance()
    current().finish(f"{len(tasks)} tasks asked for")


def _problem(row: Problem) -> Iterator[RenderableType]:
    yield Text(f"── {row.task_id}  {row.setting} by {row.author}", "bold")
    if row.leaks:
        yield Text.assemble(("rejected: ", "red"), "; ".join(row.leaks))
    yield row.text


def statistics(rows: OwnRows, clone: Path) -> Report:
    """Statistics of the accepted tasks."""
    depths = {
        row.task_id: int(json.loads(row.details)["depth"])
        for row in newest_findings(rows.store, rows.name)
        if row.check == "call-depth"
    }
    profiles = [
        profile_of(task, rows.change_of(task), (size.files, size.lines), depths.get(task.task_id))
        for task in accepted_tasks(rows.store, rows.name)
        for size in [size_at(clone, task.base_sha)]
    ]
    lines = overview(profiles)
    facts = {"repository": rows.name, "overview": lines, "tasks": profiles}
    return Report(facts, [_overview_table(rows.name, lines)])


def _overview_table(name: str, lines: Sequence[Line]) -> Listing:
    table = Listing(("category", "metric", ">mean", ">median", ">min", ">max"), f"Tasks of {name}")
    category = ""
    for line in lines:
        figures = [_figure(value) for value in (line.mean, line.median, line.low, line.high)]
        table.add("" if line.category == category else line.category, line.metric, *figures)
        category = line.category
    return table


def _figure(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.3g}"


def instructions(rows: OwnRows, tasks: Sequence[Task]) -> Report:
    """The counts of the workloads of these tasks."""
    counts = counts_of(rows.store, rows.name)
    known = {task.task_id: workloads_of(rows, task) for task in tasks}
    own = {name: [counts[key] for key in workloads if key in counts] for name, workloads in known.items()}
    nodes = {key: node_of(*one, key) for workloads in known.values() for key, one in workloads.items()}
    return Report(
        {"tasks": [_count_facts(task, own[task.task_id]) for task in tasks]}, [_counts_table(tasks, own, nodes)]
    )


def _count_facts(task: Task, rows: Sequence[Count]) -> dict[str, Any]:
    change = change_count(rows)
    accepted = {one.workload_id for one in task.workloads}
    return {
        "task_id": task.task_id,
        "ratio": change.ratio,
        "touched": change.touched,
        "counts": [count_facts(row, faster=row.workload_id in accepted) for row in rows],
    }


def _counts_table(tasks: Sequence[Task], own: Mapping[str, Sequence[Count]], nodes: Mapping[str, str]) -> Listing:
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
