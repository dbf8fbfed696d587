"""`perfquarry recipe` and `pulls`: what is known of a repository beside its history."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perfquarry.data.errors import InputError
from perfquarry.data.output import Report, show
from perfquarry.flows.commands.shared import Asked, Json, app, with_options


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
    from perfquarry.flows.run import Run
    from perfquarry.harness.metadata.drafts import text_of
    from perfquarry.harness.metadata.recipe import read_recipe
    from perfquarry.harness.rejections import Rejection
    from perfquarry.harness.trees.checkouts import Checkouts

    run = Run(options(source=source))
    file = to or run.home.recipes / f"{run.name}.toml"
    if file.exists():
        raise InputError(f"{file} is there already: edit it, or remove it to have a new draft")
    sha = run.newest_commit()
    tree = Checkouts(run.home, run.clone, run.name).tree(sha)
    if isinstance(tree, Rejection):
        raise InputError(f"the newest commit {sha} cannot be checked out: {tree.log}")
    text = text_of(run.repository, read_recipe(tree, run.repository), sha)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    show(f"{file}\nUncomment and correct what is wrong; then run perfquarry again.")


@app.command()
@with_options("repo", "source", "home", "settings")
def pulls(
    options: Asked,
    policy: Annotated[
        str | None, typer.Option(help="Why others are rejected: all, merged, labelled, sweperf, swebench.")
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="From merge and squash commits alone; no key.")] = False,
    as_json: Json = False,
) -> Report:
    """Read pull requests, their discussions and issues into the tables."""
    from perfquarry.flows.pulls import report

    return report(options(jobs=1), policy, offline=offline, as_json=as_json)
