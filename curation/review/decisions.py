"""Decisions of curators: an audit log that only grows, and what stands after it.

An opinion never replaces another reviewer's. Whoever decides says which version of the candidate's
log they saw; if others acted meanwhile, nothing is written and `Conflict` says what they did.
"""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, get_args

from pydantic import Field
from sqlalchemy import Connection, Engine, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from perfquarry.curation.review.database import candidates, events, heads, opinions
from perfquarry.curation.review.vocabulary import OPINIONS, SENT_BACK, Action, Outcome, RejectReason
from perfquarry.data.errors import InputError
from perfquarry.data.records import IntentClass, Record

NOTE_LIMIT = 4000
"""Longest note, characters."""


MOST_EVENTS = 2**31 - 1
"""Largest number of an event or version: that of an integer in Postgres."""


class Event(Record):
    """One line of the audit log."""

    uid: str = Field(pattern=r"^[0-9a-z]{1,32}$", description="32 hexadecimal digits, unique over all databases.")
    task_id: str = Field(min_length=1, max_length=200)
    fingerprint: str = Field(default="", max_length=40, description="Of the patch and the figures that were seen.")
    reviewer: str = Field(max_length=80)
    action: Action
    reason: str | None = Field(default=None, description="Code of a rejection (`vocabulary.RejectReason`).")
    note: str = Field(default="", max_length=NOTE_LIMIT, pattern=r"^[^\x00]*$")
    intent: IntentClass | None = Field(default=None, description="Class of the change, where an acceptance sets it.")
    undoes: str | None = Field(default=None, max_length=32, description="`uid` of the event that an undo takes back.")
    at: str = Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]*\+00:00$", description="ISO 8601, UTC.")


class ReviewerOpinion(Record):
    """What one reviewer thinks of one candidate now."""

    reviewer: str
    uid: str
    action: str
    reason: str | None
    fingerprint: str
    at: str


class Conflict(Exception):
    """Others acted on the candidate since the reviewer saw it; nothing was written."""

    def __init__(self, version: int, since: Sequence[Event]) -> None:
        super().__init__(f"{len(since)} events since")
        self.version, self.since = version, list(since)


def outcome_of(standing: Iterable[ReviewerOpinion], fingerprint: str, required: int) -> Outcome:
    """What the opinions come to; one that sent the candidate back lapses when its figures are new."""
    live = [one for one in standing if counts(one, fingerprint)]
    kinds = {"sent-back" if one.action in SENT_BACK else one.action for one in live}
    if not kinds:
        return "open"
    if len(kinds) > 1:
        return "disputed"
    kind = kinds.pop()
    if kind == "sent-back":
        return "sent-back"
    if len(live) < required:
        return "waiting"
    return "accepted" if kind == "accept" else "rejected"


def counts(opinion: ReviewerOpinion, fingerprint: str) -> bool:
    """Whether an opinion still says something: always, but for a send-back whose answer has come."""
    return opinion.action not in SENT_BACK or not fingerprint or opinion.fingerprint == fingerprint


def standing(log: Iterable[Event]) -> list[ReviewerOpinion]:
    """The newest opinion of each reviewer that was not undone."""
    log = sorted(log, key=lambda one: one.at)
    undone = {one.undoes for one in log}
    newest: dict[str, Event] = {}
    for one in log:
        if one.action in OPINIONS and one.uid not in undone:
            newest[one.reviewer] = one
    fields = set(ReviewerOpinion.model_fields)
    return [ReviewerOpinion(**one.model_dump(include=fields)) for one in newest.values()]


