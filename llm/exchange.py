"""Answers from somebody else: files of requests and responses in a folder, and cassettes."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from perfquarry.data.errors import AnswerMissing, AnswersAwaited
from perfquarry.llm.anthropic_provider import AnthropicProvider
from perfquarry.llm.exchange_folder import ExchangeFolder, result_of
from perfquarry.llm.openai_provider import OpenAIProvider
from perfquarry.llm.recordings import Cassette
from perfquarry.llm.reply_store import ReplyStore
from perfquarry.llm.request import Got, Reply, Request

_SHOWN = 5
_log = logging.getLogger("perfquarry.llm")


class Exchange:
    """Writes `requests-*.jsonl`, reads `responses-*.jsonl` and answers by hand; the folder is the only state.

    Responses may be lines of OpenAI's or Anthropic's batch output, whichever format the requests have,
    or `{"custom_id": ..., "answer": {...}}` (or "text") as a person would write.
    """

    name = "exchange"
    caches = False

    def __init__(self, folder: Path, form: type[OpenAIProvider] | type[AnthropicProvider]) -> None:
        self._folder, self._form = ExchangeFolder(folder), form
        self.where = str(folder)

    def collect(self, requests: Sequence[Request[Any]], reply_store: ReplyStore) -> Iterator[Got]:
        """Yields what is answered; writes down the rest and raises AnswersAwaited."""
        folder = self._folder
        with folder.locked():
            replies, failed, twice = self._responses()
            known = {line.custom_id for line in folder.requests()}
            missing = [request for request in requests if request.address not in replies]
            files = folder.write([self._form.line(one) for one in missing if one.address not in known])
        strange = sorted(set(replies) - known - {request.address for request in requests})
        notes = [
            *([f"{len(strange)} responses to requests that are not ours: {_some(strange)}"] if strange else []),
            *([f"{len(twice)} requests answered more than once, the first counts: {_some(twice)}"] if twice else []),
        ]
        for note in notes:
            _log.warning("%s: %s", folder.path, note)
        gots = [Got(one, replies[one.address], False, None) for one in requests if one.address in replies]
        reply_store.note(gots, "exchange")
        yield from gots
        if missing:
            asked = {request.address for request in missing}
            errors = [f"{address}: {text}" for address, text in failed.items() if address in asked]
            notes += [f"{len(errors)} responses are errors: {_some(errors)}"] if errors else []
            written = ", ".join(path.name for path in files) or "the requests-*.jsonl that are there"
            raise AnswersAwaited(
                f"waiting for {len(missing)} of {len(requests)} answers: {_some(sorted(asked))}. The requests are in "
                f"{folder.path} ({written}); put the answers beside them as responses-NAME.jsonl, one line each with "
                f"the request's custom_id, or one by one as `perfquarry exchange next {folder.path}` says, and run the "
                f"same command again." + "".join(f" Note: {note}." for note in notes)
            )

    def close(self) -> None:
        """Nothing to close."""

    def _responses(self) -> tuple[dict[str, Reply], dict[str, str], list[str]]:
        """Replies and errors by custom_id, and the ids answered twice."""
        replies: dict[str, Reply] = {}
        failed: dict[str, str] = {}
        times: Counter[str] = Counter()
        for line in self._folder.responses():
            result = result_of(line.content)
            if isinstance(result, Reply):
                times[line.custom_id] += 1
                replies.setdefault(line.custom_id, result)
            else:
                failed[line.custom_id] = result
        return replies, failed, sorted(address for address, count in times.items() if count > 1)


class CassetteReplay:
    """Answers from cassettes only."""

    name = "cassette"
    caches = False

    def __init__(self, folder: Path) -> None:
        self._cassette = Cassette(folder)
        self._folder = folder
        self.where = str(folder)

    def collect(self, requests: Sequence[Request[Any]], reply_store: ReplyStore) -> Iterator[Got]:
        """Yields what the cassettes hold; raises AnswerMissing for the rest."""
        found = [(request, self._cassette.get(request.address)) for request in requests]
        gots = [Got(request, reply, True, 0.0) for request, reply in found if reply is not None]
        reply_store.note(gots, "cassette")
        yield from gots
        if missing := [request for request, reply in found if reply is None]:
            about = [f"{one.address} ({_about(one)})" for one in missing]
            raise AnswerMissing(
                f"no cassette in {self._folder} answers {len(missing)} of {len(requests)} requests: {_some(about)}. "
                f"Record them (a live model with `record` under llm in the settings), or read the questions with "
                f"exchange:DIR and write {self._folder}/NAME.json: "
                '{"address": "…", "origin": "written by hand", "answer": {…}}'
            )

    def close(self) -> None:
        """Nothing to close."""


def _about(request: Request[Any]) -> str:
    purpose = request.purpose
    return " ".join(
        filter(None, (purpose.stage, purpose.prompt, purpose.change_id, "repair" if request.repair else ""))
    )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
