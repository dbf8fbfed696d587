"""What the pages of the review work with: the queue, the log, the tables and what is sent back, opened once."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select

from perfquarry.curation.review.database import candidates
from perfquarry.curation.review.decisions import Decisions, Event
from perfquarry.curation.review.index import Index
from perfquarry.curation.review.queue import Queue
from perfquarry.curation.review.sending import Sending, Starter
from perfquarry.curation.review.tables import Details, Tables
from perfquarry.curation.review.vocabulary import SENT_BACK, Action
from perfquarry.data.errors import UnknownTask
from perfquarry.data.records import IntentClass


@dataclass(frozen=True)
class CandidatePlace:
    """Where a candidate lies in the tables."""

    repo: str
    config_hash: str
    fingerprint: str


class ReviewService:
    """All that the pages read and write; safe for several threads."""

    def __init__(self, index: Index, decisions: Decisions, tables: Tables, starter: Starter) -> None:
        self.index, self.decisions, self.tables = index, decisions, tables
        self.sending = Sending(index.engine, starter, self.refresh, str(tables.home.root))
        self.refresh()

    def refresh(self, repo: str | None = None) -> None:
        """Reads the tables again."""
        self.tables.forget()
        self.index.refresh(repo)
        self.decisions.settle_all()

    def queue(self, reviewer: str) -> Queue:
        """The queue as a reviewer sees it."""
        return Queue(self.index.engine, reviewer)

    def find(self, task_id: str) -> CandidatePlace:
        """A candidate.

        Raises:
            UnknownTask: there is none of this id.
        """
        query = select(candidates.c.repo, candidates.c.config_hash, candidates.c.fingerprint)
        with self.index.engine.connect() as connection:
            row = connection.execute(query.where(candidates.c.task_id == task_id)).first()
        if row is None:
            raise UnknownTask(f"no candidate {task_id!r} in this queue")
        return CandidatePlace(*row)

    def details(self, task_id: str) -> Details:
        """A candidate in full.

        Raises:
            UnknownTask: there is none of this id.
        """
        found = self.find(task_id)
        details = self.tables.details(found.repo, task_id, found.config_hash)
        if details is None:
            raise UnknownTask(f"{task_id!r} is no longer in the tables: load the queue again")
        return details

    def decide(
        self,
        task_id: str,
        reviewer: str,
        action: Action,
        *,
        seen: int,
        reason: str | None,
        note: str,
        intent: IntentClass | None = None,
    ) -> Event:
        """Records a decision, and starts the flow that it may ask for.

        Raises:
            Conflict: others acted meanwhile.
            UnknownTask, InputError: it cannot be recorded.
        """
        task = self.details(task_id).task if action in SENT_BACK else None
        self.find(task_id)
        event = self.decisions.record(task_id, reviewer, action, seen=seen, reason=reason, note=note, intent=intent)
        if task is not None:
            self.sending.start(event, task)
        return event

    def close(self) -> None:
        """Ends what runs, and the connections."""
        self.sending.close()
        self.index.engine.dispose()
