"""Changes go through the line each on its own, the most promising first, so that tasks come early.

`--jobs` of them are worked on at once: while one is timed, the next is built and searched for workloads. What was
begun goes on before another change begins. Decisions are made on the way, from all timings so far, and after each
piece of work the tables are asked what became of it, and those left are ordered anew (decision 0067).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from perfquarry.curation.in_force import accepted_tasks
from perfquarry.curation.promise import SECONDS, promising
from perfquarry.data.display import current, muted
from perfquarry.data.errors import MachineBusy
from perfquarry.data.figures import duration, with_interval
from perfquarry.data.figures import size as bytes_of
from perfquarry.data.logs import bound
from perfquarry.data.spans import span
from perfquarry.flows.run import Run, TimeIsOver
from perfquarry.flows.runner import (
    LOOK_SECONDS,
    Batches,
    Executor,
    Failure,
    Outcome,
    compact,
    failed,
    run_stage,
    threads,
)  # fmt: skip
from perfquarry.flows.stages import STAGES, Stage, wish_further
from perfquarry.harness.measuring.machine import measurement_lock
from perfquarry.miners.blobs import tree_files

DECIDING = 0.1
"""Share of the time that goes into decisions at most: each writes the rows of all changes that were timed."""
_log = logging.getLogger("perfquarry.flows")


@dataclass(frozen=True)
class Step:
    """A step of a run: one bar on the terminal, one flow run on Prefect's page."""

    name: str
    does: Callable[[Run, Executor | None], list[Failure]]
    workers: Callable[[Run], int]
    """How many batches it does at once."""
    can_wait: bool = False
    """Left to the next run once the time is over."""


def steps(names: Collection[str]) -> list[Step]:
    """The named stages in the order in which they are to run.

    Those that take single changes are one step, `changes`, where these are both built and decided.
    """
    stages = [stage for stage in STAGES if stage.name in names]
    if not {"build", "select"} <= {stage.name for stage in stages}:
        return [_of(stage) for stage in stages]
    walked = [stage for stage in stages if stage.of_changes]
    first, last = stages.index(walked[0]), stages.index(walked[-1]) + 1
    deciding = [stage for stage in stages[last:] if stage.decides]

    def changes(run: Run, executor: Executor | None) -> list[Failure]:
        return go_through(run, walked, deciding, executor)

    return [
        *(_of(stage) for stage in stages[:first]),
        Step("changes", changes, most_at_once),
        *(_of(stage, can_wait=not stage.decides) for stage in stages[last:]),
    ]


def most_at_once(run: Run) -> int:
    """`--jobs`, and beside timings one that builds or searches: so the next change is ready when a core is free."""
    return run.options.jobs + (run.options.jobs > 1)


def _of(stage: Stage, *, can_wait: bool = False) -> Step:
    return Step(stage.name, lambda run, executor: run_stage(run, stage, executor), stage.workers, can_wait)


def run_stages(run: Run, names: Collection[str]) -> None:
    """Runs the named stages in the order of `steps`, without Prefect; none after one that halts.

    Raises:
        RunFailed: some batches could not be done.
    """
    failures = run_steps(run, names, lambda step: step.does(run, None))
    if failures:
        raise failed(failures)


def run_steps(run: Run, names: Collection[str], does: Callable[[Step], list[Failure]]) -> list[Failure]:
    """Does the steps one after the other; none after one that halts, nor once the time is over one that can wait."""
    failures: list[Failure] = []
    for step in steps(names):
        if step.can_wait and run.time_is_over:
            continue
        failures += does(step)
        if any(failure.halts for failure in failures):
            break
    return failures


def go_through(
    run: Run, stages: Sequence[Stage], deciding: Sequence[Stage], executor: Executor | None = None
) -> list[Failure]:
    """Takes changes through the stages, and decides; returns what could not be done.

    Ends when nothing is left, for this worker and for others, or when the time is over or the tasks are enough.

    Args:
        run: the run.
        stages: take single changes, in this order.
        deciding: look at all changes together.
        executor: does batches; None: threads of this process.
    """
    with bound(stage="changes"), span("changes", repository=run.name):
        for stage in stages:
            if stage.begin:
                stage.begin(run)
        try:
            with executor(run) if executor else threads(most_at_once(run), run) as begin:
                pipeline = _Pipeline(run, stages, deciding, Batches(begin))
                pipeline.go()
        except TimeIsOver:
            why = "the time is over" if run.time_is_over else "the accepted tasks are enough"
            _log.info("what was still at work was ended: %s", why)
        pipeline.end()
        run.has_enough.clear()
        for stage in stages:
            compact(run, stage)
    return pipeline.failures


