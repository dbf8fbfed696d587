"""Files of predictions, in the form of SWE-bench, GSO and SWE-Perf."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from perfquarry.curation.evaluation.known import EXPERT, HALF, NOP, half_of
from perfquarry.data.errors import InputError
from perfquarry.data.records import Record, Task, content_id
from perfquarry.data.records.inputs import validation_message

LARGEST = 1024**3
"""Bytes of a file."""
MOST_CHARACTERS = 16 * 1024**2
"""Of one patch."""


class Prediction(Record):
    """One patch of a model for one task."""

    task_id: str
    model: str
    attempt: int
    """From 1, in the order of the files."""
    patch: str

    @property
    def patch_id(self) -> str:
        """Content address of the patch."""
        return content_id("patch", self.patch)


class _Entry(BaseModel):
    """One entry of a file; other fields, which many writers add, are not read."""

    model_config = ConfigDict(extra="ignore")

    instance_id: str = Field(min_length=1, max_length=300)
    model_name_or_path: str = Field(default="", max_length=300)
    model_patch: str | None = Field(max_length=MOST_CHARACTERS)


def read_predictions(names: Sequence[str], tasks: Sequence[Task]) -> list[Prediction]:
    """Predictions of all files; several for one task by one model are its attempts.

    A name is a file (.jsonl, a .json list, a .json object by instance_id), 'expert', 'half' or 'nop'. Predictions for
    other tasks are left out.

    Raises:
        InputError: a file is missing or no such file; the message names file and line.
    """
    known = {task.task_id for task in tasks}
    found: list[Prediction] = []
    attempts: Counter[tuple[str, str]] = Counter()
    for name in names:
        for entry in _entries(name, tasks):
            if entry.instance_id in known:
                key = entry.model_name_or_path or Path(name).stem, entry.instance_id
                attempts[key] += 1
                found.append(
                    Prediction(
                        task_id=entry.instance_id, model=key[0], attempt=attempts[key], patch=entry.model_patch or ""
                    )
                )
    if not found:
        some = ", ".join(sorted(known)[:3])
        raise InputError(f"{', '.join(names)}: no prediction is for a task of the dataset (such as {some})")
    return found


_KNOWN: dict[str, Callable[[str], str]] = {EXPERT: str, HALF: half_of, NOP: lambda _: ""}


def _entries(name: str, tasks: Iterable[Task]) -> list[_Entry]:
    if name in _KNOWN:
        made = ((task.task_id, _KNOWN[name](task.patch)) for task in tasks)
        return [
            _Entry(instance_id=task_id, model_name_or_path=name, model_patch=patch)
            for task_id, patch in made
            if patch or name != HALF
        ]
    path = Path(name).expanduser()
    try:
        if path.stat().st_size > LARGEST:
            raise InputError(f"{path} is larger than {LARGEST:,} bytes")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"cannot read predictions from {path}: {error}; or give '{EXPERT}', '{HALF}', '{NOP}'"
        ) from error
    return [_entry(raw, f"{path}, {place}") for place, raw in _raw(path, text)]


def _raw(path: Path, text: str) -> list[tuple[str, Any]]:
    """Entries with what names their places."""
    if path.suffix == ".json":
        try:
            whole = json.loads(text)
        except ValueError as error:
            raise InputError(f"{path} is no JSON: {error}") from error
        if isinstance(whole, Mapping):
            return [(f"entry {key!r}", _named(key, raw)) for key, raw in whole.items()]
        if isinstance(whole, list):
            return [(f"entry {number}", raw) for number, raw in enumerate(whole, 1)]
        raise InputError(f"{path} holds neither a list of predictions nor an object of them by instance_id")
    lines: list[tuple[str, Any]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                lines.append((f"line {number}", json.loads(line)))
            except ValueError as error:
                raise InputError(f"{path}, line {number}: no JSON: {error}") from error
    return lines


def _named(key: str, raw: Any) -> Any:
    """An entry of an object by instance_id: SWE-bench's has the id in it, too; a text alone is the patch."""
    if isinstance(raw, str):
        return {"instance_id": key, "model_patch": raw}
    return {"instance_id": key, **raw} if isinstance(raw, Mapping) else raw


def _entry(raw: Any, place: str) -> _Entry:
    try:
        return _Entry.model_validate(raw)
    except ValidationError as error:
        example = '{"instance_id": "…", "model_name_or_path": "…", "model_patch": "diff --git …"}'
        raise InputError(f"{place}: {validation_message(error)}; a prediction is {example}") from error
