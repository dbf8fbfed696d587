"""What pull requests make of a run's changes: one change a pull request, and what was said of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import chain
from typing import Any

import pyarrow.compute as pc

from perfquarry.data.records import Change, Issue, Pull, QuotedResult
from perfquarry.flows.run import Run
from perfquarry.miners.pulls.discussion import Discussions
from perfquarry.miners.pulls.graph import Graph, titles_of
from perfquarry.miners.pulls.joining import JOIN_COLUMNS, Joining
from perfquarry.miners.pulls.notes import ReleaseNotes
from perfquarry.miners.pulls.offline import reconstruct

_OUTCOME = ("status", "reason", "pull_number", "kind", "issues")
"""Columns of a change that a joining decides."""


def plain_pulls(run: Run, columns: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """The newest row of each pull request as plain values: GitHub's, else git's."""
    seen: set[int] = set()
    for stage in ("pulls", "pulls-git"):
        table = run.store.scan(Pull, run.name, columns=list(dict.fromkeys(["number", *columns])), **run.where(stage))
        before = frozenset(seen)
        for batch in table.to_batches(max_chunksize=2048):
            for row in batch.to_pylist():
                if row["number"] not in before:
                    seen.add(row["number"])
                    yield row


def graph_of(run: Run) -> Graph:
    """The history of the run's branch."""
    return Graph(run.clone, run.repository.branch or None)


def from_git(run: Run, graph: Graph) -> Iterator[Pull]:
    """Rows as git alone knows them."""
    return reconstruct(run.clone, graph, run.repository.codebase, run.stamp("pulls-git"))


def joining(run: Run) -> Joining:
    """What the settings' policy makes of the commits; what is missing in the tables comes from git."""
    settings, graph = run.options.settings.pulls, graph_of(run)
    there = plain_pulls(run, JOIN_COLUMNS)
    missing = (row.model_dump(include=set(JOIN_COLUMNS)) for row in from_git(run, graph))
    return Joining(graph, chain(there, missing), settings.policy, settings.labels, run.places)


class Joined:
    """The rows of `mine` under the settings' policy: new ones, and older ones of which pull requests now say more."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._off = run.options.settings.pulls.policy == "off"
        self._latest = None if self._off else _newest_pull(run)
        self._note = run.home.cache / "joined" / f"{run.name}-{run.hashes['mine']}"

    @cached_property
    def _joining(self) -> Joining:
        return joining(self._run)

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
        return self._joining.apply(change, self._run.clone, self._run.options.settings.mine)

    def _again(self, latest: datetime) -> Iterator[Change]:
        run, where = self._run, self._run.where("mine")
        known = run.store.scan(Change, run.name, columns=["change_id", *_OUTCOME], **where).to_pylist()
        there = {row["change_id"]: [row[name] for name in _OUTCOME] for row in known}
        for change in run.store.records(Change, run.name, where=pc.field("created_at") < latest, **where):
            for again in self._rows_of(change):
                if there.get(again.change_id) != [getattr(again, name) for name in _OUTCOME]:
                    yield again.model_copy(update={"created_at": datetime.now(UTC)})


def _newest_pull(run: Run) -> datetime | None:
    """When the newest row of `pulls` was made."""
    moments = []
    for stage in ("pulls", "pulls-git"):
        made = run.store.scan(Pull, run.name, columns=["created_at"], **run.where(stage))["created_at"]
        moments.append(pc.max(made).as_py())
    return max(filter(None, moments), default=None)


def discussions(run: Run) -> Discussions | None:
    """What was said of the run's changes; None while the settings' policy is off."""
    if run.options.settings.pulls.policy == "off":
        return None
    quoted = (row for row in plain_pulls(run, ("results",)) if row["results"])
    results = {row["number"]: [QuotedResult(**one) for one in row["results"]] for row in quoted}
    notes, titles = ReleaseNotes(run.clone), partial(titles_of, run.clone)
    return Discussions(partial(_pull, run), partial(_issue, run), results, notes, titles)


def _pull(run: Run, number: int) -> Pull | None:
    stages = (run.where(stage) for stage in ("pulls", "pulls-git"))
    found = (run.store.get(Pull, run.name, {"number": number}, **where) for where in stages)
    return next(filter(None, found), None)


def _issue(run: Run, number: int) -> Issue | None:
    return run.store.get(Issue, run.name, {"number": number}, **run.where("pulls"))
