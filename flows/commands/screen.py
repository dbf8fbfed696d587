"""`perfquarry screen`, `problems`, `statistics` and `count`: what machines say of the tasks of a repository."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from perfquarry.data.errors import InputError, UnknownRepository, UnknownTask
from perfquarry.data.output import Report
from perfquarry.flows.commands.completion import repositories_and_tasks
from perfquarry.flows.commands.shared import Asked, Json, MadeWith, app, with_options

if TYPE_CHECKING:
    from perfquarry.data.records import Task
    from perfquarry.flows.options import Options
    from perfquarry.flows.run import Run
    from perfquarry.flows.stages import Stage


@app.command(example="screen demo --run")
@with_options("repo", "source", "changes", "budget_usd", "home", "settings", workloads=MadeWith)
def screen(
    options: Asked,
    run: Annotated[bool, typer.Option("--run", help="Also the checks that run code, on this machine.")] = False,
    llm: Annotated[
        str | None, typer.Option(help="Also ask a model whether each gain was meant: openai:MODEL, …")
    ] = None,
    as_json: Json = False,
) -> Report:
    """Screen the tasks: duplicates, leaks, weak workloads, trivial changes, licence, private data, intent."""
    from perfquarry.curation.screen_reports import ask_intents, findings
    from perfquarry.flows.pipeline import run_stages
    from perfquarry.flows.runner import run_alone
    from perfquarry.llm.spec import ModelSpec

    asked = options()
    with _opened(asked, "screen", as_json=as_json) as one:
        run_stages(one, ["screen"])
        if run:
            run_alone(one, _checks_of({task.task_id: task for task in _wanted(one)}))
        if llm is not None:
            with one.client(llm, one.stamp("screen")) as client:
                ask_intents(one, one.clone, _wanted(one), client, str(ModelSpec.parse(llm)))
    return findings(one, _wanted(one), asked.repo)


def _checks_of(tasks: Mapping[str, Task]) -> Stage:
    """The checks that run code, of those of the tasks without them; each is written when it is done."""
    from perfquarry.curation.screening import stage as screening
    from perfquarry.curation.screening.subjects import screened_tasks
    from perfquarry.flows.stages import Batch, Stage

    def todo(run: Run) -> list[Batch]:
        return [(name,) for name in tasks if name not in screened_tasks(run, "run")]

    def work(run: Run, batch: Batch) -> None:
        for task in (tasks[name] for name in batch):
            builds = run.builds_of(task)
            base, _ = run.builder.reopen(builds)
            tools, settings = run.tools(builds)["base"], run.options.settings.screen
            screening.run_checks(run, task, base, tools, run.runtime.prober, settings)

    return Stage("screen-run", todo, work, alone=True, summary=screening.summary, keys="task")


@app.command(example="problems perfquarry__demo-23b2933d37")
@with_options("source", "changes", "budget_usd", "home", "settings")
def problems(
    options: Asked,
    about: Annotated[
        str,
        typer.Argument(
            metavar="REPO|TASK",
            help="Repository, or one task: its id or the start of it, or of its head's hash.",
            autocompletion=repositories_and_tasks,
        ),
    ],
    llm: Annotated[str | None, typer.Option(help="Also let a model write them: openai:MODEL, …")] = None,
    plans: Annotated[
        bool, typer.Option("--plans", help="--llm: only plans of the fixes, for analysis; never shown to solvers.")
    ] = False,
    as_json: Json = False,
) -> Report:
    """Show the problem texts of the tasks, and which were rejected because they reveal the fix."""
    from perfquarry.curation import screen_reports
    from perfquarry.curation.screening.subjects import stamp_of
    from perfquarry.flows.pipeline import run_stages
    from perfquarry.llm.spec import ModelSpec

    if plans and llm is None:
        raise InputError("plans are written by a model: name one with --llm openai:MODEL, exchange:DIR, …")
    with _opened(_about(options(repo=about)), "screen", as_json=as_json) as run:
        run_stages(run, ["screen"])
        if llm is not None:
            with run.client(llm, stamp_of(run)) as client:
                author = str(ModelSpec.parse(llm))
                screen_reports.write_problems(run, run.clone, _wanted(run), client, author, plans)
    return screen_reports.problems(run, _wanted(run))


@app.command(example="statistics demo")
@with_options("repo", "source", "home")
def statistics(options: Asked, as_json: Json = False) -> Report:
    """Show size, patches, functions, workloads and speedups of the tasks, as GSO's and SWE-Perf's papers do."""
    from perfquarry.curation.screen_reports import statistics

    run = _run_of(options(), Console(stderr=as_json))
    return statistics(run, run.clone)


@app.command(example="count demo")
@with_options("repo", "source", "changes", "home", "settings", workloads=MadeWith)
def count(options: Asked, as_json: Json = False) -> Report:
    """Count the instructions of the tasks' workloads at base and head: a second witness beside the clock."""
    from perfquarry.curation.counting import uncounted
    from perfquarry.curation.screen_reports import instructions
    from perfquarry.flows.runner import run_alone
    from perfquarry.flows.stages import BY_NAME
    from perfquarry.harness.measuring.callgrind import REMEDY, Callgrind

    with _opened(options(), "count", as_json=as_json) as run:
        tasks = _wanted(run)
        if uncounted(run, tasks) and Callgrind.find() is None:
            raise InputError(f"instructions are counted by valgrind, which is not installed here: {REMEDY}")
        run_alone(run, replace(BY_NAME["count"], todo=lambda run: uncounted(run, tasks)))
    return instructions(run, tasks)


@contextmanager
def _opened(options: Options, stage: str, *, as_json: bool) -> Iterator[Run]:
    """The run of the options, of which is shown what it does.

    Raises:
        InputError: the repository has no task.
    """
    from perfquarry.data.display import showing
    from perfquarry.flows.work import claiming

    console = Console(stderr=as_json)
    run = _run_of(options, console)
    with claiming(run, [stage], console), showing(console, silent=as_json):
        yield run


def _run_of(options: Options, console: Console) -> Run:
    from perfquarry.curation.in_force import accepted_tasks
    from perfquarry.data.logs import log_to
    from perfquarry.data.runs import run_name
    from perfquarry.flows.run import Run

    run = Run.open(options.model_dump_json())
    log_to(run.home.logs, console, run_name(f"{run.name}-screen"), run.name)
    if not accepted_tasks(run.store, run.name):
        raise InputError(f"no task of {run.name} in {run.home.tables}: run `perfquarry curate {options.repo}` first")
    return run


def _wanted(run: Run) -> list[Task]:
    """The accepted tasks that the options ask for."""
    from perfquarry.curation.in_force import accepted_tasks

    heads = run.options.changes
    return [task for task in accepted_tasks(run.store, run.name) if not heads or task.head_sha.startswith(heads)]


def _about(options: Options) -> Options:
    """The options of one task's repository and head, where a task is named instead of a repository.

    Raises:
        InputError: it is neither.
    """
    from perfquarry.curation.names import find_task, repository_of
    from perfquarry.data.registry import names

    try:
        repository_of(options.place, options.repo, options.source)
        return options
    except UnknownRepository as error:
        try:
            _, task = find_task(options.place, options.repo)
        except UnknownTask as none:
            raise InputError(f"{error}; nor is it a task: `perfquarry tasks REPO` lists them") from none
    if options.changes:
        raise InputError("--changes goes with a repository: a task has its own, such as perfquarry problems TASK")
    place = task.repo if task.repo in names() or not task.url else task.url
    return options.model_copy(update={"repo": place, "changes": (task.head_sha,)})
