"""`perfquarry recipe`: a draft of what decides how a repository's commits are built and tested."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perfquarry.flows.commands.shared import Asked, app, with_options


@app.command()
@with_options("repo", "home")
def recipe(
    options: Asked,
    source: Annotated[
        str | None, typer.Option(help="Clone from this path or URL; REPO may then be a name of your own.")
    ] = None,
    to: Annotated[Path | None, typer.Option(help="File to write.", show_default="HOME/recipes/NAME.toml")] = None,
) -> None:
    """Write a recipe of a repository, to be edited: packages, Python, requirements, build, tests."""
    from perfquarry.flows.recipe import draft

    draft(options(source=source), to)
