"""What `perfquarry exchange` shows of a folder of requests and answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer

from perfquarry.data.errors import InputError
from perfquarry.data.records import Record
from perfquarry.flows.output import Listing, print_json, put
from perfquarry.llm.answers import problem_of
from perfquarry.llm.exchange_folder import ANSWERS, ExchangeFolder, ExchangeLine, form_of, result_of, texts_of
from perfquarry.llm.request import Reply

_CHARACTERS_PER_TOKEN = 4
_INDENT = "  "


class FormStatus(Record):
    """Requests of one form: how many there are and wait, and how much there is to read."""

    form: str
    requests: int
    answered: int
    waiting: int
    tokens: int
    """Of those that wait, about."""


class MisfitAnswer(Record):
    """An answer that does not fit."""

    file: str
    line: int
    custom_id: str
    problem: str


def status(path: Path, *, as_json: bool) -> None:
    """Counts of requests by the form of their answers.

    Raises:
        InputError: no such folder, or a line that cannot be read.
    """
    folder = _opened(path)
    asked, answered = _asked(folder), _answered(folder)
    kinds = Counter(form_of(line.content).name for line in asked.values())
    rows = []
    for kind, count in sorted(kinds.items()):
        mine = [line for line in asked.values() if form_of(line.content).name == kind]
        left = [line for line in mine if line.custom_id not in answered]
        size = sum(len(text) for line in left for _, text in texts_of(line.content))
        rows.append(
            FormStatus(
                form=kind,
                requests=count,
                answered=count - len(left),
                waiting=len(left),
                tokens=size // _CHARACTERS_PER_TOKEN,
            )
        )
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
    folder = _opened(path)
    asked, answered = _asked(folder), _answered(folder)
    if not asked:
        raise InputError(f"nothing was asked in {path} yet: it is filled by a run with --llm exchange:{path}")
    left = [line for line in asked.values() if line.custom_id not in answered]
    if not left and not as_json:
        typer.echo(f"all requests in {path} are answered: give the command that asked once more, and it goes on")
    if as_json:
        print_json([_facts(folder, line) for line in left[:number]])
        return
    for place, line in enumerate(left[:number], 1):
        form = form_of(line.content)
        typer.echo(f"# request {line.custom_id} ({place} of {len(left)} that wait; {line.path.name}:{line.number})")
        for role, text in texts_of(line.content):
            typer.echo(f"\n## {role}\n\n{text}")
        typer.echo(
            f"\n## answer\n\nWrite {_answer_file(folder, line)}, YAML or JSON; a text of one line needs no `|`:\n"
        )
        for row in _example(form.schema, form.schema):
            typer.echo(row)
        typer.echo()


def check(path: Path, *, as_json: bool) -> None:
    """Lists the answers that do not fit the form that was asked for.

    Raises:
        InputError: no such folder, or a line that cannot be read.
        typer.Exit: with code 1, some do not fit.
    """
    folder = _opened(path)
    asked = _asked(folder)
    lines = list(folder.responses())
    faults = [fault for line in lines if (fault := _fault(line, asked))]
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


def _opened(path: Path) -> ExchangeFolder:
    if not path.is_dir():
        raise InputError(f"there is no folder {path}; it is made by the first run with --llm exchange:{path}")
    return ExchangeFolder(path.expanduser().resolve())


def _asked(folder: ExchangeFolder) -> dict[str, ExchangeLine]:
    found: dict[str, ExchangeLine] = {}
    for line in folder.requests():
        found.setdefault(line.custom_id, line)
    return found


def _answered(folder: ExchangeFolder) -> set[str]:
    return {line.custom_id for line in folder.responses() if isinstance(result_of(line.content), Reply)}


def _fault(line: ExchangeLine, asked: Mapping[str, ExchangeLine]) -> MisfitAnswer | None:
    result = result_of(line.content)
    if line.custom_id not in asked:
        problem = "nobody asked this: no request has this custom_id"
    elif isinstance(result, str):
        problem = result
    else:
        problem = problem_of(result, form_of(asked[line.custom_id].content).schema)
    if not problem:
        return None
    return MisfitAnswer(file=line.path.name, line=line.number, custom_id=line.custom_id, problem=problem)


def _answer_file(folder: ExchangeFolder, line: ExchangeLine) -> Path:
    (folder.path / ANSWERS).mkdir(exist_ok=True)
    return folder.path / ANSWERS / f"{line.custom_id}.yaml"


def _facts(folder: ExchangeFolder, line: ExchangeLine) -> dict[str, Any]:
    form = form_of(line.content)
    return {
        "custom_id": line.custom_id,
        "messages": [{"role": role, "content": text} for role, text in texts_of(line.content)],
        "form": form.name,
        "schema": form.schema,
        "answer_file": str(_answer_file(folder, line)),
    }


def _example(schema: Mapping[str, Any], whole: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """An answer of this form in YAML, its fields explained in comments."""
    for name, field in _resolved(schema, whole).get("properties", {}).items():
        described = field.get("description", "")
        field = _resolved(field, whole)
        before = _INDENT * depth + name + ":"
        comment = f"  # {described or field.get('description', '')}".rstrip(" #")
        if field.get("type") == "array":
            yield before + comment
            values = _resolved(field.get("items", {}), whole).get("enum", ["…"])
            rows = list(_example(field.get("items", {}), whole, depth + 2)) or [" or ".join(map(str, values))]
            yield _INDENT * (depth + 1) + "- " + rows[0].lstrip()
            yield from rows[1:]
        elif field.get("properties"):
            yield before + comment
            yield from _example(field, whole, depth + 1)
        elif field.get("type") == "string" and "enum" not in field:
            yield f"{before} |{len(_INDENT)}{comment}"  # the number keeps the first line's own indentation
            yield f"{_INDENT * (depth + 1)}…"
        else:
            yield f"{before} {' or '.join(map(str, field.get('enum', [field.get('type', '…')])))}{comment}"


def _resolved(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema that a reference of this document names; of alternatives the first."""
    schema = next(iter(schema.get("anyOf", [])), schema)
    reference = schema.get("$ref", "")
    return whole.get("$defs", {}).get(reference.rpartition("/")[2], {}) if reference else schema
