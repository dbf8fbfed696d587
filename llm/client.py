"""What stages use: `open_client(spec, ...)`, then `ask` or `ask_all`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from perfquarry.data.errors import AnswersAwaited
from perfquarry.data.home import Home
from perfquarry.data.records import Stamp
from perfquarry.data.store import TableStore
from perfquarry.llm.answers import Reading, read, repaired
from perfquarry.llm.anthropic_provider import AnthropicProvider
from perfquarry.llm.backends import Batch, Live
from perfquarry.llm.exchange import CassetteReplay, Exchange
from perfquarry.llm.openai_provider import OpenAIProvider
from perfquarry.llm.pace import Pace
from perfquarry.llm.reply_store import ReplyStore
from perfquarry.llm.request import Answer, Backend, Got, Request, Usage
from perfquarry.llm.settings import LlmSettings
from perfquarry.llm.spec import ModelSpec

T = TypeVar("T", bound=BaseModel)


@dataclass
class _Task(Generic[T]):
    """A question under way, with the places in the list that ask it."""

    request: Request[T]
    places: list[int]
    usage: Usage = field(default_factory=Usage)
    costs: list[float | None] = field(default_factory=list)
    cached: bool = True

    def add(self, got: Got) -> None:
        self.usage += got.reply.usage
        self.costs.append(got.cost_usd)
        self.cached &= got.cached

    def answer(self, reading: Reading) -> Answer[T]:
        cost = None if None in self.costs else sum(cost or 0.0 for cost in self.costs)
        value: Any = reading.value
        return Answer(reading.status, value, reading.detail, self.usage, cost, self.cached)


class Client:
    """Asks one model on behalf of one run of one stage. Close it, or use it as a context manager."""

    def __init__(self, backend: Backend, reply_store: ReplyStore, model: str) -> None:
        self._backend, self._reply_store, self.model = backend, reply_store, model

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._backend.close()

    def ask(self, request: Request[T]) -> Answer[T]:
        """Asks one question; raises as `ask_all` does."""
        for _, answer in self.ask_all([request]):
            return answer
        raise AssertionError("unreachable: a question without an answer raises")

    def ask_all(self, requests: Sequence[Request[T]]) -> Iterator[tuple[int, Answer[T]]]:
        """Answers as they come, each with its place in `requests`; bad ones get a second round, then are 'malformed'.

        What was yielded before an error is kept: the same call later goes on from there.

        Raises:
            BudgetExceeded: the next call might cost more than is left.
            AnswersAwaited: exchange mode wrote down what it needs answered.
            AnswerMissing: answers are missing in the cassettes.
            ModelFailed: the server fails for longer than retries last, or refuses us.
        """
        tasks: dict[str, _Task[T]] = {}
        for place, request in enumerate(requests):
            named = replace(request, model=request.model or self.model)
            tasks.setdefault(f"{named.model} {named.address}", _Task(named, [])).places.append(place)
        awaited: AnswersAwaited | None = None
        for last in (False, True):
            again: dict[str, _Task[T]] = {}
            try:
                for got in self._replies([task.request for task in tasks.values()]):
                    task = tasks[f"{got.request.model} {got.request.address}"]
                    task.add(got)
                    reading = read(got.reply, task.request.answer)
                    if reading.status == "malformed" and not last:
                        task.request = repaired(task.request, got.reply, reading.detail)
                        again[f"{task.request.model} {task.request.address}"] = task
                    else:
                        for place in task.places:
                            yield place, task.answer(reading)
            except AnswersAwaited as error:  # the second round has questions of its own
                awaited = awaited or error
            tasks = again
        if awaited is not None:
            raise awaited

    def _replies(self, requests: Sequence[Request[T]]) -> Iterator[Got]:
        rest: list[Request[T]] = []
        kept: list[Got] = []
        for request in requests:
            got = self._reply_store.cached(request) if self._backend.caches else None
            if got is None:
                rest.append(request)
            else:
                kept.append(got)
        self._reply_store.note(kept, "cache")
        yield from kept
        if rest:
            yield from self._backend.collect(rest, self._reply_store)


def open_client(spec: str, home: Home, store: TableStore, stamp: Stamp, settings: LlmSettings | None = None) -> Client:
    """The client of a spec (`ModelSpec`).

    Raises:
        InputError: no such spec, no key, no folder of cassettes.
    """
    settings = settings or LlmSettings()
    kind, rest = ModelSpec.parse(spec)
    backend: Backend
    if kind == "cassette":
        backend, model = CassetteReplay(Path(rest)), settings.model
    elif kind in ("openai", "anthropic"):
        provider = (AnthropicProvider if kind == "anthropic" else OpenAIProvider)(settings)
        pace = Pace(settings.concurrency, settings.requests_per_minute, settings.tokens_per_minute)
        backend = Batch(provider, home, settings.poll_seconds) if settings.batch else Live(provider, pace)
        model = rest
    else:
        form = AnthropicProvider if kind == "exchange-anthropic" else OpenAIProvider
        backend, model = Exchange(Path(rest).expanduser().resolve(), form), settings.model
    return Client(backend, ReplyStore(home, store, stamp, backend.name, backend.where, settings), model)
