"""The table of `perfquarry status`, from the tables and the records of runs: no server is asked."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache

from pydantic import Field, computed_field
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from perfquarry.curation.in_force import funnel_in_force
from perfquarry.data.figures import duration
from perfquarry.data.funnel import StageCount
from perfquarry.data.home import Home
from perfquarry.data.output import Listing, Report
from perfquarry.data.records import Change, Record
from perfquarry.data.runs import RunRecord, repositories, runs_of
from perfquarry.data.store import TableStore

REFRESH_SECONDS = 2.0
"""How often the live table is made anew (seconds)."""


class RepositoryStatus(Record):
    """One repository of a home."""

    repository: str
    stages: list[StageCount] = Field(description="Under the newest settings; `pending` is still to do.")
    running: list[RunRecord]
    last: RunRecord | None = Field(default=None, description="The newest run that has ended.")

    @computed_field  # type: ignore[prop-decorator]
    @property
    def waiting(self) -> str:
        """What the last run waits for or why it failed; empty while all is well or another run is at it."""
        return self.last.message if self.last and not self.running else ""


def report(home: Home, *, live: bool) -> Report:
    """The statuses; where they are to be `live`, a terminal shows them until Ctrl-C."""
    store, console = TableStore(home.tables), Console()

    @lru_cache(maxsize=256)
    def counts(name: str, _: str) -> list[StageCount]:
        return funnel_in_force(store, name).stages  # anew only when the tables have changed

    def now() -> list[RepositoryStatus]:
        names = {*store.repositories(Change), *repositories(home)}
        return [_status(home, name, counts(name, store.state(name))) for name in sorted(names)]

    if live and console.is_terminal:
        with Live(_table(now()), console=console, auto_refresh=False) as shown:
            while True:
                time.sleep(REFRESH_SECONDS)
                shown.update(_table(now()), refresh=True)
    found = now()
    return Report(found, [_table(found)])


def _status(home: Home, name: str, stages: list[StageCount]) -> RepositoryStatus:
    runs = runs_of(home, name)
    running = [run for run in runs if run.outcome == "running"]
    last = next((run for run in reversed(runs) if run.outcome != "running"), None)
    return RepositoryStatus(repository=name, stages=stages, running=running, last=last)


def _table(statuses: list[RepositoryStatus]) -> Group:
    """One row per repository: done changes by stage, those to do in yellow. Below, its runs and what it waits for."""
    if not statuses:
        return Group("nothing was run in this home yet: `perfquarry curate demo` begins")
    table = Listing(("repository", *(f">{stage.stage}" for stage in statuses[0].stages)))
    runs = Listing(("repository", "runs"), head=False)
    for one in statuses:
        table.add(one.repository, *map(_cell, one.stages))
        runs.add(one.repository, Text("\n").join(_runs(one)))
    return Group(table, Text("changes done +still to do", "dim"), "", runs)


def _cell(stage: StageCount) -> Text:
    done = stage.kept + sum(stage.rejected.values())
    return Text.assemble(str(done), (f" +{stage.pending}" if stage.pending else "", "yellow"))


def _runs(one: RepositoryStatus) -> Iterator[Text]:
    for run in one.running:
        of = f"{run.done} of {run.total}" if run.total else str(run.done)
        yield Text.assemble((run.stage or "begins", "green"), f" {of} {run.note} ({_age(run.began)})")
    if one.last:
        ended = one.last.ended or one.last.began
        colour = "dim" if one.last.outcome in ("done", "nothing new") else "red"
        yield Text.assemble((one.last.outcome, colour), f" {_age(ended)} ago")
    if one.waiting:
        yield Text(one.waiting, "yellow")


def _age(since: datetime) -> str:
    return duration((datetime.now(UTC) - since).total_seconds())
