"""Answers from somebody else: files of requests and responses in a folder, and cassettes."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock

from data.errors import AnswerMissing, AnswersAwaited, InputError
from llm.anthropic_provider import AnthropicProvider
from llm.desk import Desk
from llm.openai_provider import OpenAIProvider
from llm.recordings import Cassette, write_whole
from llm.request import Got, Reply, Request

FILE_REQUESTS = 50_000
"""Most lines of a file: OpenAI's limit of a batch."""
_SHOWN = 5
_log = logging.getLogger("perfquarry.llm")


class Exchange:
    """Writes `requests-*.jsonl`, reads `responses-*.jsonl`; the folder is the only state.

    Responses may be lines of OpenAI's or Anthropic's batch output, whichever format the requests have,
    or `{"custom_id": ..., "answer": {...}}` (or "text") as a person would write.
    """

    name = "exchange"
    caches = False

    def __init__(self, folder: Path, form: type[OpenAIProvider] | type[AnthropicProvider]) -> None:
        self._folder, self._form = folder, form
        self.where = str(folder)

    def collect(self, requests: Sequence[Request[Any]], desk: Desk) -> Iterator[Got]:
        """Yields what is answered; writes down the rest and raises AnswersAwaited."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self._folder / ".lock"):
            replies, failed, twice = self._responses()
            known = {line["custom_id"] for line in self._lines("requests")}
            missing = [request for request in requests if request.address not in replies]
            files = self._write([request for request in missing if request.address not in known])
        strange = sorted(set(replies) - known - {request.address for request in requests})
        notes = [
            *([f"{len(strange)} responses to requests that are not ours: {_some(strange)}"] if strange else []),
            *([f"{len(twice)} requests answered more than once, the first counts: {_some(twice)}"] if twice else []),
        ]
        for note in notes:
            _log.warning("%s: %s", self._folder, note)
        gots = [Got(one, replies[one.address], False, None) for one in requests if one.address in replies]
        desk.note(gots, "exchange")
        yield from gots
        if missing:
            asked = {request.address for request in missing}
            errors = [f"{address}: {text}" for address, text in failed.items() if address in asked]
            notes += [f"{len(errors)} responses are errors: {_some(errors)}"] if errors else []
            written = ", ".join(path.name for path in files) or "the requests-*.jsonl that are there"
            raise AnswersAwaited(
                f"waiting for {len(missing)} of {len(requests)} answers: {_some(sorted(asked))}. The requests are in "
                f"{self._folder} ({written}); put the answers beside them as responses-NAME.jsonl, one line each with "
                f"the request's custom_id, and run the same command again."
                + "".join(f" Note: {note}." for note in notes)
            )

    def close(self) -> None:
        """Nothing to close."""

    def _responses(self) -> tuple[dict[str, Reply], dict[str, str], list[str]]:
        """Replies and errors by custom_id, and the ids answered twice."""
        replies: dict[str, Reply] = {}
        failed: dict[str, str] = {}
        times: Counter[str] = Counter()
        for line in self._lines("responses"):
            address, result = line["custom_id"], _result(line)
            if isinstance(result, Reply):
                times[address] += 1
                replies.setdefault(address, result)
            else:
                failed[address] = result
        return replies, failed, sorted(address for address, count in times.items() if count > 1)

    def _lines(self, kind: str) -> Iterator[dict[str, Any]]:
        for path in sorted(self._folder.glob(f"{kind}-*.jsonl")):
            for number, text in enumerate(path.read_text(encoding="utf-8-sig", errors="replace").split("\n"), 1):
                if not text.strip():
                    continue
                try:
                    line = json.loads(text)
                except (ValueError, RecursionError):
                    line = None
                if not isinstance(line, dict) or not isinstance(line.get("custom_id"), str):
                    raise InputError(f"{path}, line {number}: not a JSON object with a custom_id; mend or remove it")
                yield line

    def _write(self, requests: Sequence[Request[Any]]) -> list[Path]:
        taken = len(list(self._folder.glob("requests-*.jsonl")))
        files = []
        for start in range(0, len(requests), FILE_REQUESTS):
            path = self._folder / f"requests-{taken + 1 + start // FILE_REQUESTS:04}.jsonl"
            lines = (json.dumps(self._form.line(one)) for one in requests[start : start + FILE_REQUESTS])
            write_whole(path, "".join(f"{line}\n" for line in lines))
            files.append(path)
        return files


class Replay:
    """Answers from cassettes only."""

    name = "cassette"
    caches = False

    def __init__(self, folder: Path) -> None:
        self._cassette = Cassette(folder)
        self._folder = folder
        self.where = str(folder)

    def collect(self, requests: Sequence[Request[Any]], desk: Desk) -> Iterator[Got]:
        """Yields what the cassettes hold; raises AnswerMissing for the rest."""
        found = [(request, self._cassette.get(request.address)) for request in requests]
        gots = [Got(request, reply, True, 0.0) for request, reply in found if reply is not None]
        desk.note(gots, "cassette")
        yield from gots
        if missing := [request for request, reply in found if reply is None]:
            about = [f"{one.address} ({' '.join(filter(None, _about(one)))})" for one in missing]
            raise AnswerMissing(
                f"no cassette in {self._folder} answers {len(missing)} of {len(requests)} requests: {_some(about)}. "
                f"Record them (a live model with `record` under llm in the settings), or read the questions with "
                f"exchange:DIR and write {self._folder}/NAME.json: "
                '{"address": "…", "origin": "written by hand", "answer": {…}}'
            )

    def close(self) -> None:
        """Nothing to close."""


def _result(line: Mapping[str, Any]) -> Reply | str:
    """A line of any of the three formats."""
    if isinstance(line.get("result"), Mapping):
        return AnthropicProvider.result(line)
    if isinstance(line.get("text"), str):
        return Reply(text=line["text"])
    if isinstance(line.get("answer"), Mapping):
        return Reply(text=json.dumps(line["answer"]))
    if isinstance(line.get("response"), Mapping) or line.get("error"):
        return OpenAIProvider.result(line)
    return "a line without response, result, answer or text"


def _about(request: Request[Any]) -> tuple[str, ...]:
    purpose = request.purpose
    return (purpose.stage, purpose.prompt, purpose.change_id, "repair" if request.repair else "")


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
