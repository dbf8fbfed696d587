"""`perfquarry solve`, `evaluate`, `analyse` and `leaderboard`: from tasks to compared models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perfquarry.data.errors import InputError
from perfquarry.flows.options import home_of, settings_from

DatasetOption = Annotated[str, typer.Option(help="Folder of a release, Parquet file of tasks, or a home's repository.")]
CloneOption = Annotated[str | None, typer.Option("--source", help="Clone from this path or URL.")]
TasksOption = Annotated[str, typer.Option(help="Only these tasks: ID,ID (starts will do).")]
SettingsOption = Annotated[Path | None, typer.Option(help="TOML file with settings.")]
HomeOption = Annotated[
    Path | None, typer.Option(help="Folder of the whole state.", show_default="PERFQUARRY_HOME or ./var")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the report as JSON, nothing else.")]


def register(app: typer.Typer) -> None:
    """Adds the commands."""

    @app.command()
    def evaluate(
        predictions: Annotated[
            list[str],
            typer.Argument(
                help="Files (.jsonl, .json) of instance_id, model_name_or_path, model_patch; or expert, half, nop."
            ),
        ],
        dataset: DatasetOption,
        to: Annotated[Path, typer.Option(help="Folder of the report; an evaluation that was ended goes on there.")],
        clone: CloneOption = None,
        tasks: TasksOption = "",
        jobs: Annotated[int, typer.Option(min=1, help="Gradings at once, each on a core of its own.")] = 1,
        retries: Annotated[
            int, typer.Option(min=0, help="Times that a grading is begun anew after a fault of the machine.")
        ] = 2,
        settings: SettingsOption = None,
        home: HomeOption = None,
        as_json: JsonOption = False,
    ) -> None:
        """Grade the patches of models: are they correct, and as fast as the expert's?"""
        from perfquarry.flows.evaluation import evaluate as grade_all

        only = _parts(tasks)
        chosen = settings_from(settings, "heuristic", "unit-test")
        grade_all(
            home_of(home), predictions, dataset, clone, to, only, chosen, jobs=jobs, retries=retries, as_json=as_json
        )

    @app.command()
    def analyse(
        report: Annotated[Path, typer.Argument(help="Folder that perfquarry evaluate wrote.")],
        dataset: DatasetOption,
        llm: Annotated[str, typer.Option(help="Who is asked: openai:MODEL, anthropic:MODEL, exchange:DIR, …")],
        votes: Annotated[int, typer.Option(min=1, max=25, help="Answers of the hack judge for each patch.")] = 3,
        settings: SettingsOption = None,
        home: HomeOption = None,
        as_json: Annotated[
            bool, typer.Option("--json", help="Print a JSON line for each patch, nothing else.")
        ] = False,
    ) -> None:
        """Let a model read a report's patches: hacks, and what the expert did else. Grades stay as they are."""
        from perfquarry.flows.patch_readings import analyse as read_all

        read_all(
            home_of(home),
            report,
            dataset,
            llm,
            votes,
            settings_from(settings, "heuristic", "unit-test"),
            as_json=as_json,
        )

    @app.command()
    def solve(
        dataset: DatasetOption,
        to: Annotated[Path, typer.Option(help="File of predictions (.jsonl); what it lacks is added.")],
        llm: Annotated[
            str | None, typer.Option(help="A model that edits: openai:MODEL, anthropic:MODEL, exchange:DIR, …")
        ] = None,
        agent: Annotated[
            str | None,
            typer.Option(
                help="Or a command that edits {workspace}, told by the file {instructions}; {python}, {task} are there."
            ),
        ] = None,
        method: Annotated[
            str, typer.Option(help="oracle: the functions to change are named; locate: they are found first.")
        ] = "oracle",
        attempts: Annotated[int, typer.Option(min=1, help="Attempts at each task.")] = 1,
        name: Annotated[
            str | None, typer.Option(help="model_name_or_path of the predictions.", show_default="the model or agent")
        ] = None,
        passed: Annotated[str, typer.Option("--env", help="--agent: variables it gets from here: NAME,NAME.")] = "",
        minutes: Annotated[float, typer.Option(min=0.01, help="--agent: time of one attempt.")] = 30.0,
        clone: CloneOption = None,
        tasks: TasksOption = "",
        settings: SettingsOption = None,
        home: HomeOption = None,
    ) -> None:
        """Make predictions by a baseline: a model with one prompt, or an agent of yours."""
        import os

        from perfquarry.flows.solving import Solver
        from perfquarry.flows.solving import solve as solve_all

        if (llm is None) == (agent is None):
            raise InputError("give who solves: --llm openai:MODEL, or --agent 'COMMAND {workspace} {instructions}'")
        if method not in ("oracle", "locate"):
            raise InputError(f"--method {method}: it is oracle or locate")
        if missing := [one for one in _parts(passed) if one not in os.environ]:
            raise InputError(f"--env names {', '.join(missing)}, which is not set here")
        solver = Solver(
            name=name or (llm or str(agent)).split()[0],
            attempts=attempts,
            method="oracle" if method == "oracle" else "locate",
            llm=llm or "",
            agent=agent or "",
            passed=tuple(_parts(passed)),
            minutes=minutes,
        )
        chosen = settings_from(settings, "heuristic", "unit-test")
        solve_all(home_of(home), dataset, clone, _parts(tasks), to, solver, chosen)

    @app.command()
    def leaderboard(
        reports: Annotated[list[Path], typer.Argument(help="Folders that perfquarry evaluate wrote.")],
        to: Annotated[Path | None, typer.Option(help="Folder for the merged report.")] = None,
        as_json: JsonOption = False,
    ) -> None:
        """Compare models of several reports of the same dataset and protocol."""
        from perfquarry.flows.evaluation import leaderboard as compare

        compare(reports, to, as_json=as_json)


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
