"""Replies in readable files, by content address: the cache, and cassettes."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from perfquarry.data.errors import InputError
from perfquarry.data.files import write_whole
from perfquarry.data.records import Record
from perfquarry.llm.request import Purpose, Reply, Stop, Usage

Origin = Literal["recorded", "written by hand", "a language model through exchange"]


class Recording(Record):
    """One file: `answer` is the object of a good answer, `text` any reply as it was said; one of them is set."""

    address: str
    origin: Origin = "recorded"
    note: str = Field(default="", description="For people: what the answer is an example of.")
    purpose: Purpose | None = None
    answer: dict[str, Any] | None = None
    text: str | None = None
    stop: Stop = "end"
    model: str = ""
    usage: Usage = Usage()

    @classmethod
    def of(cls, address: str, purpose: Purpose, reply: Reply) -> Recording:
        """What is written of a reply."""
        return cls(
            address=address, purpose=purpose, text=reply.text, stop=reply.stop, model=reply.model, usage=reply.usage
        )

    @property
    def reply(self) -> Reply:
        """The reply it holds."""
        text = json.dumps(self.answer, ensure_ascii=False) if self.text is None else self.text
        return Reply(text=text, stop=self.stop, model=self.model, usage=self.usage)


class RecordedAnswers:
    """A folder that this program writes: `<folder>/<aa>/<address>.json`. A file is there whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, address: str) -> Reply | None:
        """The reply, or None. A file that cannot be read counts as none: it is written anew."""
        try:
            return Recording.model_validate_json(self._path(address).read_bytes()).reply
        except (OSError, ValidationError):
            return None

    def put(self, recording: Recording) -> None:
        """Writes a reply.

        Raises:
            OSError: the disk refuses.
        """
        path = self._path(recording.address)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, recording.model_dump_json(indent=1, exclude_defaults=True) + "\n")

    def _path(self, address: str) -> Path:
        return self._folder / address[:2] / f"{address}.json"


class Cassette:
    """A folder of recordings whoever made them: each `*.json` below it holds one, each `*.jsonl` one per line.

    Raises:
        InputError: no such folder, a file or line that is no recording, or two of one address.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise InputError(f"there is no folder of cassettes at {folder}")
        places: dict[str, list[str]] = defaultdict(list)
        self._replies: dict[str, Reply] = {}
        for place, text in _texts(folder):
            try:
                recording = Recording.model_validate_json(text)
            except ValidationError as error:
                first = error.errors(include_input=False)[0]
                field = ".".join(str(part) for part in first["loc"])
                raise InputError(f"the cassette {place} is no recording: {field}: {first['msg']}") from None
            if (recording.answer is None) == (recording.text is None):
                raise InputError(f"the cassette {place} needs either 'answer' or 'text'")
            places[recording.address].append(place)
            self._replies[recording.address] = recording.reply
        if twice := [f"{address}: {', '.join(found)}" for address, found in places.items() if len(found) > 1]:
            raise InputError(f"cassettes answer a request twice: {'; '.join(twice[:3])}")

    def get(self, address: str) -> Reply | None:
        """The reply, or None."""
        return self._replies.get(address)


def _texts(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Where each recording of a folder is, and its JSON."""
    for path in sorted(folder.rglob("*.json")):
        yield str(path), path.read_bytes()
    for path in sorted(folder.rglob("*.jsonl")):
        for number, line in enumerate(path.read_bytes().splitlines(), 1):
            if line.strip():
                yield f"{path}, line {number}", line
