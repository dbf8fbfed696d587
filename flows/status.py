"""The table of `perfquarry status`, from the tables and the records of runs: no server is asked."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime

from pydantic import Field
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from perfquarry.data.funnel import StageCount, funnel
from perfquarry.data.home import Home
from perfquarry.data.records import Change, Record
from perfquarry.data.store import TableStore
from perfquarry.flows.runs import RunRecord, repositories, runs_of

REFRESH_SECONDS = 2.0
"""How often the live table is made anew (seconds)."""


class RepositoryStatus(Record):
    """One repository of a home."""

    repository: str
    stages: list[StageCount] = Field(description="Under the newest settings; `pending` is still to do.")
    running: list[RunRecord]
    last: RunRecord | None = Field(default=None, description="The newest run that has ended.")

    @property
    def waiting(self) -> str:
        """What the last run waits for or why it failed; empty while all is well or another run is at it."""
        return self.last.message if self.last and not self.running else ""


class Statuses:
    """Statuses of a home; the funnel is counted anew only when the tables have changed.

    Args:
        home: the home.
    """

    def __init__(self, home: Home) -> None:
        self._home = home
        self._store = TableStore(home.tables)
        self._counts: dict[str, tuple[str, list[StageCount]]] = {}

    def now(self) -> list[RepositoryStatus]:
        """The status of each repository, by name."""
        names = {*self._store.repositories(Change), *repositories(self._home)}
        return [self._of(name) for name in sorted(names)]

    def _of(self, name: str) -> RepositoryStatus:
        state = self._store.state(name)
        if self._counts.get(name, ("", []))[0] != state:
            self._counts[name] = (state, funnel(self._store, name).stages)
        runs = runs_of(self._home, name)
        running = [run for run in runs if run.outcome == "running"]
        ended = [run for run in runs if run.outcome != "running"]
        last = ended[-1] if ended else None
        return RepositoryStatus(repository=name, stages=self._counts[name][1], running=running, last=last)


def report(home: Home, *, once: bool, as_json: bool) -> None:
    """Prints the statuses, and keeps them fresh on a terminal until Ctrl-C."""
    statuses = Statuses(home)
    console = Console()
    if as_json:
        facts = [one.model_dump(mode="json", by_alias=True) | {"waiting": one.waiting} for one in statuses.now()]
        print(json.dumps(facts, indent=2))
    elif once or not console.is_terminal:
        console.print(status_table(statuses.now()))
    else:
        with Live(status_table(statuses.now()), console=console, auto_refresh=False) as live:
            while True:
                time.sleep(REFRESH_SECONDS)
                live.update(status_table(statuses.now()), refresh=True)


def status_table(statuses: list[RepositoryStatus]) -> Group:
    """A row a repository: done changes by stage, those to do in yellow. Below, its runs and what is waited for."""
    if not statuses:
        return Group("nothing was run in this home yet")
    table = Table(box=SIMPLE_HEAD, pad_edge=False, caption="changes done +still to do", caption_justify="left")
    table.add_column("repository", overflow="fold")
    for stage in statuses[0].stages:
        table.add_column(stage.stage, justify="right", no_wrap=True)
    runs = Table.grid(padding=(0, 2))
    for one in statuses:
        table.add_row(one.repository, *map(_cell, one.stages))
        runs.add_row(one.repository, _runs(one))
    return Group(table, "", runs)


def _cell(stage: StageCount) -> str:
    done = stage.kept + sum(stage.rejected.values())
    return f"{done} [yellow]+{stage.pending}[/]" if stage.pending else str(done)


def _runs(one: RepositoryStatus) -> str:
    lines = []
    for run in one.running:
        of = f"{run.done} of {run.total}" if run.total else str(run.done)
        lines.append(f"[green]{run.stage or 'begins'}[/] {of} {escape(run.note)} ({_age(run.began)})")
    if one.last:
        ended = one.last.ended or one.last.began
        colour = "dim" if one.last.outcome in ("done", "nothing new") else "red"
        lines.append(f"[{colour}]{one.last.outcome}[/] {_age(ended)} ago")
    if one.waiting:
        lines.append(f"[yellow]{escape(one.waiting)}[/]")
    return "\n".join(lines)


def _age(since: datetime) -> str:
    seconds = (datetime.now(UTC) - since).total_seconds()
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
