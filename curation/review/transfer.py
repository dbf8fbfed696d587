"""Decisions as Parquet: for releases, for analysis, and from one database to another."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from perfquarry.curation.review.database import database_of
from perfquarry.curation.review.decisions import Decisions, Event
from perfquarry.curation.review.vocabulary import OPINIONS, RejectReason
from perfquarry.data.errors import InputError
from perfquarry.data.home import Home
from perfquarry.data.output import Report

_COLUMNS = {name: "decision" if name == "action" else name for name in Event.model_fields}
"""Names of the columns by those of the fields."""
_NULLABLE = ("reason", "intent", "undoes")
_LATER = ("intent",)
"""Columns that are missing in older files."""
SCHEMA = pa.schema([pa.field(column, pa.string(), name in _NULLABLE) for name, column in _COLUMNS.items()])


def transfer(home: Home, export_to: Path | None, log_to: Path | None, import_from: Path | None) -> Report:
    """Adds what a file holds, then writes the decisions that stand, and the log.

    Raises:
        InputError: there is no such file, or it holds no decisions.
    """
    if import_from and not import_from.is_file():
        raise InputError(f"there is no file {import_from}: name one that --export wrote, such as decisions.parquet")
    engine = database_of(home)
    decisions = Decisions(engine)
    facts: dict[str, object] = {}
    lines = []
    if import_from:
        total, new = import_decisions(decisions, import_from)
        facts |= {"imported_from": str(import_from), "events": total, "new": new}
        lines.append(f"{import_from}: {total} events, {new} of them new")
    if export_to:
        exported = export_decisions(decisions, export_to)
        facts |= {"exported_to": str(export_to), "exported": exported}
        lines.append(f"{export_to}: {exported} decisions")
    if log_to:
        logged = export_log(decisions, log_to)
        facts |= {"log": str(log_to), "logged": logged}
        lines.append(f"{log_to}: {logged} events")
    engine.dispose()
    return Report(facts, lines)


def export_decisions(decisions: Decisions, path: Path) -> int:
    """Writes what each reviewer thinks of each candidate now; returns the number of rows.

    Raises:
        InputError: the file cannot be written.
    """
    now = decisions.standing()
    return _write((one for one in decisions.log() if one.uid in now), path)


def export_log(decisions: Decisions, path: Path) -> int:
    """Writes the whole log, oldest event first; returns the number of rows.

    Raises:
        InputError: the file cannot be written.
    """
    return _write(decisions.log(), path)


def import_decisions(decisions: Decisions, path: Path) -> tuple[int, int]:
    """Adds what a file of either kind holds; events known already are passed over, so it may be imported twice.

    Returns:
        Events in the file, and how many of them were new.

    Raises:
        InputError: the file is none of decisions; nothing was added.
    """
    try:
        rows = pq.read_table(path).to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"cannot read the decisions {path}: {error}") from error
    log = [_checked(row, f"{path}, row {number}") for number, row in enumerate(rows, 1)]
    return len(log), decisions.add(log)


def _write(log: Iterable[Event], path: Path) -> int:
    rows = [{_COLUMNS[name]: value for name, value in one.model_dump().items()} for one in log]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows, SCHEMA), path, compression="zstd")
    except OSError as error:
        raise InputError(f"cannot write the decisions to {path}: {error}") from error
    return len(rows)


def _checked(row: dict[str, object], place: str) -> Event:
    row = {**dict.fromkeys(_LATER), **row}
    if missing := [column for column in _COLUMNS.values() if column not in row]:
        raise InputError(f"{place}: these columns are missing: {', '.join(missing)}")
    try:
        event = Event.model_validate({name: row[column] for name, column in _COLUMNS.items()})
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        raise InputError(f"{place}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    if event.action == "reject" and event.reason not in set(RejectReason):
        raise InputError(f"{place}: {event.reason!r} is no reason of a rejection")
    if (event.action == "undo") != (event.undoes is not None):
        raise InputError(f"{place}: an undo names what it takes back, other actions do not")
    if event.action in OPINIONS and not event.reviewer:
        raise InputError(f"{place}: it has no reviewer")
    return event
