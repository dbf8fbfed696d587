"""The commands that screen and count tasks, and show findings, problem texts, statistics and counts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from rich.console import Console, RenderableType
from rich.text import Text

from perfquarry.curation.counts import change_count, counts_of, label_of, workloads_of
from perfquarry.curation.in_force import accepted_tasks, newest_findings, newest_problems
from perfquarry.curation.intent_rows import intent_row
from perfquarry.curation.intents import curated, intents_of, with_curators
from perfquarry.curation.names import find_task, repository_of
from perfquarry.curation.problems import is_current, shown
from perfquarry.curation.problems.written import Plan, Statements, plan_in, plan_request, statements_request, texts_in
from perfquarry.curation.screening.demands import Demand
from perfquarry.curation.screening.found import SCREENED
from perfquarry.curation.screening.subjects import demands_of, fix_of, screened_tasks, stamp_of
from perfquarry.curation.statistics_of_tasks import Line, overview, profile_of
from perfquarry.data.display import current, showing
from perfquarry.data.errors import InputError, UnknownRepository, UnknownTask
from perfquarry.data.figures import times
from perfquarry.data.home import Home
from perfquarry.data.logs import log_to
from perfquarry.data.output import Listing, put
from perfquarry.data.records import Count, Finding, Intent, Problem, Row, Stamp, Task, node_of
from perfquarry.data.registry import names
from perfquarry.data.runs import run_name
from perfquarry.flows.count_runs import uncounted
from perfquarry.flows.facts import intent_in_words
from perfquarry.flows.options import Options
from perfquarry.flows.pipeline import run_stages
from perfquarry.flows.run import Run
from perfquarry.flows.runner import run_alone
from perfquarry.flows.screening import run_checks, summary
from perfquarry.flows.stages import BY_NAME, Batch, Stage
from perfquarry.flows.task_reports import count_facts
from perfquarry.flows.work import claiming
from perfquarry.harness.measuring.callgrind import REMEDY, Callgrind
from perfquarry.llm.request import Request
from perfquarry.llm.spec import ModelSpec
from perfquarry.miners.intent.model import intent_request, opinion_in
from perfquarry.miners.vocabulary import size_at

_ORDER = {"blocking": 0, "warning": 1, "info": 2}
_COLOURS = {"blocking": "red", "warning": "yellow", "info": "dim"}


def report_findings(options: Options, llm: str | None = None, *, with_runs: bool, as_json: bool) -> None:
    """Does what the screening still has to do, and shows the findings.

    Raises:
        InputError: the repository has no task.
        RunFailed: some checks could not be made.
        PerfquarryError: the model cannot be asked now; what it answered is in the table.
    """
    run, console = opened(options, as_json)
    with claiming(run, ["screen"], console), showing(console, silent=as_json):
        run_stages(run, ["screen"])
        if with_runs:
            _run_checks(run, {task.task_id: task for task in wanted(run)})
        if llm is not None:
            ask_intents(run, wanted(run), llm)
    asked = {task.task_id: task for task in wanted(run)}
    rows = [row for row in newest_findings(run.store, run.name) if row.task_id in asked]
    rows.sort(key=lambda row: (list(asked).index(row.task_id), _ORDER[row.severity], row.check, row.subject))
    intents = with_curators(intents_of(run.store, run.name, asked.values()), curated(run.home))
    demands = [one for one in demands_of(run) if one.task_id in asked]
    found = [{**row.model_dump(mode="json"), "details": json.loads(row.details)} for row in rows]
    facts = {"findings": found, "demands": [asdict(one) for one in demands], "intents": list(intents.values())}
    said = [
        f"{name}  {intent_in_words(one)}: {one.evidence[0] if one.evidence else ''}" for name, one in intents.items()
    ]
    table = findings_table(run.name, rows, list(asked.values()))
    put(facts, [table, *said, "", _sum_of(rows, options.repo, demands)], as_json=as_json)


def _run_checks(run: Run, tasks: Mapping[str, Task]) -> None:
    """The checks that run code, of those of the tasks without them; each is written when it is done."""

    def todo(run: Run) -> list[Batch]:
        return [(name,) for name in tasks if name not in screened_tasks(run, "run")]

    def work(run: Run, batch: Batch) -> None:
        run_checks(run, [tasks[name] for name in batch])

    run_alone(run, Stage("screen-run", todo, work, alone=True, summary=summary, keys="task"))


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


def findings_table(name: str, rows: Sequence[Finding], tasks: Sequence[Task]) -> Listing:
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


def report_problems(options: Options, llm: str | None, *, plans: bool, as_json: bool) -> None:
    """Has texts or plans written where a model is named, and shows the texts; never a plan.

    Raises:
        InputError: the repository has no task, or the model is unknown.
        PerfquarryError: the model cannot be asked now; what was written is in the table.
    """
    if plans and llm is None:
        raise InputError("plans are written by a model: name one with --llm openai:MODEL, exchange:DIR, …")
    run, console = opened(_about(options), as_json)
    with claiming(run, ["screen"], console), showing(console, silent=as_json):
        run_stages(run, ["screen"])
        if llm is not None:
            write_problems(run, wanted(run), llm, plans=plans)
    asked = {task.task_id for task in wanted(run)}
    rows = [row for row in newest_problems(run.store, run.name) if row.task_id in asked]
    visible = [row for row in rows if row.setting != "plan"]
    counts = f"{len(shown(rows))} texts may be shown, {len(visible) - len(shown(rows))} reveal the fix"
    plans_there = f"{len(rows) - len(visible)} plans in the table, not shown"
    parts = [*(part for row in visible for part in _problem(row)), f"{counts}; {plans_there}"]
    put(visible, parts, as_json=as_json)


def write_problems(run: Run, tasks: Sequence[Task], llm: str, *, plans: bool) -> None:
    """Asks this model, for all tasks at once, for what they do not have of it yet: texts, or plans.

    Raises:
        InputError: the model cannot be asked at all (no key, no folder).
        PerfquarryError: it cannot be asked now; what was written is in the table.
    """
    author, stamp = str(ModelSpec.parse(llm)), stamp_of(run)
    mine = [row for row in newest_problems(run.store, run.name) if row.author == author]
    by_id = {task.task_id: task for task in tasks}
    done = {row.task_id for row in mine if (row.setting == "plan") == plans}
    stale = {row.task_id for row in mine if row.task_id in by_id and not is_current(by_id[row.task_id], row)}
    waiting = [task for name, task in by_id.items() if name not in done or (name in stale and not plans)]

    def rows_of(task: Task, said: Plan | Statements) -> list[Problem]:
        if isinstance(said, Plan):
            return [plan_in(task, said, author, stamp)]
        return texts_in(task, said, fix_of(run, run.clone, task), author, stamp)

    request = plan_request if plans else statements_request
    _ask(run, "plans" if plans else "problems", llm, stamp, waiting, request, rows_of)


def ask_intents(run: Run, tasks: Sequence[Task], llm: str) -> None:
    """Asks a model for the class of the tasks that have none of it yet.

    Raises:
        InputError: the model cannot be asked at all.
        PerfquarryError: it cannot be asked now; what was answered is in the table.
    """
    author = str(ModelSpec.parse(llm))
    known = run.store.scan(Intent, run.name, columns=["task_id"], where=pc.field("author") == author)
    waiting = [task for task in tasks if task.task_id not in set(known["task_id"].to_pylist())]

    def request(task: Task) -> Request[Any]:
        return intent_request(run.clone, run.change_of(task), task.test_patch)

    def rows_of(task: Task, said: Any) -> list[Intent]:
        opinion = opinion_in(said, task.patch + task.test_patch)
        return [intent_row(run, task, opinion, author)] if opinion else []

    _ask(run, "intent", llm, run.stamp("screen"), waiting, request, rows_of)


def _ask(
    run: Run,
    about: str,
    llm: str,
    stamp: Stamp,
    tasks: Sequence[Task],
    request: Callable[[Task], Request[Any]],
    rows_of: Callable[[Task, Any], Sequence[Row]],
) -> None:
    """Asks a model about all of the tasks at once, and writes what it answers as it comes."""
    current().stage(about, len(tasks))
    with run.client(llm, stamp) as client:
        for place, answer in client.ask_all([request(task) for task in tasks]):
            if answer.value is not None:
                run.store.append(rows_of(tasks[place], answer.value))
            current().advance()
    current().finish(f"{len(tasks)} tasks asked for")


def _about(options: Options) -> Options:
    """The options of one task's repository and head, where a task is named instead of a repository.

    Raises:
        InputError: it is neither.
    """
    home = Home(Path(options.home))
    try:
        repository_of(home, options.repo, options.source)
        return options
    except UnknownRepository as error:
        try:
            _, task = find_task(home, options.repo)
        except UnknownTask as none:
            raise InputError(f"{error}; nor is it a task: `perfquarry tasks REPO` lists them") from none
    if options.changes:
        raise InputError("--changes goes with a repository: a task has its own, such as perfquarry problems TASK")
    place = task.repo if task.repo in names() or not task.url else task.url
    return options.model_copy(update={"repo": place, "changes": (task.head_sha,)})


def _problem(row: Problem) -> Iterator[RenderableType]:
    yield Text(f"── {row.task_id}  {row.setting} by {row.author}", "bold")
    if row.leaks:
        yield Text.assemble(("rejected: ", "red"), "; ".join(row.leaks))
    yield row.text


def report_statistics(options: Options, *, as_json: bool) -> None:
    """Statistics of the accepted tasks.

    Raises:
        InputError: the repository has no task.
    """
    run, _ = opened(options, as_json)
    tasks = accepted_tasks(run.store, run.name)
    changes = {task.task_id: run.change_of(task) for task in tasks}
    depths = {
        row.task_id: int(json.loads(row.details)["depth"])
        for row in newest_findings(run.store, run.name)
        if row.check == "call-depth"
    }
    profiles = [
        profile_of(task, changes[task.task_id], (size.files, size.lines), depths.get(task.task_id))
        for task in tasks
        for size in [size_at(run.clone, task.base_sha)]
    ]
    lines = overview(profiles)
    facts = {"repository": run.name, "overview": lines, "tasks": profiles}
    put(facts, [_overview_table(run.name, lines)], as_json=as_json)


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


def report_counts(options: Options, *, as_json: bool) -> None:
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
    put(
        {"tasks": [_count_facts(task, own[task.task_id]) for task in tasks]},
        [_counts_table(tasks, own, nodes)],
        as_json=as_json,
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


def wanted(run: Run) -> list[Task]:
    """The accepted tasks that the options ask for."""
    heads = run.options.changes
    return [task for task in accepted_tasks(run.store, run.name) if not heads or task.head_sha.startswith(heads)]


def opened(options: Options, as_json: bool) -> tuple[Run, Console]:
    """The run of the options, and where it shows what it does.

    Raises:
        InputError: the repository has no task.
    """
    console = Console(stderr=as_json)
    run = Run.open(options.model_dump_json())
    log_to(run.home.logs, console, run_name(f"{run.name}-screen"), run.name)
    if not accepted_tasks(run.store, run.name):
        raise InputError(f"no task of {run.name} in {run.home.tables}: run `perfquarry curate {options.repo}` first")
    return run, console
