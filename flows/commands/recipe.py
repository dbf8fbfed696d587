"""`perfquarry recipe`: a draft of what decides how a repository's commits are built and tested."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perfquarry.flows.commands.shared import HomeFolder, Repo, options_of


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(recipe)


def recipe(
    repo: Repo,
    source: Annotated[str | None, typer.Option(help="Clone from this path or URL; REPO may then be any name.")] = None,
    to: Annotated[Path | None, typer.Option(help="File to write.", show_default="HOME/recipes/NAME.toml")] = None,
    home: HomeFolder = None,
) -> None:
    """Write a recipe of a repository, to be edited: packages, Python, requirements, build, tests."""
    options = options_of(repo, source, home=home)
    from perfquarry.flows.recipe import draft

    draft(options, to)
