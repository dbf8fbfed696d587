"""Watermarks: what a run that finished had seen, so that the next one need not look again when nothing is new.

A mark is no progress: it says only that for this head of the branch, these tables and these
options there was nothing left to do. Without it, or when any of these differs, a run looks
at the tables as ever.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cached_property

from pydantic import Field, ValidationError

from perfquarry.curation import again
from perfquarry.curation.rows_of_run import provenance
from perfquarry.data.files import write_whole
from perfquarry.data.funnel import Funnel, funnel
from perfquarry.data.git import commit_of
from perfquarry.data.own_rows import VERSIONS
from perfquarry.data.records import Record, content_id
from perfquarry.flows.run import Run
from perfquarry.flows.stages import STAGES, further_wishes, unread

_log = logging.getLogger("perfquarry.flows")
_DECIDES_NOTHING = {"home", "jobs", "seconds", "tasks", "settings"}
"""Options that do not decide what there is to do; of the settings, the stages' hashes do."""


class Mark(Record):
    """A finished run."""

    head: str = Field(description="Commit of the branch's end, hexadecimal.")
    tables: str = Field(description="Digest of the repository's parts (`TableStore.state`).")
    funnel: Funnel
    at: datetime = Field(default_factory=lambda: datetime.now(UTC))


class Watermark:
    """The mark of the runs with the same options and stages."""

    def __init__(self, run: Run, stages: Sequence[str]) -> None:
        self._run = run
        self._stages = [stage for stage in STAGES if stage.name in stages]
        options = run.options.model_dump(mode="json", exclude=_DECIDES_NOTHING)
        asked = content_id(
            options, [(stage.name, VERSIONS[stage.name], run.hashes[stage.name]) for stage in self._stages]
        )
        self._path = run.home.marks / f"{run.name}-{asked}.json"

    def reached(self) -> Mark | None:
        """The mark, if nothing is new: fetches, and compares the branch's head and the tables."""
        try:
            mark = Mark.model_validate_json(self._path.read_text(encoding="utf-8"))
        except (OSError, ValidationError):
            return None
        if mark.head != self.head or mark.tables != self._run.store.state(self._run.name):
            return None
        return None if self._asks_further() else mark

    def _asks_further(self) -> bool:
        return {"generate", "select"} <= {stage.name for stage in self._stages} and bool(further_wishes(self._run))

    def begin(self) -> None:
        """Remembers the branch's head: before the history is read, so that nothing newer is marked as seen."""
        _log.info("%s is at %s", self._run.name, self.head)

    def finish(self) -> None:
        """Marks the run as finished, unless something is left to do or came meanwhile."""
        run = self._run
        tables = run.store.state(run.name)
        if any(stage.todo(run) for stage in self._stages if stage.name != "mine"):
            return
        if run.options.seconds is not None and unread(run):
            return
        if run.options.limit and again.open_changes(run, run.stages, run.ranked()):
            return
        if self._asks_further() or again.left(run, [stage.name for stage in self._stages], run.in_scope):
            return
        mark = Mark(head=self.head, tables=tables, funnel=funnel(run.store, run.name, provenance(run)))
        write_whole(self._path, mark.model_dump_json())

    @cached_property
    def head(self) -> str:
        """End of the branch when first asked for."""
        return commit_of(self._run.clone, "HEAD")