class Decisions:
    """Reads and adds to the log. Each method is one transaction.

    `required` equal opinions settle a candidate (1 or 2).
    """

    def __init__(self, engine: Engine, required: int = 1) -> None:
        self.engine, self.required = engine, required

    def record(
        self,
        task_id: str,
        reviewer: str,
        action: Action,
        *,
        seen: int,
        reason: str | None = None,
        note: str = "",
        intent: IntentClass | None = None,
    ) -> Event:
        """Adds an event.

        `seen` is the version of the candidate's log when the reviewer decided; `intent` the class that an acceptance
        sets.

        Raises:
            Conflict: others acted since then; notes never conflict.
            InputError: reason or note do not fit the action.
        """
        note = note.strip().replace("\0", "\ufffd")
        if problem := _problem(action, reason, note):
            raise InputError(problem)
        with self.engine.begin() as connection:
            self._next(connection, task_id, reviewer, seen=None if action == "note" else seen)
            reason, intent = reason if action == "reject" else None, intent if action == "accept" else None
            return self._add(connection, task_id, reviewer, action, reason=reason, note=note, intent=intent)

    def undo(self, reviewer: str, task_id: str | None = None) -> Event | None:
        """Takes the reviewer's newest event back (of one candidate, or of all); None where there is nothing left."""
        with self.engine.begin() as connection:
            last = _newest(connection, reviewer, task_id)
            if last is None:
                return None
            self._next(connection, last.task_id, reviewer)
            if connection.scalar(select(events.c.id).where(events.c.undoes == last.uid)):
                return None  # the same reviewer was quicker in another window
            return self._add(connection, last.task_id, reviewer, "undo", undoes=last.uid)

    def last(self, reviewer: str) -> Event | None:
        """The reviewer's newest event that was not undone: what `undo` takes back."""
        with self.engine.connect() as connection:
            return _newest(connection, reviewer)

    def add(self, foreign: Sequence[Event]) -> int:
        """Adds events of other databases that are not in this one; returns how many those were."""
        with self.engine.begin() as connection:
            known = set(connection.scalars(select(events.c.uid)))
            new = {one.uid: one for one in foreign if one.uid not in known}
            for task_id, count in sorted(Counter(one.task_id for one in new.values()).items()):
                self._next(connection, task_id, "", by=count)
            if new:
                connection.execute(insert(events), [one.model_dump() for one in new.values()])
            for task_id in {one.task_id for one in new.values()}:
                self._settle(connection, task_id)
        return len(new)

    def settle_all(self) -> None:
        """Derives opinions and outcomes anew, after candidates or the number of reviewers changed."""
        with self.engine.begin() as connection:
            logs: dict[str, list[ReviewerOpinion]] = defaultdict(list)
            for row in connection.execute(select(opinions)).mappings():
                logs[row["task_id"]].append(_opinion(row))
            rows = connection.execute(select(candidates.c.task_id, candidates.c.fingerprint))
            now = {str(task_id): str(fingerprint) for task_id, fingerprint in rows}
            for task_id, outcome in connection.execute(select(heads.c.task_id, heads.c.outcome)).all():
                new = outcome_of(logs[task_id], now.get(task_id, ""), self.required)
                if new != outcome:
                    connection.execute(update(heads).where(heads.c.task_id == task_id).values(outcome=new))

    def standing(self) -> set[str]:
        """`uid` of the events that are somebody's opinion now; send-backs that were answered are none."""
        query = select(opinions, candidates.c.fingerprint.label("now")).outerjoin(
            candidates, candidates.c.task_id == opinions.c.task_id
        )
        with self.engine.connect() as connection:
            rows = connection.execute(query).mappings()
            return {row["uid"] for row in rows if counts(_opinion(row), row["now"] or "")}

    def intents(self) -> dict[str, tuple[IntentClass, str]]:
        """By task_id the class that the newest acceptance with one sets, and its reviewer."""
        now = self.standing()
        said = [one for one in self.log() if one.uid in now and one.intent]
        return {one.task_id: (one.intent, one.reviewer) for one in said if one.intent}

    def version(self, task_id: str) -> int:
        """Number of times somebody acted on a candidate."""
        with self.engine.connect() as connection:
            return connection.scalar(select(heads.c.version).where(heads.c.task_id == task_id)) or 0

    def log(self, task_id: str | None = None) -> list[Event]:
        """Events of a candidate, or all, oldest first."""
        query = select(events).order_by(events.c.at, events.c.id)
        if task_id is not None:
            query = query.where(events.c.task_id == task_id)
        with self.engine.connect() as connection:
            return [_event(row) for row in connection.execute(query).mappings()]

    def newest(self, number: int) -> tuple[list[Event], int]:
        """The newest events, newest first, and how many there are in all."""
        query = select(events).order_by(events.c.at.desc(), events.c.id.desc()).limit(number)
        with self.engine.connect() as connection:
            total = connection.scalar(select(func.count()).select_from(events)) or 0
            return [_event(row) for row in connection.execute(query).mappings()], total

    def opinions(self, task_id: str) -> list[ReviewerOpinion]:
        """What each reviewer thinks of a candidate now."""
        with self.engine.connect() as connection:
            rows = connection.execute(select(opinions).where(opinions.c.task_id == task_id)).mappings()
            return [_opinion(row) for row in rows]

    def _next(
        self, connection: Connection, task_id: str, reviewer: str, *, seen: int | None = None, by: int = 1
    ) -> None:
        """Takes the next version of a candidate's log; the row stays locked until the transaction ends."""
        turn = update(heads).where(heads.c.task_id == task_id).values(version=heads.c.version + by)
        if not connection.execute(turn).rowcount:
            try:
                with connection.begin_nested():
                    connection.execute(insert(heads).values(task_id=task_id, version=by, outcome="open"))
            except IntegrityError:  # somebody else's first event was quicker
                connection.execute(turn)
        version: int = connection.execute(select(heads.c.version).where(heads.c.task_id == task_id)).scalar_one()
        if seen is None or version == seen + by:
            return
        log = select(events).where(events.c.task_id == task_id).order_by(events.c.id).offset(seen)
        since = [_event(row) for row in connection.execute(log).mappings()]
        if any(one.reviewer != reviewer and one.action != "note" for one in since):
            raise Conflict(version - by, since)  # the transaction is rolled back

    def _after(self, connection: Connection, task_id: str) -> str:
        """Now, or just after the candidate's newest event where clocks disagree."""
        newest = connection.scalar(select(func.max(events.c.at)).where(events.c.task_id == task_id))
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        if newest is None or now > newest:
            return now
        later = datetime.fromisoformat(newest)
        return later.replace(microsecond=min(999_999, later.microsecond + 1)).isoformat(timespec="microseconds")

    def _add(self, connection: Connection, task_id: str, reviewer: str, action: Action, **more: Any) -> Event:
        """Adds an event of now, with `more` of its fields."""
        own = {"uid": uuid.uuid4().hex, "fingerprint": _fingerprint(connection, task_id)}
        at = self._after(connection, task_id)
        event = Event(task_id=task_id, reviewer=reviewer, action=action, at=at, **own, **more)
        connection.execute(insert(events).values(**event.model_dump()))
        self._settle(connection, task_id)
        return event

    def _settle(self, connection: Connection, task_id: str) -> None:
        rows = connection.execute(select(events).where(events.c.task_id == task_id).order_by(events.c.id)).mappings()
        now = standing([_event(row) for row in rows])
        connection.execute(delete(opinions).where(opinions.c.task_id == task_id))
        if now:
            connection.execute(insert(opinions), [{"task_id": task_id, **one.model_dump()} for one in now])
        outcome = outcome_of(now, _fingerprint(connection, task_id), self.required)
        connection.execute(update(heads).where(heads.c.task_id == task_id).values(outcome=outcome))


