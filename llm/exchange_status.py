"""What waits in a folder of requests and answers, what does not fit, and what an answer looks like."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.segment import Segment, Segments

from perfquarry.data.errors import InputError
from perfquarry.data.output import Listing, Report
from perfquarry.data.records import Record
from perfquarry.llm.answers import problem_of
from perfquarry.llm.exchange_folder import ANSWERS, ExchangeFolder, ExchangeLine, form_of, result_of, texts_of
from perfquarry.llm.request import Reply

_CHARACTERS_PER_TOKEN = 4
_INDENT = "  "


class MisfitAnswer(Record):
    """An answer that does not fit."""

    file: str
    line: int
    custom_id: str
    problem: str


def counts(path: Path) -> Report:
    """How many requests of each form are answered, and how many wait.

    Raises:
        InputError: there is no such folder, or a line cannot be read.
    """
    folder = _opened(path)
    answered = _answered_in(folder)
    by_form: dict[str, list[ExchangeLine]] = defaultdict(list)
    for line in _asked_in(folder).values():
        by_form[form_of(line.content).name].append(line)
    names = (">requests", ">answered", ">wait", ">tokens to read, about")
    table = Listing(("form of the answer", *names), f"Requests in {path}")
    rows = []
    for form, mine in sorted(by_form.items()):
        left = [line for line in mine if line.custom_id not in answered]
        tokens = sum(len(text) for line in left for _, text in texts_of(line.content)) // _CHARACTERS_PER_TOKEN
        figures = {"requests": len(mine), "answered": len(mine) - len(left), "waiting": len(left), "tokens": tokens}
        rows.append({"form": form, **figures})
        table.add(form, *(f"{number:,}" for number in figures.values()))
    next_step = "all are answered: run the same command again"
    if any(row["waiting"] for row in rows):
        next_step = f"the next to answer: perfquarry exchange next {path}"
    return Report(rows, [table, next_step] if rows else [f"nothing was asked in {path} yet"])


def next_of(path: Path, number: int) -> Report:
    """So many of the requests that wait, as the model reads them.

    Raises:
        InputError: there is no such folder, nothing was asked in it, or a line cannot be read.
    """
    folder = _opened(path)
    asked, answered = _asked_in(folder), _answered_in(folder)
    if not asked:
        raise InputError(f"nothing was asked in {path} yet: it is filled by a run with --llm exchange:{path}")
    left = [line for line in asked.values() if line.custom_id not in answered]

    def parts() -> Iterator[Segments]:
        if not left:
            yield _whole(f"all requests in {path} are answered: give the command that asked once more, and it goes on")
        for count, line in enumerate(left[:number], 1):
            form = form_of(line.content)
            yield _whole(
                f"# request {line.custom_id} ({count} of {len(left)} that wait; {line.path.name}:{line.number})"
            )
            for role, text in texts_of(line.content):
                yield _whole(f"\n## {role}\n\n{text}")
            file = _answer_file(folder, line)
            yield _whole(f"\n## answer\n\nWrite {file}, YAML or JSON; a text of one line needs no `|`:\n")
            yield _whole("\n".join(_example_of(form.schema, form.schema)) + "\n")

    return Report([_facts_of(folder, line) for line in left[:number]], parts())


def check(path: Path) -> Report:
    """Which answers do not fit the form asked for; the exit code is 1 where one does not.

    Raises:
        InputError: there is no such folder, or a line cannot be read.
    """
    folder = _opened(path)
    asked, lines = _asked_in(folder), list(folder.responses())
    faults = [fault for line in lines if (fault := _fault_of(line, asked))]
    said = [f"{fault.file}:{fault.line}: {fault.custom_id}: {fault.problem}" for fault in faults]
    fit = f"{len(lines)} answers fit their forms; what they say is tried by the command that asked"
    said.append(f"{len(lines)} answers, {len(faults)} of them do not fit" if faults else fit)
    return Report(faults, map(_whole, said), int(bool(faults)))


def _whole(text: str) -> Segments:
    """A text of which the terminal gets every character, tabs too."""
    return Segments([Segment(text)], new_lines=True)


def _opened(path: Path) -> ExchangeFolder:
    if not path.is_dir():
        raise InputError(f"there is no folder {path}; it is made by the first run with --llm exchange:{path}")
    return ExchangeFolder(path.expanduser().resolve())


def _asked_in(folder: ExchangeFolder) -> dict[str, ExchangeLine]:
    """The requests by their ids, each as it was asked first."""
    found: dict[str, ExchangeLine] = {}
    for line in folder.requests():
        found.setdefault(line.custom_id, line)
    return found


def _answered_in(folder: ExchangeFolder) -> set[str]:
    """Ids of the requests with an answer that can be read."""
    return {line.custom_id for line in folder.responses() if isinstance(result_of(line.content), Reply)}


def _fault_of(line: ExchangeLine, asked: Mapping[str, ExchangeLine]) -> MisfitAnswer | None:
    """What is wrong with an answer; None where it fits."""
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
    """Where the answer of a request is written."""
    (folder.path / ANSWERS).mkdir(exist_ok=True)
    return folder.path / ANSWERS / f"{line.custom_id}.yaml"


def _facts_of(folder: ExchangeFolder, line: ExchangeLine) -> dict[str, Any]:
    """A request that waits, as JSON."""
    form = form_of(line.content)
    return {
        "custom_id": line.custom_id,
        "messages": [{"role": role, "content": text} for role, text in texts_of(line.content)],
        "form": form.name,
        "schema": form.schema,
        "answer_file": str(_answer_file(folder, line)),
    }


def _example_of(schema: Mapping[str, Any], whole: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """An answer of this form in YAML, its fields explained in comments."""
    for name, field in _resolved(schema, whole).get("properties", {}).items():
        described = field.get("description", "")
        field = _resolved(field, whole)
        before = _INDENT * depth + name + ":"
        comment = f"  # {described or field.get('description', '')}".rstrip(" #")
        if field.get("type") == "array":
            yield before + comment
            values = _resolved(field.get("items", {}), whole).get("enum", ["…"])
            rows = list(_example_of(field.get("items", {}), whole, depth + 2)) or [" or ".join(map(str, values))]
            yield _INDENT * (depth + 1) + "- " + rows[0].lstrip()
            yield from rows[1:]
        elif field.get("properties"):
            yield before + comment
            yield from _example_of(field, whole, depth + 1)
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
