"""What `perfquarry exchange` shows of a folder of requests and answers."""

from __future__ import annotations

from pathlib import Path

import typer

from perfquarry.data.errors import InputError
from perfquarry.flows.output import Listing, print_json, put
from perfquarry.llm.exchange_folder import form_of, texts_of
from perfquarry.llm.exchange_status import (
    answer_file,
    answered_in,
    asked_in,
    example_of,
    facts_of,
    fault_of,
    forms_in,
    opened,
)


def status(path: Path, *, as_json: bool) -> None:
    """Counts of requests by the form of their answers.

    Raises:
        InputError: no such folder, or a line that cannot be read.
    """
    rows = forms_in(opened(path))
    names = (">requests", ">answered", ">wait", ">tokens to read, about")
    table = Listing(("form of the answer", *names), f"Requests in {path}")
    for row in rows:
        table.add(row.form, *(f"{number:,}" for number in (row.requests, row.answered, row.waiting, row.tokens)))
    next_step = "all are answered: run the same command again"
    if any(row.waiting for row in rows):
        next_step = f"the next to answer: perfquarry exchange next {path}"
    put(rows, [table, next_step] if rows else [f"nothing was asked in {path} yet"], as_json=as_json)


def next_waiting(path: Path, number: int, *, as_json: bool) -> None:
    """The requests that wait, the oldest first, as the model reads them.

    Raises:
        InputError: no such folder, a line that cannot be read, or nothing was asked there.
    """
    folder = opened(path)
    asked, answered = asked_in(folder), answered_in(folder)
    if not asked:
        raise InputError(f"nothing was asked in {path} yet: it is filled by a run with --llm exchange:{path}")
    left = [line for line in asked.values() if line.custom_id not in answered]
    if not left and not as_json:
        typer.echo(f"all requests in {path} are answered: give the command that asked once more, and it goes on")
    if as_json:
        print_json([facts_of(folder, line) for line in left[:number]])
        return
    for place, line in enumerate(left[:number], 1):
        form = form_of(line.content)
        typer.echo(f"# request {line.custom_id} ({place} of {len(left)} that wait; {line.path.name}:{line.number})")
        for role, text in texts_of(line.content):
            typer.echo(f"\n## {role}\n\n{text}")
        typer.echo(
            f"\n## answer\n\nWrite {answer_file(folder, line)}, YAML or JSON; a text of one line needs no `|`:\n"
        )
        for row in example_of(form.schema, form.schema):
            typer.echo(row)
        typer.echo()


def check(path: Path, *, as_json: bool) -> None:
    """Lists the answers that do not fit the form that was asked for.

    Raises:
        InputError: no such folder, or a line that cannot be read.
        typer.Exit: with code 1, some do not fit.
    """
    folder = opened(path)
    asked = asked_in(folder)
    lines = list(folder.responses())
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