def _problem(action: str, reason: str | None, note: str) -> str:
    if action not in get_args(Action) or action == "undo":
        return f"{action!r} is no decision"
    if action == "reject" and reason not in set(RejectReason):
        return "a rejection needs one of the reasons"
    if not note and (action == "note" or reason == RejectReason.OTHER):
        return "write a note: it is what the decision consists of"
    if len(note) > NOTE_LIMIT:
        return f"the note has {len(note)} characters; {NOTE_LIMIT} are the most"
    return ""


def _fingerprint(connection: Connection, task_id: str) -> str:
    found = connection.scalar(select(candidates.c.fingerprint).where(candidates.c.task_id == task_id))
    return found or ""


def _newest(connection: Connection, reviewer: str, task_id: str | None = None) -> Event | None:
    mine = select(events).where(events.c.reviewer == reviewer, events.c.action != "undo")
    if task_id is not None:
        mine = mine.where(events.c.task_id == task_id)
    undone = select(events.c.undoes).where(events.c.undoes.is_not(None))
    newest = mine.where(events.c.uid.not_in(undone)).order_by(events.c.at.desc(), events.c.id.desc()).limit(1)
    row = connection.execute(newest).mappings().first()
    return _event(row) if row else None


def _event(row: Any) -> Event:
    return Event(**{name: row[name] for name in Event.model_fields})


def _opinion(row: Any) -> ReviewerOpinion:
    return ReviewerOpinion(**{name: row[name] for name in ReviewerOpinion.model_fields})
