"""Ways to get replies: calls at once, and batches."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from filelock import FileLock
from pydantic import ValidationError

from perfquarry.data.errors import BudgetExceeded, ModelFailed
from perfquarry.data.files import write_whole
from perfquarry.data.home import Home
from perfquarry.data.records import Record, content_id
from perfquarry.llm.pace import Pace
from perfquarry.llm.reply_store import ReplyStore
from perfquarry.llm.request import Got, Reply, Request
from perfquarry.llm.sdk import SdkProvider
from perfquarry.llm.tokens import about_tokens

BATCH_REQUESTS = 10_000
BATCH_BYTES = 100 * 1024**2
"""Below both providers' limits (50,000 requests and 200 MB; 100,000 and 256 MB)."""


class Live:
    """Calls, several at once."""

    caches = True

    def __init__(self, provider: SdkProvider, pace: Pace) -> None:
        self._provider, self._pace = provider, pace
        self.name, self.where = provider.name, provider.where

    def collect(self, requests: Sequence[Request[Any]], reply_store: ReplyStore) -> Iterator[Got]:
        """Replies as they come. After the first failure those under way are awaited, then it is raised."""
        failure: BaseException | None = None
        with ThreadPoolExecutor(self._pace.concurrency, "llm") as pool:
            futures: list[Future[Got]] = [pool.submit(self._ask, request, reply_store) for request in requests]
            try:
                for future in as_completed(futures):
                    if future.cancelled():
                        continue
                    if (error := future.exception()) is None:
                        yield future.result()
                    elif failure is None:
                        failure = error
                        for other in futures:
                            other.cancel()
            finally:
                pool.shutdown(cancel_futures=True)
        if failure is not None:
            raise failure

    def close(self) -> None:
        """Closes the connections."""
        self._provider.close()

    def _ask(self, request: Request[Any], reply_store: ReplyStore) -> Got:
        with reply_store.turn(request):
            if (kept := reply_store.cached(request)) is not None:  # another process was faster
                reply_store.note([kept], "cache")
                return kept
            most = reply_store.prices.most(request)
            tokens = about_tokens(request.text) + request.max_tokens
            with reply_store.budget.held(most, request.model) as costs, self._pace.slot(tokens):
                (got,) = reply_store.keep([(request, self._provider.send(request))], "live")
                costs.append(got.cost_usd)
            return got


class Pending(Record):
    """A batch that was submitted: the file that a rerun finds."""

    batch: str
    addresses: list[str]


class Batch:
    """The provider's batch API. Its ids are in the home: whoever runs the same again takes up where a kill left off.

    A kill between the submission and the writing of the id (some milliseconds) loses that batch: it is
    paid and submitted again.
    """

    caches = True

    def __init__(self, provider: SdkProvider, home: Home, poll_seconds: float) -> None:
        self._provider, self._poll = provider, poll_seconds
        self.name, self.where = provider.name, provider.where
        scope = content_id(self.name, self.where)
        self._folder = home.llm / "batches" / scope
        self._lock = home.locks / f"llm-batch-{scope}.lock"

    def collect(self, requests: Sequence[Request[Any]], reply_store: ReplyStore) -> Iterator[Got]:
        """Replies batch by batch, after those of batches of earlier runs."""
        self._folder.mkdir(parents=True, exist_ok=True)
        left = {request.address: request for request in requests}
        failures: list[str] = []
        with FileLock(self._lock):
            for request in requests:  # another process may have held the lock
                if (kept := reply_store.cached(request)) is not None:
                    del left[request.address]
                    yield kept
            for path in sorted(self._folder.glob("*.json")):
                yield from self._finish(path, left, reply_store, failures)
            submitted, over = self._submit(list(left.values()), reply_store)
            for path in submitted:
                yield from self._finish(path, left, reply_store, failures)
        if over:
            raise over
        if failures:
            raise ModelFailed(
                f"{len(failures)} requests of batches failed, the first with: {failures[0]}. Run again to retry."
            )

    def close(self) -> None:
        """Closes the connections."""
        self._provider.close()

    def _submit(
        self, requests: Sequence[Request[Any]], reply_store: ReplyStore
    ) -> tuple[list[Path], BudgetExceeded | None]:
        """Submits what the budget bears, in as many batches as it takes."""
        over: BudgetExceeded | None = None
        bearable = []
        for request in requests:
            try:
                reply_store.budget.reserve(reply_store.prices.most(request, batch=True), request.model)
            except BudgetExceeded as error:
                over = error
                break
            bearable.append(request)
        return [self._begin(chunk) for chunk in _chunks(bearable)], over

    def _begin(self, requests: Sequence[Request[Any]]) -> Path:
        batch = self._provider.submit(requests)
        path = self._folder / f"{time.time_ns()}-{content_id(batch)}.json"
        write_whole(path, Pending(batch=batch, addresses=[one.address for one in requests]).model_dump_json(indent=1))
        return path

    def _finish(
        self, path: Path, left: dict[str, Request[Any]], reply_store: ReplyStore, failures: list[str]
    ) -> Iterator[Got]:
        """Waits for a batch and keeps its replies; those to other questions stay noted in the file."""
        try:
            pending = Pending.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise ModelFailed(f"the note of a batch {path} cannot be read: remove it to submit again") from error
        ours = [address for address in pending.addresses if address in left]
        if not ours:
            return
        while (found := self._provider.results(pending.batch)) is None:
            time.sleep(self._poll)
        pairs: list[tuple[Request[Any], Reply]] = []
        for address in ours:
            result = found.get(address, found.get("", f"batch {pending.batch} has no result of it"))
            if isinstance(result, Reply):
                pairs.append((left[address], result))
            else:
                failures.append(result)
            # reserved money is put back when the reply is known, or will never be
        gots = reply_store.keep(pairs, "batch")
        for address in ours:
            reply_store.budget.release(reply_store.prices.most(left.pop(address), batch=True) or 0.0, None)
        for got in gots:
            reply_store.budget.release(0.0, got.cost_usd)
        if rest := [address for address in pending.addresses if address not in set(ours)]:
            write_whole(path, Pending(batch=pending.batch, addresses=rest).model_dump_json(indent=1))
        else:
            path.unlink()
        yield from gots


def _chunks(requests: Sequence[Request[Any]]) -> Iterator[list[Request[Any]]]:
    chunk: list[Request[Any]] = []
    size = 0
    for request in requests:
        length = 2 * len(request.text.encode(errors="replace"))
        if chunk and (len(chunk) >= BATCH_REQUESTS or size + length > BATCH_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(request)
        size += length
    if chunk:
        yield chunk
