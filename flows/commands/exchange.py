"""`perfquarry exchange`: the folder of a model that is asked by files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perfquarry.data.output import Report
from perfquarry.flows.commands.shared import Commands, app

Folder = Annotated[Path, typer.Argument(help="DIR of --llm exchange:DIR.", file_okay=False)]

exchange = Commands(
    "exchange",
    "exchange status answers",
    no_args_is_help=True,
    help="Requests and answers in the folder of --llm exchange:DIR.",
)
app.add_typer(exchange)


@exchange.command(example="exchange status answers")
def status(folder: Folder) -> Report:
    """Show how many requests are answered, by form and file, and how many wait."""
    from perfquarry.llm.exchange_status import counts

    return counts(folder)


@exchange.command("next", example="exchange next answers --number 2")
def show_next(
    folder: Folder,
    number: Annotated[int, typer.Option("--number", "-n", min=1, help="At most this many of the waiting ones.")] = 1,
) -> Report:
    """Print the next request that waits as the model reads it, and where its answer belongs."""
    from perfquarry.llm.exchange_status import next_of

    return next_of(folder, number)


@exchange.command(example="exchange check answers")
def check(folder: Folder) -> Report:
    """Check each answer against the form asked for; exit code 1 and the place of each that does not fit."""
    from perfquarry.llm.exchange_status import check

    return check(folder)
