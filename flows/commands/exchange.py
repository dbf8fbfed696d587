"""`perfquarry exchange`: the folder of a model that is asked by files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perfquarry.data.errors import InputError
from perfquarry.data.output import Listing, print_json, put
from perfquarry.flows.commands.shared import Json, app

Folder = Annotated[Path, typer.Argument(help="DIR of --llm exchange:DIR.", file_okay=False)]

exchange = typer.Typer(no_args_is_help=True, help="Requests and answers in the folder of --llm exchange:DIR.")
app.add_typer(exchange, name="exchange")


@exchange.command()
def status(folder: Folder, as_json: Json = False) -> None:
    """Show how many requests are answered, by form and file, and how many wait."""
    from perfquarry.llm.exchange_status import forms_in, opened

    rows = forms_in(opened(folder))
    names = (">requests", ">answered", ">wait", ">tokens to read, about")
    table = Listing(("form of the answer", *names), f"Requests in {folder}")
    for row in rows:
        table.add(row.form, *(f"{number:,}" for number in (row.requests, row.answered, row.waiting, row.tokens)))
    next_step = "all are answered: run the same command again"
    if any(row.waiting for row in rows):
        next_step = f"the next to answer: perfquarry exchange next {folder}"
    put(rows, [table, next_step] if rows else [f"nothing was asked in {folder} yet"], as_json=as_json)


@exchange.command("next")
def show_next(
    folder: Folder,
    number: Annotated[int, typer.Option("--number", "-n", min=1, help="At most this many of the waiting ones.")] = 1,
    as_json: Json = False,
) -> None:
    """Print the next request that waits as the model reads it, and where its answer belongs."""
    from perfquarry.llm.exchange_folder import form_of, texts_of
    from perfquarry.llm.exchange_status import answer_file, answered_in, asked_in, example_of, facts_of, opened

    place = opened(folder)
    asked, answered = asked_in(place), answered_in(place)
    if not asked:
        raise InputError(f"nothing was asked in {folder} yet: it is filled by a run with --llm exchange:{folder}")
    left = [line for line in asked.values() if line.custom_id not in answered]
    if as_json:
        print_json([facts_of(place, line) for line in left[:number]])
        return
    if not left:
        typer.echo(f"all requests in {folder} are answered: give the command that asked once more, and it goes on")
    for count, line in enumerate(left[:number], 1):
        form = form_of(line.content)
        typer.echo(f"# request {line.custom_id} ({count} of {len(left)} that wait; {line.path.name}:{line.number})")
        for role, text in texts_of(line.content):
            typer.echo(f"\n## {role}\n\n{text}")
        typer.echo(f"\n## answer\n\nWrite {answer_file(place, line)}, YAML or JSON; a text of one line needs no `|`:\n")
        for row in example_of(form.schema, form.schema):
            typer.echo(row)
        typer.echo()


@exchange.command()
def check(folder: Folder, as_json: Json = False) -> None:
    """Check each answer against the form asked for; exit code 1 and the place of each that does not fit."""
    from perfquarry.llm.exchange_status import asked_in, fault_of, opened

    place = opened(folder)
    asked = asked_in(place)
    lines = list(place.responses())
    faults = [fault for line in lines if (fault := fault_of(line, asked))]
    if as_json:
        print_json(faults)
    else:
        for fault in faults:
            typer.echo(f"{fault.file}:{fault.line}: {fault.custom_id}: {fault.problem}")
        typer.echo(
            f"{len(lines)} answers, {len(faults)} of them do not fit"
            if faults
            else f"{len(lines)} answers fit their forms; what they say is tried by the command that asked"
        )
    if faults:
        raise typer.Exit(1)
