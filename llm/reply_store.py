"""Where every reply passes: cache, ledger, budget and recordings of one client."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock

from perfquarry.data.errors import StoreError
from perfquarry.data.home import Home
from perfquarry.data.records import CallMode, Stamp, content_id
from perfquarry.data.store import TableStore
from perfquarry.llm.ledger import Budget, Ledger
from perfquarry.llm.prices import Prices
from perfquarry.llm.recordings import RecordedAnswers, Recording
from perfquarry.llm.request import Got, Reply, Request
from perfquarry.llm.secrets import without_secrets
from perfquarry.llm.settings import LlmSettings


class ReplyStore:
    """Keeps replies. All calls may come from several threads.

    Args:
        home: where the cache and the locks lie.
        store: where the ledger lies.
        stamp: repository, stage version and configuration of the ledger's rows.
        provider: name in the ledger.
        where: the server; equal requests to different servers are different.
    """

    def __init__(
        self, home: Home, store: TableStore, stamp: Stamp, provider: str, where: str, settings: LlmSettings
    ) -> None:
        self.home = home
        self.prices = Prices(settings.prices)
        self._scope = (provider, where)
        self._ledger = Ledger(store, stamp, provider)
        self.budget = Budget(settings.budget_usd, self._ledger)
        self._record = RecordedAnswers(Path(settings.record)) if settings.record else None

    def cached(self, request: Request[Any]) -> Got | None:
        """The kept reply to the same request of the same model at the same server."""
        reply = self._cache(request.model).get(request.address)
        return None if reply is None else Got(request, reply, cached=True, cost_usd=0.0)

    def turn(self, request: Request[Any]) -> FileLock:
        """Held while a request is asked, so that no other process or thread asks the same; dies with its holder."""
        return FileLock(self.home.locks / f"llm-{request.address[:3]}.lock")

    def note(self, gots: Sequence[Got], mode: CallMode) -> None:
        """Ledger rows of replies that are kept elsewhere."""
        if gots:
            self._ledger.write(gots, mode)

    def keep(self, pairs: Sequence[tuple[Request[Any], Reply]], mode: CallMode) -> list[Got]:
        """Ledger rows first, then the cache: a kill between them costs a second call, never an unknown one.

        Raises:
            StoreError: the disk refuses.
        """
        gots = []
        for request, said in pairs:
            reply = said.model_copy(update={"text": without_secrets(said.text)})
            cost = self.prices.cost(request.model, reply.usage, batch=mode == "batch")
            if not reply.usage.input_tokens and reply.stop != "refusal":  # the server does not say, but may bill
                cost = self.prices.most(request, batch=mode == "batch")
            gots.append(Got(request, reply, cached=False, cost_usd=cost))
        self._ledger.write(gots, mode)
        try:
            for request, reply, _, _ in gots:
                recording = Recording.of(request.address, request.purpose, reply)
                for folder in (self._cache(request.model), self._record):
                    if folder is not None and reply.stop != "broken":
                        folder.put(recording)
        except OSError as error:
            raise StoreError(f"cannot keep a reply below {self.home.root}: {error}") from error
        return gots

    def _cache(self, model: str) -> RecordedAnswers:
        return RecordedAnswers(self.home.llm / "replies" / content_id(*self._scope, model))
