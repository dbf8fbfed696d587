"""What pull requests make of mined changes: one change a pull request, and what was said of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from perfquarry.data.own_rows import OwnRows
from perfquarry.data.records import Change, Issue, Pull, QuotedResult
from perfquarry.data.registry import Repository
from perfquarry.miners.pulls.discussion import Discussions
from perfquarry.miners.pulls.graph import Graph, titles_of
from perfquarry.miners.pulls.joining import JOIN_COLUMNS, Joining
from perfquarry.miners.pulls.notes import ReleaseNotes
from perfquarry.miners.pulls.offline import reconstruct
from perfquarry.miners.settings import MineSettings, PullSettings

_OUTCOME = ("status", "reason", "pull_number", "kind", "issues")
"""Columns of a change that a joining decides."""


def plain_pulls(rows: OwnRows, columns: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """The newest row of each pull request as plain values: GitHub's, else git's."""
    seen: set[int] = set()
    for stage in ("pulls", "pulls-git"):
        table = rows.store.scan(Pull, rows.name, columns=list(dict.fromkeys(["number", *columns])), **rows.where(stage))
        before = frozenset(seen)
        for batch in table.to_batches(max_chunksize=2048):
            for row in batch.to_pylist():
                if row["number"] not in before:
                    seen.add(row["number"])
                    yield row


def pulls_in_git(rows: OwnRows, clone: Path, repository: Repository, graph: Graph) -> Iterator[Pull]:
    """Rows as git alone knows them."""
    return reconstruct(clone, graph, repository.codebase, rows.stamp("pulls-git"))


class Joined:
    """The rows of `mine` under the settings' policy: new ones, and older ones of which pull requests now say more."""

    def __init__(
        self,
        rows: OwnRows,
        clone: Path,
        repository: Repository,
        settings: PullSettings,
        mining: MineSettings,
        places: tuple[str, ...],
    ) -> None:
        self._own, self._clone, self._repository = rows, clone, repository
        self._settings, self._mining, self._places = settings, mining, places
        self._off = settings.policy == "off"
        self._latest = None if self._off else _newest_pull(rows)
        self._note = rows.home.cache / "joined" / f"{rows.name}-{rows.hashes['mine']}"

    @cached_property
    def _joining(self) -> Joining:
        """What the policy makes of the commits; what is missing in the tables comes from git."""
        graph = Graph(self._clone, self._repository.branch or None)
        there = plain_pulls(self._own, JOIN_COLUMNS)
        in_git = pulls_in_git(self._own, self._clone, self._repository, graph)
        missing = (row.model_dump(include=set(JOIN_COLUMNS)) for row in in_git)
        return Joining(graph, chain(there, missing), self._settings.policy, self._settings.labels, self._places)

    def rows(self, changes: Iterable[Change]) -> Iterator[Change]:
        """What is to be written in place of the crawl's new rows, and over older rows."""
        if self._off:
            yield from changes
            return
        for change in changes:
            yield from self._rows_of(change)
        if self._latest is not None and self._joined_before() != self._latest.isoformat():
            yield from self._again(self._latest)

    def keep(self) -> None:
        """Notes, once the rows are written, which pull requests they were joined with."""
        if self._latest is not None:
            self._note.parent.mkdir(parents=True, exist_ok=True)
            self._note.write_text(self._latest.isoformat())

    def _joined_before(self) -> str:
        return self._note.read_text() if self._note.exists() else ""

    def _rows_of(self, change: Change) -> Iterator[Change]:
        return self._joining.apply(change, self._clone, self._mining)

    def _again(self, latest: datetime) -> Iterator[Change]:
        own, where = self._own, self._own.where("mine")
        known = own.store.scan(Change, own.name, columns=["change_id", *_OUTCOME], **where).to_pylist()
        there = {row["change_id"]: [row[name] for name in _OUTCOME] for row in known}
        for change in own.store.records(Change, own.name, where=pc.field("created_at") < latest, **where):
            for again in self._rows_of(change):
                if there.get(again.change_id) != [getattr(again, name) for name in _OUTCOME]:
                    yield again.model_copy(update={"created_at": datetime.now(UTC)})


def _newest_pull(rows: OwnRows) -> datetime | None:
    """When the newest row of `pulls` was made."""
    moments = []
    for stage in ("pulls", "pulls-git"):
        made = rows.store.scan(Pull, rows.name, columns=["created_at"], **rows.where(stage))["created_at"]
        moments.append(pc.max(made).as_py())
    return max(filter(None, moments), default=None)


def discussions(rows: OwnRows, clone: Path, settings: PullSettings) -> Discussions | None:
    """What was said of the changes; None while the settings' policy is off."""
    if settings.policy == "off":
        return None
    quoted = (row for row in plain_pulls(rows, ("results",)) if row["results"])
    results = {row["number"]: [QuotedResult(**one) for one in row["results"]] for row in quoted}
    notes, titles = ReleaseNotes(clone), partial(titles_of, clone)
    return Discussions(partial(_pull, rows), partial(_issue, rows), results, notes, titles)


def _pull(rows: OwnRows, number: int) -> Pull | None:
    stages = (rows.where(stage) for stage in ("pulls", "pulls-git"))
    found = (rows.store.get(Pull, rows.name, {"number": number}, **where) for where in stages)
    return next(filter(None, found), None)


def _issue(rows: OwnRows, number: int) -> Issue | None:
    return rows.store.get(Issue, rows.name, {"number": number}, **rows.where("pulls"))
