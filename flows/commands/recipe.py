"""`perfquarry recipe`: a draft of what decides how a repository's commits are built and tested."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(recipe)


def recipe(
    repo: Annotated[str, typer.Argument(help="Name in the registry, git URL, or local path.")],
    source: Annotated[
        str | None, typer.Option(help="Clone from this path or URL; REPO may then be a name of your own.")
    ] = None,
    to: Annotated[Path | None, typer.Option(help="File to write.", show_default="HOME/recipes/NAME.toml")] = None,
    home: Annotated[
        Path | None, typer.Option(help="Folder of the whole state.", show_default="PERFQUARRY_HOME or ./var")
    ] = None,
) -> None:
    """Write a recipe of a repository, to be edited: packages, Python, requirements, build, tests."""
    from perfquarry.flows.options import Options, default_jobs, home_of
    from perfquarry.flows.recipe import draft

    draft(Options(repo=repo, source=source, home=str(home_of(home).root), jobs=default_jobs()), to)
