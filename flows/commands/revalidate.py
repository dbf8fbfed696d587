"""`perfquarry revalidate SOURCE`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perfquarry.flows.options import home_of, settings_from


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command()
    def revalidate(
        source: Annotated[
            str, typer.Argument(help="Folder of a release, Parquet file of tasks, or a home's repository.")
        ],
        clone: Annotated[str | None, typer.Option("--source", help="Clone from this path or URL.")] = None,
        tasks: Annotated[str, typer.Option(help="Only these tasks: ID,ID (starts will do).")] = "",
        settings: Annotated[Path | None, typer.Option(help="TOML file with settings.")] = None,
        home: Annotated[
            Path | None, typer.Option(help="Folder of the whole state.", show_default="PERFQUARRY_HOME or ./var")
        ] = None,
        as_json: Annotated[bool, typer.Option("--json", help="Print facts as JSON, nothing else.")] = False,
    ) -> None:
        """Measure published tasks again, here: how many still hold?"""
        from perfquarry.flows.revalidation import revalidate as measure_again

        only = [part.strip() for part in tasks.split(",") if part.strip()]
        chosen = settings_from(settings, "heuristic", "unit-test")
        measure_again(home_of(home), source, clone, only, chosen, as_json=as_json)
