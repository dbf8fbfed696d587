"""`perfquarry recipe` and `pulls`: what is known of a repository beside its history."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from perfquarry.data.errors import InputError
from perfquarry.data.output import Report, show
from perfquarry.flows.commands.shared import Asked, Json, app, with_options


@app.command(example="recipe mine --source https://example.org/mine.git")
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


@app.command(example="pulls numpy --offline")
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
    from perfquarry.data.display import showing
    from perfquarry.data.logs import log_to
    from perfquarry.data.runs import run_name
    from perfquarry.flows.run import Run
    from perfquarry.miners.pulls.into_tables import crawl, reconstruct, report
    from perfquarry.miners.pulls.policies import POLICIES

    asked = options(jobs=1)
    if policy is not None and policy not in POLICIES:
        raise InputError(f"unknown policy {policy!r}: give one such as merged; known are {', '.join(POLICIES)}")
    settings = asked.settings.pulls.model_copy(update={"policy": policy} if policy else {})
    asked = asked.model_copy(update={"settings": asked.settings.model_copy(update={"pulls": settings})})
    run, console = Run.open(asked.model_dump_json()), Console(stderr=as_json)
    log_to(run.home.logs, console, run_name(f"{run.name}-pulls"), run.name)
    with showing(console, silent=as_json):
        if offline:
            crawled = reconstruct(run, run.clone, run.repository)
        else:
            crawled = crawl(run, run.repository, asked.source, settings)
    return report(run, crawled, settings, run.places, policy)
