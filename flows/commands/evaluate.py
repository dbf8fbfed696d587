"""`perfquarry solve`, `evaluate`, `analyse` and `leaderboard`: from tasks to compared models."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from perfquarry.curation import Method
from perfquarry.curation.jobs import DoAll, Job
from perfquarry.data.errors import InputError
from perfquarry.data.output import Report, show
from perfquarry.flows.commands.shared import Asked, Clone, Json, OnlyTasks, app, parts_of, with_options

Dataset = Annotated[
    str, typer.Option("--dataset", help="Folder of a release, Parquet file of tasks, or a home's repository.")
]


@app.command(example="solve --dataset dataset --llm openai:MODEL --to predictions.jsonl")
@with_options("budget_usd", "settings", "home")
def solve(
    options: Asked,
    dataset: Dataset,
    to: Annotated[Path, typer.Option(help="File of predictions (.jsonl); missing ones are added.")],
    llm: Annotated[
        str | None, typer.Option(help="A model that edits: openai:MODEL, anthropic:MODEL, exchange:DIR, …")
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            help="Or a command that edits {workspace} as the file {instructions} says; also {python}, {task}."
        ),
    ] = None,
    method: Annotated[
        Method, typer.Option(help="oracle: the functions to change are named; locate: they are found first.")
    ] = "oracle",
    attempts: Annotated[int, typer.Option(min=1, help="Attempts at each task.")] = 1,
    name: Annotated[
        str | None, typer.Option(help="model_name_or_path of the predictions.", show_default="the model or agent")
    ] = None,
    passed: Annotated[
        str | None, typer.Option("--env", help="--agent: variables of this environment that it gets: NAME,NAME.")
    ] = None,
    minutes: Annotated[float, typer.Option(min=0.01, max=10_000, help="--agent: time of one attempt.")] = 30.0,
    jobs: Annotated[int, typer.Option(min=1, help="--agent: attempts at once.")] = 1,
    clone: Clone = None,
    tasks: OnlyTasks = "",
) -> None:
    """Make predictions by a baseline: a model with one prompt, or an agent of yours."""
    if (llm is None) == (agent is None):
        raise InputError("give who solves: --llm openai:MODEL, or --agent 'COMMAND {workspace} {instructions}'")
    variables = parts_of("--env", passed)
    if missing := [one for one in variables if one not in os.environ]:
        raise InputError(f"--env names {', '.join(missing)}, which is not set here: export it, such as OPENAI_API_KEY")
    only = parts_of("--tasks", tasks or None)
    from perfquarry.curation.evaluation.asking import solve_tasks
    from perfquarry.curation.evaluation.solvers import Predictions, Solver
    from perfquarry.curation.published import PublishedTasks

    solver = Solver(
        name=name or llm or str(agent).split()[0],
        attempts=attempts,
        method=method,
        llm=llm or "",
        agent=agent or "",
        passed=variables,
        minutes=minutes,
        jobs=jobs,
    )
    asked = options(repo="")
    chosen, place = asked.settings, asked.place
    published = PublishedTasks.open(place, dataset, clone, only, chosen)
    console = Console(stderr=True)
    predictions = Predictions(to, solver.name, lambda text: show(text, console=console))
    all_jobs = partial(_do_all, "solve", Path(dataset).name, at_once=jobs)
    solve_tasks(place, published, solver, predictions, chosen, chosen.llm, all_jobs)
    predictions.say(
        f"{to}: {len(predictions.done)} predictions of {solver.name}; grade them: perfquarry evaluate {to} …"
    )


@app.command(example="evaluate predictions.jsonl --dataset dataset --to report")
@with_options("settings", "home")
def evaluate(
    options: Asked,
    predictions: Annotated[
        list[str],
        typer.Argument(
            help="Files (.jsonl, .json) of instance_id, model_name_or_path, model_patch; or expert, half, nop."
        ),
    ],
    dataset: Dataset,
    to: Annotated[Path, typer.Option(help="Folder of the report; an interrupted evaluation continues there.")],
    clone: Clone = None,
    tasks: OnlyTasks = "",
    jobs: Annotated[int, typer.Option(min=1, help="Gradings at the same time, each on its own core.")] = 1,
    retries: Annotated[
        int, typer.Option(min=0, help="How often a grading is repeated after a fault of the machine.")
    ] = 2,
    as_json: Json = False,
) -> Report:
    """Grade the patches of models: are they correct, and as fast as the expert's?"""
    from perfquarry.curation.evaluation.evaluating import evaluate as grade_all

    asked, only = options(repo=""), parts_of("--tasks", tasks or None)
    console = Console(stderr=as_json)

    def gradings(subject: str) -> DoAll:
        return partial(_do_all, "evaluate", subject, at_once=jobs)

    return grade_all(asked.place, predictions, dataset, clone, to, only, asked.settings, gradings, retries, console)


@app.command(example="analyse report --dataset dataset --llm openai:MODEL")
@with_options("budget_usd", "settings", "home")
def analyse(
    options: Asked,
    report: Annotated[Path, typer.Argument(help="Folder that perfquarry evaluate wrote.")],
    dataset: Dataset,
    llm: Annotated[str, typer.Option(help="Model to ask: openai:MODEL, anthropic:MODEL, exchange:DIR, …")],
    votes: Annotated[int, typer.Option(min=1, max=25, help="Answers of the hack judge for each patch.")] = 3,
) -> Report:
    """Let a model read a report's patches: hacks, and what the expert did differently. Grades stay as they are."""
    from perfquarry.curation.evaluation.asking import read_report
    from perfquarry.curation.evaluation.evaluating import readings

    asked = options(repo="")
    chosen = asked.settings
    return readings(read_report(asked.place, report, dataset, llm, votes, chosen, chosen.llm), report)


@app.command(example="leaderboard report-a report-b")
def leaderboard(
    reports: Annotated[list[Path], typer.Argument(help="Folders that perfquarry evaluate wrote.")],
    to: Annotated[Path | None, typer.Option(help="Folder for the merged report.")] = None,
) -> Report:
    """Compare models of several reports of the same dataset and protocol."""
    from perfquarry.curation.evaluation.evaluating import scored
    from perfquarry.curation.evaluation.report import merged, read_readings, write_readings, write_report

    report, rows = merged(reports)
    if to:
        to.mkdir(parents=True, exist_ok=True)
        write_readings([row for folder in reports for row in read_readings(folder)], to)
        write_report(report, rows, to)
    return scored(report, to)


def _do_all(command: str, subject: str, jobs: Sequence[Job], at_once: int) -> None:
    """Does jobs that write their own results, in threads, or as task runs on the user's Prefect server.

    The first that raises ends those that have not begun, and its error is raised.

    Args:
        command: name of the flow, where PREFECT_API_URL names a server.
        subject: what the command is about: a part of the flow run's name.
        jobs: what is to do.
        at_once: most that work at the same time.
    """
    from perfquarry.harness.sandbox import ending_together

    if os.environ.get("PREFECT_API_URL"):
        from perfquarry.flows.server import quiet

        quiet()
        from perfquarry.flows.prefect_flows import do_jobs

        do_jobs(command, subject, jobs, at_once)
        return
    with ThreadPoolExecutor(max_workers=at_once) as pool, ending_together():
        list(pool.map(lambda job: job.work(), jobs))  # an error of one ends those that have not begun
