"""The queue: which candidates a reviewer asked for, in which order, and what comes next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal
from urllib.parse import urlencode

from pydantic import ConfigDict, Field
from sqlalchemy import ColumnElement, Engine, Select, and_, exists, func, or_, select, tuple_

from perfquarry.curation.review.database import candidates, heads, opinions
from perfquarry.data.records import Record

State = Literal["todo", "open", "waiting", "disputed", "sent-back", "accepted", "rejected", "all"]
Sort = Literal["speedup", "-speedup", "date", "-date"]
Finding = Literal["any", "blocking", "warning", "count", "none"]

PAGE = 50
"""Candidates a page."""

_WITH_HEADS = candidates.outerjoin(heads, heads.c.task_id == candidates.c.task_id)
_OUTCOME = func.coalesce(heads.c.outcome, "open")


class Filter(Record):
    """What is looked for; its fields are the parameters of every address, so that links keep it."""

    model_config = ConfigDict(defer_build=False)  # FastAPI reads its schema while the page is made
    q: str = Field(default="", max_length=200, description="Words that all must occur.")
    state: State = "todo"
    repo: str = Field(default="", max_length=200)
    finding: Finding = "any"
    sort: Sort = "speedup"
    page: int = Field(default=1, ge=1, le=100_000)

    def link(self, **changes: Any) -> str:
        """As the query part of an address, '?' included; '' for the defaults."""
        given = self.model_copy(update=changes).model_dump(exclude_defaults=True)
        return "?" + urlencode(given) if given else ""


class QueueEntry(Record):
    """One line of the queue."""

    task_id: str
    repo: str
    title: str
    status: str
    reason: str | None
    pull_number: int | None
    speedup: float | None
    low: float | None
    high: float | None
    overall_speedup: float | None
    overall_low: float | None
    overall_high: float | None
    workloads: int
    merged_at: str
    blocking: int
    warnings: int
    doubts: int
    outcome: str


class Queue:
    """Reads the queue for one reviewer."""

    def __init__(self, engine: Engine, reviewer: str) -> None:
        self._engine, self._reviewer = engine, reviewer

    def page(self, wanted: Filter) -> list[QueueEntry]:
        """One page of what fits."""
        query = self._query(wanted).order_by(*_order(wanted)).limit(PAGE).offset(PAGE * (wanted.page - 1))
        return self._entries(query)

    def count(self, wanted: Filter) -> int:
        """Candidates that fit."""
        query = select(func.count()).select_from(_WITH_HEADS)
        with self._engine.connect() as connection:
            return connection.scalar(query.where(*self._conditions(wanted))) or 0

    def counts(self, repo: str = "") -> dict[str, int]:
        """Candidates by outcome, of one repository or all."""
        query = select(_OUTCOME, func.count()).select_from(_WITH_HEADS).group_by(_OUTCOME)
        if repo:
            query = query.where(candidates.c.repo == repo)
        with self._engine.connect() as connection:
            return {str(outcome): int(count) for outcome, count in connection.execute(query)}

    def around(self, wanted: Filter, task_id: str, before: int = 4, after: int = 30) -> list[QueueEntry]:
        """Candidates next to one, which need not fit itself; it is among them if it does."""
        place = self._place(wanted, task_id)
        if place is None:
            return []
        earlier = self._entries(self._earlier(wanted, place).limit(before))
        return [*reversed(earlier), *self._entries(self._later(wanted, place).limit(after + 1))]

    def neighbours(self, wanted: Filter, task_id: str) -> tuple[str | None, str | None]:
        """Task ids before and after one; the first of the queue after one that is no candidate."""
        place = self._place(wanted, task_id)
        if place is None:
            return None, self.first(wanted)
        before = [one.task_id for one in self._entries(self._earlier(wanted, place).limit(1))]
        after = [one.task_id for one in self._entries(self._later(wanted, place).limit(2)) if one.task_id != task_id]
        return next(iter(before), None), next(iter(after), None)

    def first(self, wanted: Filter) -> str | None:
        """The first of the queue."""
        found = self._entries(self._query(wanted).order_by(*_order(wanted)).limit(1))
        return found[0].task_id if found else None

    def _place(self, wanted: Filter, task_id: str) -> tuple[Any, ...] | None:
        with self._engine.connect() as connection:
            query = select(*_columns(wanted)).where(candidates.c.task_id == task_id)
            row = connection.execute(query).first()
        if row is None:
            return None
        return (-row[0], row[1]) if wanted.sort.startswith("-") else tuple(row)

    def _earlier(self, wanted: Filter, place: tuple[Any, ...]) -> Select[Any]:
        backwards = (column.desc() for column in _order(wanted))
        return self._query(wanted).where(tuple_(*_order(wanted)) < place).order_by(*backwards)

    def _later(self, wanted: Filter, place: tuple[Any, ...]) -> Select[Any]:
        return self._query(wanted).where(tuple_(*_order(wanted)) >= place).order_by(*_order(wanted))

    def _query(self, wanted: Filter) -> Select[Any]:
        columns = [candidates.c[name] for name in QueueEntry.model_fields if name != "outcome"]
        found = select(*columns, _OUTCOME.label("outcome")).select_from(_WITH_HEADS)
        return found.where(*self._conditions(wanted))

    def _entries(self, query: Select[Any]) -> list[QueueEntry]:
        with self._engine.connect() as connection:
            return [QueueEntry(**row) for row in connection.execute(query).mappings()]

    def _conditions(self, wanted: Filter) -> list[ColumnElement[bool]]:
        conditions: list[ColumnElement[bool]] = [
            candidates.c.search.contains(word, autoescape=True) for word in wanted.q.casefold().split()[:10]
        ]
        if wanted.repo:
            conditions.append(candidates.c.repo == wanted.repo)
        if wanted.finding == "blocking":
            conditions.append(candidates.c.blocking > 0)
        elif wanted.finding == "warning":
            conditions.append(candidates.c.blocking + candidates.c.warnings > 0)
        elif wanted.finding == "count":
            conditions.append(candidates.c.doubts > 0)
        elif wanted.finding == "none":
            conditions.append(candidates.c.blocking + candidates.c.warnings + candidates.c.doubts == 0)
        if wanted.state == "todo":
            conditions.append(self._todo())
        elif wanted.state != "all":
            conditions.append(_OUTCOME.in_([wanted.state]))
        return conditions

    def _todo(self) -> ColumnElement[bool]:
        """Not settled, and this reviewer has not had a say (or only on figures that are past)."""
        mine = exists().where(
            opinions.c.task_id == candidates.c.task_id,
            opinions.c.reviewer == self._reviewer,
            or_(
                opinions.c.action.in_(["accept", "reject"]),
                opinions.c.fingerprint == candidates.c.fingerprint,
            ),
        )
        return and_(_OUTCOME.in_(["open", "waiting", "disputed"]), ~mine)


def _columns(wanted: Filter) -> Sequence[ColumnElement[Any]]:
    key = candidates.c.by_date if wanted.sort.endswith("date") else candidates.c.by_speedup
    return key, candidates.c.task_id


def _order(wanted: Filter) -> Sequence[ColumnElement[Any]]:
    key, tie = _columns(wanted)
    return (-key if wanted.sort.startswith("-") else key), tie