@dataclass
class _Pipeline:
    run: Run
    stages: Sequence[Stage]
    deciding: Sequence[Stage]
    batches: Batches
    failures: list[Failure] = field(default_factory=list)
    todo: dict[str, Stage] = field(default_factory=dict)
    """By id of a change, in the order in which they are taken, the next stage that it has to go through here."""
    left: int = 0
    """Changes that have not come to an end, those among them that could not be done here."""
    begun: set[str] = field(default_factory=set)
    settled: set[str] = field(default_factory=set)
    """Changes of which a stage could not be done here, for infrastructure or time: the next run goes on."""
    aside: set[str] = field(default_factory=set)
    """Changes whose timing was set aside: those that have not been timed at all come before them."""
    known: dict[str, str] = field(default_factory=dict)
    timed: int = 0
    decided: int = 0
    """Changes that were timed, and those of them that the last decision knew."""
    began: float = field(default_factory=time.monotonic)
    may_decide: float = 0.0
    """From when on decisions are made anew (`time.monotonic`), if something was timed since."""

    def go(self) -> None:
        """Begins what can be begun, and waits for what was, until nothing is left."""
        self._know(self._accepted())
        self._look()
        current().stage("changes", len(self.todo))
        if self.todo:
            current().announce("plan", self._plan(len(self.todo)))
        while True:
            since = self.run.claims.now()
            if not self.batches.running:
                self._look()
            if not self.run.is_over:
                self._begin(since)
            self._say_who_waits()
            if not self.batches.running and (self.run.is_over or not self.todo) and not self._asks_further():
                return
            if outcome := self.batches.next(LOOK_SECONDS):
                self._take(*outcome)
            self._decide_in_time()
            self._check_time()

    def end(self) -> None:
        """Decides on what was timed, and says what is left."""
        for outcome in self.batches.all():  # of what ended while it was being ended
            self._take(*outcome)
        self._decide()
        self._look()
        current().finish(f"{self.tried} change(s) tried" + (f", {self.left} to go" if self.left else ""))
        if self.left and (self.tried or self.run.time_is_over):
            current().announce("left", self._left())

    def _asks_further(self) -> bool:
        """Once all is done: whether changes begin anew whose unit tests alone show no gain (decision 0075)."""
        if self.run.is_over:
            return False
        self._decide()
        if self.run.is_over or not (changes := wish_further(self.run)):
            return False
        current().finish(f"{self.tried} change(s) tried")
        sources = " and ".join(self.run.options.settings.generate.further)
        current().announce("further", f"{changes} change(s) show no gain by unit tests alone: {sources} are asked")
        current().stage("further", changes)
        self._look()
        return True

    @property
    def tried(self) -> int:
        """Changes that were begun and have come to an end."""
        return len(self.begun - self.todo.keys() - self.settled - self._at_work())

    def _at_work(self) -> set[str]:
        return {key for _, batch in self.batches.running for key in batch}

    def _look(self) -> None:
        """Asks the tables what is still to do, and orders it."""
        found: dict[str, Stage] = {}
        for stage in self.stages:
            for batch in stage.todo(self.run):
                for change in batch:
                    found.setdefault(change, stage)
        self.left = len(found)
        order = promising(self.run, found.keys() - self.settled)
        turn = {change: (change not in self.begun, change in self.aside) for change in order}
        self.todo = {change: found[change] for change in sorted(order, key=turn.__getitem__)}

    def _begin(self, since: float) -> None:
        """Begins the first changes that jobs are free for.

        While no core is free of timings, other changes are built and searched, until enough of them wait for a core;
        then their timings begin, and wait themselves. One a look takes a free core: it needs a moment for it.
        """
        claimed = {stage.name: self.run.claims.elsewhere(self.run.scope(stage.name)) for stage in self.stages}
        at_work = self._at_work()
        jobs, waiting, core = self.run.options.jobs, list[str](), True
        timings = sum(name in self._timing for name, _ in self.batches.running)
        for change, stage in self.todo.items():
            if len(self.batches.running) >= (most_at_once(self.run) if timings else jobs):
                return
            if stage.needs_core and timings >= jobs:
                continue
            if change in at_work or change in claimed[stage.name]:
                continue
            if change not in self.begun and len((self.begun - self.aside) & self.todo.keys()) >= 2 * jobs:
                break
            if stage.needs_core and not (core and _a_core_is_free()):
                if not (timings and change in self.aside):
                    waiting.append(change)
                continue
            core = core and not stage.needs_core
            timings += stage.needs_core
            self._begin_one(change, since)
        for change in waiting[: max(0, jobs - len(self.batches.running))]:
            self._begin_one(change, since)
        if not self.batches.running and self.todo:
            current().note(f"other workers are at the last {len(self.todo)}")

    def _say_who_waits(self) -> None:
        """Whether a change that was begun waits and was never timed: what is timed is set aside for it."""
        at_work = self._at_work()
        waits = {change for change, stage in self.todo.items() if stage.needs_core} & self.begun - at_work - self.aside
        for stage in self.stages if waits else ():
            waits -= self.run.claims.elsewhere(self.run.scope(stage.name))
        (self.run.others_wait.set if waits and not self.run.is_over else self.run.others_wait.clear)()

    @property
    def _timing(self) -> set[str]:
        return {stage.name for stage in self.stages if stage.needs_core}

    def _begin_one(self, change: str, since: float) -> None:
        self.begun.add(change)
        self.batches.begin(self.todo[change], (change,), since)

    def _take(self, stage: Stage, outcome: Outcome) -> None:
        """Notes how a piece of work ended."""
        if outcome.failure:
            self.failures.append(outcome.failure)
        if outcome.failure or outcome.end == "late":
            self.settled.update(outcome.batch)
        if outcome.end == "aside":
            self.aside.update(outcome.batch)
        before = self.tried
        self._look()
        current().advance(max(0, self.tried - before))
        self.timed += stage.needs_core and outcome.end == "done" and not outcome.failure

    def _decide_in_time(self) -> None:
        """Decides where something was timed since the last decision, and that is long enough ago."""
        if self.timed > self.decided and time.monotonic() >= self.may_decide:
            if not self.run.is_over:
                self._begin(self.run.claims.now())  # meanwhile
            self._decide()

    def _check_time(self) -> None:
        """Raises TimeIsOver where what is at work has outlasted it for too long; builds and searches may not at all.

        Where the tasks are enough, timings may not either: what they have timed is kept.
        """
        if not self.batches.running:
            return
        if self.run.has_enough.is_set():
            raise TimeIsOver
        self.run.check_time(patient=any(name in self._timing for name, _ in self.batches.running))

    def _decide(self) -> None:
        self.decided, began = self.timed, time.monotonic()
        with muted():
            for stage in self.deciding:
                self.failures += run_stage(self.run, stage)
        accepted = self._accepted()
        for task_id in accepted.keys() - self.known.keys():
            current().announce("task", accepted[task_id])
        self._know(accepted)
        ended = time.monotonic()
        self.may_decide = ended + (ended - began) / DECIDING

    def _know(self, accepted: dict[str, str]) -> None:
        self.known, most = accepted, self.run.options.tasks
        enough = most is not None and len(accepted) >= most
        (self.run.has_enough.set if enough else self.run.has_enough.clear)()

    def _accepted(self) -> dict[str, str]:
        """By id of an accepted task what is reported of it."""
        return {
            task.task_id: f"{with_interval(task.speedup, task.low, task.high)}  {task.task_id}  {task.title}"
            for task in accepted_tasks(self.run.store, self.run.name)
        }

    def _plan(self, changes: int) -> str:
        options = self.run.options
        most = changes * SECONDS / options.jobs
        text = f"{changes} change(s) to try, the most promising first: up to about {duration(most)}"
        text += f" and {bytes_of(2 * changes * _tree_bytes(self.run))} for their trees"
        ends = [f"after {duration(options.seconds)}"] if options.seconds else []
        ends += [f"at {options.tasks} accepted task(s)"] if options.tasks else []
        return text + (f"; ends {' or '.join(ends)}" if ends else "")

    def _left(self) -> str:
        text = f"{self.tried} change(s) tried, {self.left} to go"
        if self.tried:
            pace = (time.monotonic() - self.began) / self.tried
            text += f": about {duration(self.left * pace)} at this pace"
        return text + ("; the time is over: the same command goes on" if self.run.time_is_over else "")


def _a_core_is_free() -> bool:
    """Whether some core is held by no timing."""
    try:
        with measurement_lock(0.0):
            return True
    except MachineBusy:
        return False


def _tree_bytes(run: Run) -> int:
    """Bytes of the files at the end of the branch."""
    return sum(file.size for file in tree_files(run.clone, "HEAD"))
