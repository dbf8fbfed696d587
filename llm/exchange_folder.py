"""The folder of exchange mode: files of requests, files of responses, and answers by hand."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml
from filelock import FileLock

from perfquarry.data.errors import InputError
from perfquarry.llm.anthropic_provider import AnthropicProvider
from perfquarry.llm.openai_provider import OpenAIProvider
from perfquarry.llm.request import Reply

FILE_REQUESTS = 1000
"""Most requests of a file: one is read by a person, or sent as a batch."""
ANSWERS = "answers"
"""Subfolder of answers by hand: `ID.yaml`, `ID.json` or `ID.txt`, one a request."""
_SUFFIXES = (".json", ".txt", ".yaml", ".yml")


class ExchangeLine(NamedTuple):
    """A request or a response, and where it stands."""

    path: Path
    number: int
    """From 1."""
    content: Mapping[str, Any]
    """With a `custom_id`."""

    @property
    def custom_id(self) -> str:
        """The address of the request."""
        return str(self.content["custom_id"])


class AnswerForm(NamedTuple):
    """What an answer has to look like."""

    name: str
    schema: Mapping[str, Any]


@dataclass
class ExchangeFolder:
    """The files of a folder, which is made when something is asked.

    Raises:
        InputError: a line or an answer by hand cannot be read.
    """

    path: Path
    _begun: Path | None = field(default=None, init=False)
    """The file of requests that this object writes into."""

    def locked(self) -> FileLock:
        """The lock of all that ask here; makes the folder."""
        self.path.mkdir(parents=True, exist_ok=True)
        return FileLock(self.path / ".lock")

    def requests(self) -> Iterator[ExchangeLine]:
        """Requests in the order in which they were written."""
        return self._lines("requests")

    def responses(self) -> Iterator[ExchangeLine]:
        """Responses, then answers by hand."""
        yield from self._lines("responses")
        for path in sorted((self.path / ANSWERS).glob("*")):
            if path.suffix in _SUFFIXES:
                yield ExchangeLine(path, 1, {"custom_id": path.stem, **_by_hand(path)})

    def write(self, lines: list[Mapping[str, Any]]) -> list[Path]:
        """Adds requests to the file of this object, and to the next ones when it is full; those written to.

        Files of others are left alone: they may have been sent to somebody.
        """
        written = []
        while lines:
            free = FILE_REQUESTS - (_lines_of(self._begun) if self._begun else FILE_REQUESTS)
            if free <= 0:
                self._begun, free = self._next_file(), FILE_REQUESTS
            assert self._begun is not None
            with self._begun.open("a", encoding="utf-8") as file:
                file.writelines(f"{json.dumps(line)}\n" for line in lines[:free])
                file.flush()
                os.fsync(file.fileno())
            written.append(self._begun)
            lines = lines[free:]
        return written

    def _next_file(self) -> Path:
        taken = [path.stem.removeprefix("requests-") for path in self.path.glob("requests-*.jsonl")]
        number = 1 + max((int(one) for one in taken if one.isdecimal()), default=0)
        return self.path / f"requests-{number:04}.jsonl"

    def _lines(self, kind: Literal["requests", "responses"]) -> Iterator[ExchangeLine]:
        for path in sorted(self.path.glob(f"{kind}-*.jsonl")):
            texts = path.read_text(encoding="utf-8-sig", errors="replace").split("\n")
            if kind == "requests":
                texts = texts[:-1]  # of a line without its end, the writer was killed
            for number, text in enumerate(texts, 1):
                if not text.strip():
                    continue
                try:
                    line = json.loads(text)
                except (ValueError, RecursionError):
                    line = None
                if not isinstance(line, dict) or not isinstance(line.get("custom_id"), str):
                    raise InputError(f"{path}, line {number}: not a JSON object with a custom_id; mend or remove it")
                yield ExchangeLine(path, number, line)


class _PlainLoader(yaml.SafeLoader):
    """YAML as people mean it: what is no JSON value is text (yes, 2020-01-01, 1:30), and nothing stands for more."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  # as in the base class

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias (*name): write its text out")
        return super().compose_node(parent, index)


for _kind, _pattern, _firsts in (
    ("null", r"null|~|", ["n", "~", ""]),
    ("bool", r"true|false", ["t", "f"]),
    ("int", r"-?(?:0|[1-9][0-9]*)", list("-0123456789")),
    ("float", r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", list("-0123456789")),
):
    _PlainLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(f"^(?:{_pattern})$"), _firsts)


def result_of(line: Mapping[str, Any]) -> Reply | str:
    """The reply of a response in any of the formats, or why there is none."""
    if isinstance(line.get("result"), Mapping):
        return AnthropicProvider.result(line)
    if isinstance(line.get("text"), str):
        return Reply(text=line["text"])
    if isinstance(line.get("answer"), Mapping):
        return Reply(text=json.dumps(line["answer"]))
    if isinstance(line.get("response"), Mapping) or line.get("error"):
        return OpenAIProvider.result(line)
    return "a line without response, result, answer or text"


def texts_of(request: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a request says, in either provider's format: (role, text), the system's first."""
    body = _body(request)
    system = [("system", body["system"])] if isinstance(body.get("system"), str) else []
    return system + [(str(one["role"]), str(one["content"])) for one in body.get("messages", [])]


def _body(request: Mapping[str, Any]) -> Mapping[str, Any]:
    body = request.get("body") or request.get("params")
    return body if isinstance(body, dict) else {}


def form_of(request: Mapping[str, Any]) -> AnswerForm:
    """The form of the answer that a request names, in either provider's format."""
    body = _body(request)
    form = (body.get("response_format") or {}).get("json_schema")
    if form:
        return AnswerForm(str(form["name"]), form["schema"])
    schema = ((body.get("output_config") or {}).get("format") or {}).get("schema") or {}
    return AnswerForm(str(schema.get("title", "an answer")), schema)


def _by_hand(path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    if path.suffix == ".txt":
        return {"text": text}
    try:
        answer = json.loads(text) if path.suffix == ".json" else _PlainLoader(text).get_single_data()
        json.dumps(answer)
    except (TypeError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise InputError(f"{path}: it cannot be read: {' '.join(str(error).split())}; mend or remove it") from None
    if not isinstance(answer, dict):
        raise InputError(f"{path}: an answer is an object with the fields of its form; mend or remove it")
    return {"answer": answer}


def _lines_of(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)
