"""`perfquarry evaluate` and `perfquarry leaderboard`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perfquarry.flows.commands.shared import Clone, HomeFolder, Json, OnlyTasks, SettingsFile, parts_of
from perfquarry.flows.homes import home_of


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command()(evaluate)
    app.command()(leaderboard)


def evaluate(
    predictions: Annotated[
        list[str],
        typer.Argument(
            help="Files (.jsonl, .json) of instance_id, model_name_or_path, model_patch; or expert, half, nop."
        ),
    ],
    dataset: Annotated[str, typer.Option(help="Folder of a release, Parquet file of tasks, or a home's repository.")],
    to: Annotated[Path, typer.Option(help="Folder of the report; an evaluation that was ended goes on there.")],
    clone: Clone = None,
    tasks: OnlyTasks = "",
    jobs: Annotated[int, typer.Option(min=1, help="Gradings at once, each on a core of its own.")] = 1,
    retries: Annotated[
        int, typer.Option(min=0, help="Times that a grading is begun anew after a fault of the machine.")
    ] = 2,
    settings: SettingsFile = None,
    home: HomeFolder = None,
    as_json: Json = False,
) -> None:
    """Grade the patches of models: are they correct, and as fast as the expert's?"""
    place, only = home_of(home), parts_of("--tasks", tasks or None)
    from perfquarry.flows.evaluation import evaluate as grade_all
    from perfquarry.flows.options import settings_from

    chosen = settings_from(settings, "heuristic", "unit-test")
    grade_all(place, predictions, dataset, clone, to, only, chosen, jobs=jobs, retries=retries, as_json=as_json)


def leaderboard(
    reports: Annotated[list[Path], typer.Argument(help="Folders that perfquarry evaluate wrote.")],
    to: Annotated[Path | None, typer.Option(help="Folder for the merged report.")] = None,
    as_json: Json = False,
) -> None:
    """Compare models of several reports of the same dataset and protocol."""
    from perfquarry.flows.evaluation import leaderboard as compare

    compare(reports, to, as_json=as_json)
