"""What was spent, row by row, and the budget it is held against."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow.compute as pc

from perfquarry.data.errors import BudgetExceeded, InputError
from perfquarry.data.records import CallMode, LlmCall, Reason, Stamp, content_id
from perfquarry.data.store import TableStore
from perfquarry.llm.answers import read
from perfquarry.llm.request import Got
from perfquarry.llm.secrets import without_secrets

_STATUS = {"malformed": Reason.MALFORMED, "refused": Reason.REFUSED}


class Ledger:
    """Rows of one repository and one run. All calls may come from several threads."""

    def __init__(self, store: TableStore, stamp: Stamp, provider: str) -> None:
        self._store, self._stamp, self._provider = store, stamp, provider
        self._lock = threading.Lock()

    def spent(self) -> float:
        """USD of all rows of the repository, of every stage and run. Calls without a known price are not in it."""
        with self._lock:
            costs = self._store.scan(LlmCall, self._stamp.repo, columns=["cost_usd"])["cost_usd"]
        return float(pc.sum(costs).as_py() or 0.0)

    def write(self, gots: Sequence[Got], mode: CallMode) -> None:
        """Adds a row for each reply, as one part."""
        rows = [self._row(got, mode) for got in gots]
        with self._lock:
            self._store.append(rows)

    def _row(self, got: Got, mode: CallMode) -> LlmCall:
        request, reply = got.request, got.reply
        reading = read(reply, request.answer)
        address = request.address
        same = content_id(mode, self._provider, address, request.purpose.stage, request.purpose.change_id)
        return LlmCall(
            **self._stamp.fields(),
            **request.purpose.model_dump(),
            status="kept" if reading.status == "ok" else "rejected",
            reason=_STATUS.get(reading.status),
            call_id=uuid.uuid4().hex if mode in ("live", "batch") else same,
            address=address,
            provider=self._provider,
            model=request.model,
            mode=mode,
            cached=got.cached,
            repair=request.repair,
            input_tokens=reply.usage.input_tokens,
            cached_tokens=reply.usage.cached_tokens,
            output_tokens=reply.usage.output_tokens,
            cost_usd=got.cost_usd,
            detail=without_secrets(reading.detail).encode(errors="replace").decode()[:500],
        )


class Budget:
    """Money of one repository: what the ledger has, what calls under way may cost, what may be spent.

    Exact for one process at a time: what others spend meanwhile is seen when the next client is opened.
    """

    def __init__(self, limit: float | None, ledger: Ledger) -> None:
        self._limit, self._ledger = limit, ledger
        self._spent = ledger.spent() if limit is not None else 0.0
        self._reserved = 0.0
        self._lock = threading.Lock()

    def reserve(self, usd: float | None, model: str) -> float:
        """Sets aside what a call costs at most.

        Raises:
            BudgetExceeded: it might come to more than is left.
            InputError: there is a limit, but no price of the model.
        """
        if self._limit is None:
            return 0.0
        if usd is None:
            raise InputError(
                f"a budget needs the price of {model}, which is not known: add it to the settings under llm.prices"
            )
        with self._lock:
            if self._spent + self._reserved + usd > self._limit:
                under_way = f" and up to {self._reserved:.4f} USD under way" if self._reserved else ""
                raise BudgetExceeded(
                    f"the budget of {self._limit:.2f} USD is used up: {self._spent:.4f} USD spent{under_way}, and the "
                    f"next call of {model} may cost {usd:.4f} USD. What was answered is kept: run the same command "
                    "with a larger budget (--budget-usd, or budget_usd under llm in the settings) to go on from here; "
                    "`perfquarry costs` shows what it was spent on."
                )
            self._reserved += usd
        return usd

    def release(self, reserved: float, spent: float | None) -> None:
        """Puts back what was set aside, less what was spent."""
        with self._lock:
            self._reserved = max(0.0, self._reserved - reserved)
            self._spent += spent or 0.0

    @contextmanager
    def held(self, usd: float | None, model: str) -> Iterator[list[float | None]]:
        """Sets money aside for as long as a call lasts; the caller appends what it cost."""
        reserved = self.reserve(usd, model)
        costs: list[float | None] = []
        try:
            yield costs
        finally:
            self.release(reserved, sum(cost or 0.0 for cost in costs))
