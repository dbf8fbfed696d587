"""`perfquarry exchange`: the folder of a model that is asked by files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perfquarry.flows.commands.shared import Json, app

Folder = Annotated[Path, typer.Argument(help="DIR of --llm exchange:DIR.", file_okay=False)]

exchange = typer.Typer(no_args_is_help=True, help="Requests and answers in the folder of --llm exchange:DIR.")
app.add_typer(exchange, name="exchange")


@exchange.command()
def status(folder: Folder, as_json: Json = False) -> None:
    """Show how many requests are answered, by form and file, and how many wait."""
    from perfquarry.flows.exchange import status as report

    report(folder, as_json=as_json)


@exchange.command("next")
def show_next(
    folder: Folder,
    number: Annotated[int, typer.Option("--number", "-n", min=1, help="At most this many of the waiting ones.")] = 1,
    as_json: Json = False,
) -> None:
    """Print the next request that waits as the model reads it, and where its answer belongs."""
    from perfquarry.flows.exchange import next_waiting

    next_waiting(folder, number, as_json=as_json)


@exchange.command()
def check(folder: Folder, as_json: Json = False) -> None:
    """Check each answer against the form asked for; exit code 1 and the place of each that does not fit."""
    from perfquarry.flows.exchange import check as report

    report(folder, as_json=as_json)
