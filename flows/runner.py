"""Does what a stage still has to do, batch by batch, with whoever else works on it."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Literal

from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from perfquarry.curation.rows_of_run import provenance
from perfquarry.data.display import current
from perfquarry.data.errors import (
    AnswersAwaited,
    BudgetExceeded,
    InfrastructureError,
    RunFailed,
    RunWaits,
    StoreError,
)
from perfquarry.data.funnel import funnel
from perfquarry.data.logs import bound
from perfquarry.data.spans import span, span_failed
from perfquarry.flows.run import OthersWait, Run, TimeIsOver
from perfquarry.flows.stages import Batch, Stage
from perfquarry.harness.sandbox import ending_together

log = logging.getLogger("perfquarry.flows")

WAITING = (AnswersAwaited, BudgetExceeded)
"""Errors after which nothing is broken: the batch goes on once answers or money are there."""
ATTEMPTS = 3
"""Times a batch is tried when our machinery, not the code under test, fails."""

MOST_PARTS = 500
"""A stage that ends makes one of more parts than these."""
LOOK_SECONDS = 3.0
"""Between two looks whether something can be begun that could not before, or whether the time is over."""
LONGEST_WAIT = 3.0
"""Between two looks at what other workers still do (seconds)."""


@dataclass(frozen=True)
class Failure:
    """A batch that could not be done; the next run does what is missing."""

    stage: str
    batch: Batch
    error: BaseException

    @property
    def halts(self) -> bool:
        """Whether later stages have to wait: with half of the verdicts they would choose from the wrong half."""
        return self.stage == "judge" and isinstance(self.error, WAITING)


def failed(failures: Sequence[Failure]) -> RunFailed:
    """The error that says what could not be done; what only waits for answers or money comes last."""
    waiting = [failure for failure in failures if isinstance(failure.error, WAITING)]
    if len(waiting) == len(failures):
        first = waiting[0]
        return RunWaits(f"{len(failures)} batch(es) of {first.stage} are not done yet; the first: {first.error}")
    first = next(failure for failure in failures if failure not in waiting)
    return RunFailed(
        f"{len(failures)} batch(es) could not be done; the first, in {first.stage}: "
        f"{type(first.error).__name__}: {first.error}. The rest is in the tables; run the same command again."
    )


End = Literal["done", "elsewhere", "late", "aside"]
"""How a batch can end that did not fail: another worker had it, or a part of it, and what is still to do is to be
asked anew; the time of the run was over, and it was not done; others waited for its core, and it is to go on."""


@dataclass(frozen=True)
class Outcome:
    """How a batch ended here."""

    batch: Batch
    end: End = "done"
    failure: Failure | None = None


def attempt(run: Run, stage: Stage, batch: Batch, since: float) -> Outcome:
    """Claims one batch, and does it, again if the infrastructure fails.

    Whatever goes wrong is logged and returned: one broken batch must not cost the others.

    Args:
        run: the run.
        stage: whose batch it is.
        batch: its keys.
        since: the claims' time when the batch was found to be still to do.
    """
    ids = {"repository": run.name, "stage": stage.name}
    if len(batch) == 1 and stage.keys:
        ids[stage.keys] = batch[0]
    with bound(**ids), span("batch", keys=len(batch), **ids):
        began = time.monotonic()
        outcome = _attempt(run, stage, batch, since)
        if outcome.failure:
            span_failed(outcome.failure.error)
        elif outcome.end == "aside":
            log.info("%s %s: set aside after %.1f s: others wait", stage.name, batch[0], time.monotonic() - began)
        elif outcome.end == "done":
            log.info("%s %s: done in %.1f s", stage.name, batch[0], time.monotonic() - began)
    return outcome


def _attempt(run: Run, stage: Stage, batch: Batch, since: float) -> Outcome:
    retrying = Retrying(
        retry=retry_if_exception_type(InfrastructureError),
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_exponential(multiplier=0.5, max=20),
        before_sleep=partial(_log_retry, stage, batch),
        reraise=True,
    )
    gained = batch
    if stage.of_changes and run.is_over:
        return Outcome(batch, "late")
    try:
        gained = tuple(retrying(run.claims.take, run.scope(stage.name), batch, since))
        if gained:
            _do(run, stage, gained, retrying)
    except TimeIsOver:
        return Outcome(batch, "late")
    except OthersWait:
        return Outcome(batch, "aside")
    except KeyboardInterrupt:
        if not run.is_over:
            raise
        return Outcome(batch, "late")  # whatever was ended, what it was at is not done
    except WAITING as error:
        log.info("%s %s: %s: %s", stage.name, run.name, batch[:1], error)
        return Outcome(gained, failure=Failure(stage.name, gained, error))
    except Exception as error:
        log.exception("%s %s: %s", stage.name, run.name, batch[:1], exc_info=error)
        return Outcome(gained, failure=Failure(stage.name, gained, error))
    return Outcome(batch, "done" if gained == batch else "elsewhere")


def _log_retry(stage: Stage, batch: Batch, state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    log.warning("%s %s: attempt %d failed: %s", stage.name, batch[0], state.attempt_number, error)


def _do(run: Run, stage: Stage, batch: Batch, retrying: Retrying) -> None:
    scope = run.scope(stage.name)
    try:
        retrying(stage.work, run, batch)
    except BaseException:
        run.claims.release(scope, batch)
        raise
    if stage.counts_rows:  # large batches look anew at what is done: nobody needs a mark
        run.claims.release(scope, batch)
    else:
        run.claims.finish(scope, batch)


Begin = Callable[[Stage, Batch, float, Callable[[Outcome], None]], None]
"""Begins a batch that was found to be to do at a time of the claims; its outcome is given back from another thread."""
Executor = Callable[[Run], AbstractContextManager[Begin]]
"""Does batches of a run at the same time; left by an error, it ends them, and in the end it waits for them."""


@contextmanager
def threads(workers: int, run: Run) -> Iterator[Begin]:
    """Does batches in so many threads of this process."""
    with ThreadPoolExecutor(max_workers=workers) as pool, ending_together():

        def begin(stage: Stage, batch: Batch, since: float, done: Callable[[Outcome], None]) -> None:
            def ended(future: Future[Outcome]) -> None:
                if future.cancelled():
                    done(Outcome(batch, "late"))
                elif error := future.exception():
                    done(Outcome(batch, failure=Failure(stage.name, batch, error)))
                else:
                    done(future.result())

            # the stage's span is the parent of the batches'
            pool.submit(copy_context().run, attempt, run, stage, batch, since).add_done_callback(ended)

        try:
            yield begin
        except BaseException:
            pool.shutdown(cancel_futures=True, wait=False)
            raise


class Batches:
    """Batches that are done at the same time; the outcome of whichever ends first comes first."""

    def __init__(self, begin: Begin) -> None:
        self.running: set[tuple[str, Batch]] = set()
        """Name of the stage, and the batch, of those whose outcome was not taken yet."""
        self._begin = begin
        self._outcomes: SimpleQueue[tuple[Stage, Outcome]] = SimpleQueue()

    def begin(self, stage: Stage, batch: Batch, since: float) -> None:
        """Begins one."""
        self.running.add((stage.name, batch))
        self._begin(stage, batch, since, lambda outcome: self._outcomes.put((stage, outcome)))

    def next(self, seconds: float | None = None) -> tuple[Stage, Outcome] | None:
        """Waits for the next outcome; None if none came within so many seconds.

        Args:
            seconds: to wait at most; None: as long as it takes.
        """
        try:
            stage, outcome = self._outcomes.get(timeout=seconds)
        except Empty:
            return None
        self.running.discard((stage.name, outcome.batch))
        if outcome.failure and not isinstance(outcome.failure.error, Exception):
            raise outcome.failure.error  # Ctrl-C, say
        return stage, outcome

    def all(self) -> Iterator[tuple[Stage, Outcome]]:
        """The outcomes of all that were begun."""
        while self.running:
            if found := self.next():
                yield found


def run_stage(run: Run, stage: Stage, executor: Executor | None = None) -> list[Failure]:
    """Does all that the stage still has to do, with whoever else works on it, and shows it.

    Returns when nothing is left, for this worker and for others: what could not be done here.

    Args:
        run: the run.
        stage: the stage.
        executor: does batches; None: threads of this process.
    """
    with bound(stage=stage.name), span(stage.name, repository=run.name):
        if stage.begin:
            stage.begin(run)
        failures: list[Failure] = []
        try:
            with executor(run) if executor else threads(stage.workers(run), run) as begin:
                _share(run, stage, Batches(begin), failures)
        except TimeIsOver:
            log.info("%s: what was still at work was ended: the time is over", stage.name)
        summary = _summary(run, stage)
        current().finish(summary)
        log.info("%s: %s", stage.name, summary)
        compact(run, stage)
    return failures


def _share(run: Run, stage: Stage, batches: Batches, failures: list[Failure]) -> None:
    """Looks for what nobody does yet, and does it, until nothing is left.

    Raises:
        TimeIsOver: what is at work outlasts the time of the run too long.
    """
    settled: set[str] = set()
    for look in itertools.count():
        since = run.claims.now()
        todo = [tuple(key for key in batch if key not in settled) for batch in stage.todo(run)]
        left = [batch for batch in todo if batch]
        if look == 0:
            steps = sum(map(len, left)) if stage.counts_rows else len(left)
            current().stage(stage.name, steps if stage.name != "mine" else None)
            log.info("%s: %d batch(es) to do", stage.name, len(left))
        if not left or (stage.of_changes and run.is_over):
            break
        busy = run.claims.elsewhere(run.scope(stage.name))
        free = [batch for batch in left if not busy.issuperset(batch)]
        if not free:
            current().note(f"other workers are at the last {len(left)}")
            time.sleep(min(LONGEST_WAIT, 0.1 * (look + 1)))
        for batch in free:
            batches.begin(stage, batch, since)
        for outcome in _outcomes(run, stage, batches):
            if outcome.failure:
                failures.append(outcome.failure)
            if outcome.end in ("done", "late"):
                settled.update(outcome.batch)
            if not stage.counts_rows and outcome.end in ("done", "elsewhere") and not outcome.failure:
                current().advance()


def _outcomes(run: Run, stage: Stage, batches: Batches) -> Iterator[Outcome]:
    """Those of all that were begun.

    Raises:
        TimeIsOver: as `_share`.
    """
    while batches.running:
        if found := batches.next(LOOK_SECONDS):
            yield found[1]
        if stage.single and batches.running:
            run.check_time(patient=not stage.of_changes or stage.needs_core)


def compact(run: Run, stage: Stage) -> None:
    """Makes one part of tables of a stage that have many."""
    for table in stage.writes:
        try:
            if run.store.parts(table, run.name) > MOST_PARTS:
                run.store.compact(table, run.name)
        except StoreError as error:  # nothing is lost: the next run tries again
            log.warning("the parts of %s of %s stay many: %s", table.TABLE, run.name, error)


def run_alone(run: Run, stage: Stage) -> None:
    """Runs one stage, without Prefect."""
    if failures := run_stage(run, stage):
        raise failed(failures)


def _summary(run: Run, stage: Stage) -> str:
    if stage.summary:
        return stage.summary(run)
    counts = {count.stage: count for count in funnel(run.store, run.name, provenance(run)).stages}
    count = counts[stage.name]
    rejected = sum(count.rejected.values())
    return f"{count.kept} kept, {rejected} rejected" + (f", {count.pending} to do" if count.pending else "")
