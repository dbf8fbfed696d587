"""`perfquarry revalidate SOURCE`."""

from __future__ import annotations

from typing import Annotated

import typer

from perfquarry.data.home import home_of
from perfquarry.flows.commands.completion import repositories
from perfquarry.flows.commands.shared import Clone, HomeFolder, Json, OnlyTasks, SettingsFile, app, parts_of


@app.command()
def revalidate(
    source: Annotated[
        str,
        typer.Argument(
            help="Folder of a release, Parquet file of tasks, or a home's repository.", autocompletion=repositories
        ),
    ],
    clone: Clone = None,
    tasks: OnlyTasks = "",
    settings: SettingsFile = None,
    home: HomeFolder = None,
    as_json: Json = False,
) -> None:
    """Measure published tasks again, here: how many still hold?"""
    place, only = home_of(home), parts_of("--tasks", tasks or None)
    from perfquarry.flows.options import settings_from
    from perfquarry.flows.revalidation import revalidate as measure_again

    measure_again(place, source, clone, only, settings_from(settings), as_json=as_json)
