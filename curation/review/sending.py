"""Candidates that were sent back: the flows that this starts, one after the other, and how they fare."""

from __future__ import annotations

import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Protocol, cast

from pydantic import Field
from sqlalchemy import Engine, insert, select, update

from perfquarry.curation.review.database import runs
from perfquarry.curation.review.decisions import Event
from perfquarry.curation.review.vocabulary import SendBack
from perfquarry.data.errors import PerfquarryError
from perfquarry.data.records import Record, Task


class Starter(Protocol):
    """Runs the flow that a candidate is sent back to."""

    def run(self, task: Task, action: SendBack, wished_by: str, report: Callable[[str], None]) -> str:
        """Does the work to its end.

        `wished_by` is the `uid` of the event; `report` gets a line whenever there is news.

        Returns:
            The outcome in words.

        Raises:
            PerfquarryError: it could not be done.
        """

    def stop(self) -> None:
        """Ends what runs now; `run` then raises."""


class StartedFlow(Record):
    """A flow that a curator started."""

    id: int
    action: str
    reviewer: str
    state: str = Field(description="waiting, running, done, failed, interrupted.")
    text: str
    began_at: str
    ended_at: str | None

    @property
    def live(self) -> bool:
        """Whether something may still change."""
        return self.state in ("waiting", "running")


class Sending:
    """Starts flows in a thread: timings need the machine for themselves, so there is one at a time.

    `changed` is called with the repository's name when a flow has ended. `place` is this machine and home: runs of a
    server that died here are marked when the next one starts.
    """

    def __init__(self, engine: Engine, starter: Starter, changed: Callable[[str], object], place: str) -> None:
        self._engine, self._starter, self._changed = engine, starter, changed
        self._place = f"{socket.gethostname()}:{place}"
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="sent-back")
        with engine.begin() as connection:
            lost = update(runs).where(runs.c.place == self._place, runs.c.state.in_(["waiting", "running"]))
            connection.execute(lost.values(state="interrupted", ended_at=_now()))

    def start(self, event: Event, task: Task) -> int:
        """Queues the flow of an event; returns the number of the run."""
        row = {"task_id": task.task_id, "action": event.action, "reviewer": event.reviewer, "place": self._place}
        with self._engine.begin() as connection:
            key = connection.execute(
                insert(runs).values(**row, state="waiting", text="", began_at=_now())
            ).inserted_primary_key
        assert key
        self._pool.submit(self._run, key[0], event, task)
        return int(key[0])

    def of(self, task_id: str) -> list[StartedFlow]:
        """Runs of a candidate, newest first."""
        query = select(runs).where(runs.c.task_id == task_id).order_by(runs.c.id.desc()).limit(10)
        with self._engine.connect() as connection:
            rows = connection.execute(query).mappings()
            return [StartedFlow(**{name: row[name] for name in StartedFlow.model_fields}) for row in rows]

    def close(self) -> None:
        """Ends what runs; it goes on where it was when it is sent back again."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._starter.stop()
        self._pool.shutdown(wait=True)

    def _run(self, number: int, event: Event, task: Task) -> None:
        self._note(number, state="running")
        try:
            action = cast("SendBack", event.action)
            text = self._starter.run(task, action, event.uid, lambda line: self._note(number, text=line[-500:]))
        except PerfquarryError as error:
            self._note(number, state="failed", text=str(error)[-2000:], ended_at=_now())
        except BaseException as error:
            self._note(number, state="failed", text=f"{type(error).__name__}: {error}"[:2000], ended_at=_now())
            raise
        else:
            self._changed(task.repo)
            self._note(number, state="done", text=text, ended_at=_now())

    def _note(self, number: int, **values: str) -> None:
        with self._engine.begin() as connection:
            connection.execute(update(runs).where(runs.c.id == number).values(**values))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
