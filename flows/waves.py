"""The order in which changes walk through the line: in waves, the most promising first, so that tasks come early.

A wave of changes is built, searched for workloads, measured and decided before the next begins. The first is small,
each later one twice as large: a task is found within minutes, and few decisions are made on the way. Between two
waves the tables are asked what became of the changes so far, and those left are ordered anew (decision 0036).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from perfquarry.curation.in_force import accepted_tasks
from perfquarry.flows.ahead import Ahead, Attempt
from perfquarry.flows.display import current
from perfquarry.flows.promise import SECONDS, promising
from perfquarry.flows.reports import duration, with_interval
from perfquarry.flows.reports import size as bytes_of
from perfquarry.flows.run import Run
from perfquarry.flows.stages import STAGES, Stage
from perfquarry.harness.sandbox import ending_together
from perfquarry.miners.blobs import tree_files

LEAST = 2
"""Changes of the first wave at least: as many as are worked on at once, or these."""
LONGEST = 1200.0
"""Seconds that a wave may take by the pace of the one before it."""

Step = tuple[Stage, frozenset[str] | None]
"""A stage, and the changes that it does; None: all."""


def steps(run: Run, names: Collection[str], attempt: Attempt | None = None) -> Iterator[Step]:
    """The named stages in the order in which they are to run; tells what is found on the way.

    In waves where changes are both built and decided. The caller does each step before it asks for the next.

    Args:
        run: the run.
        names: of the stages; in waves where changes are both built and decided.
        attempt: does a batch ahead of its wave while a core is free; None: nothing is done ahead.
    """
    stages = [stage for stage in STAGES if stage.name in names]
    walked = [stage for stage in stages if stage.of_changes]
    if not {"build", "select"} <= {stage.name for stage in stages}:
        yield from ((stage, None) for stage in stages)
        return
    first, last = stages.index(walked[0]), stages.index(walked[-1]) + 1
    yield from ((stage, None) for stage in stages[:first])
    ahead = Ahead(run, walked[:-1], attempt) if attempt and run.options.jobs > 1 else None
    try:
        with ending_together():  # what an error or Ctrl-C ends here ends what is done ahead, too
            yield from _Waves(run, walked, stages[last:], ahead).steps()
    finally:
        if ahead:
            ahead.join()  # the claims are given back after it


@dataclass
class _Waves:
    run: Run
    walked: Sequence[Stage]
    """Stages that changes walk through one by one."""
    closing: Sequence[Stage]
    """The stages after these."""
    ahead: Ahead | None = None
    taken: set[str] = field(default_factory=set)
    cut: set[str] = field(default_factory=set)
    """Those of them that the end of the time left unfinished."""
    seconds: float = 0.0
    """All waves so far."""

    @property
    def pace(self) -> float:
        """Seconds a change."""
        return self.seconds / max(1, len(self.taken - self.cut))

    def steps(self) -> Iterator[Step]:
        known = self._accepted()
        at_once = max(LEAST, self.run.options.jobs)
        waiting = self._waiting()
        if waiting:
            current().tell("plan", self._plan(len(waiting)))
        while waiting and not self.run.is_over and not self._enough(known):
            size = len(waiting) if len(waiting) <= 2 * at_once else at_once
            wave = frozenset(waiting[:size])
            self.taken |= wave
            began = time.monotonic()
            yield from ((stage, wave) for stage in self.walked[:-1])
            if self.ahead:
                following = [one for one in waiting if one not in wave][: 2 * at_once]
                self.ahead.begin(following, partial(self._leaves_a_job, wave))
            yield self.walked[-1], wave
            if self.ahead:
                self.ahead.stop()
            yield from ((stage, None) for stage in self.closing if stage.decides)
            known = self._tell_new(known)
            if self.ahead and self.ahead.is_at_work:
                current().tell("ahead", "a change of the next wave is still built or searched")
                self.ahead.join()
            self.seconds += time.monotonic() - began
            at_once = max(1, min(2 * at_once, int(LONGEST / max(self.pace, 0.1))))
            waiting = self._waiting()
            if waiting:
                current().tell("left", self._left(len(waiting)))
        if not self.taken or (not self.run.is_over and self._others_walk()):
            yield from ((stage, None) for stage in self.walked)
            yield from ((stage, None) for stage in self.closing if stage.decides)
            self._tell_new(known)
        if not self.run.is_over:
            yield from ((stage, None) for stage in self.closing if not stage.decides)

    def _waiting(self) -> list[str]:
        """Changes that a stage still has to do and no wave has had to the end, the most promising first."""
        for stage in self.walked:
            if stage.begin:
                stage.begin(self.run)
        todo = {key for stage in self.walked for batch in stage.todo(self.run) for key in batch}
        self.cut = self.taken & todo if self.run.is_over else set()
        return promising(self.run, todo - self.taken | self.cut)

    def _leaves_a_job(self, wave: Collection[str]) -> bool:
        """Whether fewer changes of the wave are timed, or wait for it, than may be worked on at once."""
        left = sum(not set(batch).isdisjoint(wave) for batch in self.walked[-1].todo(self.run))
        return left < self.run.options.jobs

    def _others_walk(self) -> bool:
        """Whether other workers are still at changes of these stages: they are waited for."""
        return any(
            not self.run.claims.elsewhere(self.run.scope(stage.name)).isdisjoint(batch)
            for stage in self.walked
            for batch in stage.todo(self.run)
        )

    def _accepted(self) -> dict[str, str]:
        """By id of an accepted task what is reported of it."""
        return {
            task.task_id: f"{with_interval(task.speedup, task.low, task.high)}  {task.task_id}  {task.title}"
            for task in accepted_tasks(self.run.store, self.run.name)
        }

    def _tell_new(self, known: Collection[str]) -> dict[str, str]:
        accepted = self._accepted()
        for task_id, text in accepted.items():
            if task_id not in known:
                current().tell("task", text)
        return accepted

    def _enough(self, accepted: Collection[str]) -> bool:
        most = self.run.options.tasks
        return most is not None and len(accepted) >= most

    def _plan(self, changes: int) -> str:
        options = self.run.options
        most = changes * SECONDS / options.jobs
        text = f"{changes} change(s) to try, the most promising first: up to about {duration(most)}"
        text += f" and {bytes_of(2 * changes * _tree_bytes(self.run))} for their trees"
        ends = [f"after {duration(options.seconds)}"] if options.seconds else []
        ends += [f"at {options.tasks} accepted task(s)"] if options.tasks else []
        return text + (f"; ends {' or '.join(ends)}" if ends else "")

    def _left(self, changes: int) -> str:
        tried = len(self.taken - self.cut)
        text = f"{tried} change(s) tried, {changes} to go"
        text += f": about {duration(changes * self.pace)} at this pace" if tried else ""
        if self.run.is_over:
            return f"{text}; the time is over: the same command goes on"
        return text


def _tree_bytes(run: Run) -> int:
    """Bytes of the files at the end of the branch."""
    return sum(file.size for file in tree_files(run.clone, "HEAD"))
