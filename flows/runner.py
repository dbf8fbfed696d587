"""Runs stages one after the other without Prefect: `--no-server`, tests and notebooks."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from perfquarry.data.errors import AnswersAwaited, BudgetExceeded, InfrastructureError, PerfquarryError, StoreError
from perfquarry.data.funnel import funnel
from perfquarry.flows.display import current
from perfquarry.flows.logs import bound
from perfquarry.flows.rows_of_run import provenance
from perfquarry.flows.run import Run, TimeIsOver
from perfquarry.flows.spans import span, span_failed
from perfquarry.flows.stages import Batch, Stage
from perfquarry.flows.waves import steps
from perfquarry.harness.sandbox import ending_together

log = logging.getLogger("perfquarry.flows")

WAITING = (AnswersAwaited, BudgetExceeded)
"""Errors after which nothing is broken: the batch goes on once answers or money are there."""
ATTEMPTS = 3
"""Times a batch is tried when our machinery, not the code under test, fails."""

MOST_PARTS = 500
"""A stage that ends makes one of more parts than these."""
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


class RunFailed(PerfquarryError):
    """Some batches could not be done; everything else is in the tables."""


class RunWaits(RunFailed):
    """Nothing is broken: some batches wait for answers or money."""


def failed(failures: Sequence[Failure]) -> RunFailed:
    """The error that tells what could not be done; what only waits for answers or money comes last."""
    waiting = [failure for failure in failures if isinstance(failure.error, WAITING)]
    if len(waiting) == len(failures):
        first = waiting[0]
        return RunWaits(f"{len(failures)} batch(es) of {first.stage} are not done yet; the first: {first.error}")
    first = next(failure for failure in failures if failure not in waiting)
    return RunFailed(
        f"{len(failures)} batch(es) could not be done; the first, in {first.stage}: "
        f"{type(first.error).__name__}: {first.error}. The rest is in the tables; run the same command again."
    )


@dataclass(frozen=True)
class Outcome:
    """How a batch ended here."""

    batch: Batch
    elsewhere: bool = False
    """Another worker had it, or a part of it: what is still to do is to be asked anew."""
    failure: Failure | None = None
    late: bool = False
    """The time of the run was over: it was not done."""


def attempt(run: Run, stage: Stage, batch: Batch, since: float) -> Outcome:
    """Claims one batch, does it, again if the infrastructure fails, and moves the bar.

    Whatever goes wrong is logged and returned: one broken batch must not cost the others. `since` is the claims' time
    when the batch was found to be still to do.

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
        elif not outcome.elsewhere and not outcome.late:
            log.info("%s %s: done in %.1f s", stage.name, batch[0], time.monotonic() - began)
    return outcome


def _attempt(run: Run, stage: Stage, batch: Batch, since: float) -> Outcome:
    retrying = Retrying(
        retry=retry_if_exception_type(InfrastructureError),
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_exponential(multiplier=0.5, max=20),
        reraise=True,
    )
    gained = batch
    if stage.of_changes and run.is_over:
        return Outcome(batch, late=True)
    try:
        gained = tuple(retrying(run.claims.take, run.scope(stage.name), batch, since))
        if gained:
            _do(run, stage, gained, retrying)
    except TimeIsOver:
        return Outcome(batch, late=True)
    except WAITING as error:
        log.info("%s %s: %s: %s", stage.name, run.name, batch[:1], error)
        return Outcome(gained, failure=Failure(stage.name, gained, error))
    except Exception as error:
        log.exception("%s %s: %s", stage.name, run.name, batch[:1], exc_info=error)
        return Outcome(gained, failure=Failure(stage.name, gained, error))
    if gained and not stage.counts_rows:
        current().advance()
    return Outcome(batch, elsewhere=gained != batch)


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


Execute = Callable[[Run, Stage, Sequence[Batch], float], Iterable[Outcome]]


def in_threads(run: Run, stage: Stage, batches: Sequence[Batch], since: float) -> list[Outcome]:
    """Does the batches in the stage's number of threads."""
    with ThreadPoolExecutor(max_workers=stage.workers(run)) as pool, ending_together():
        try:
            contexts = [copy_context() for _ in batches]  # the stage's span is the parent of the batches'
            return list(pool.map(lambda context, one: context.run(attempt, run, stage, one, since), contexts, batches))
        except BaseException:
            pool.shutdown(cancel_futures=True, wait=False)
            raise


def run_stage(
    run: Run, stage: Stage, execute: Execute = in_threads, among: Collection[str] | None = None
) -> list[Failure]:
    """Does all that the stage still has to do, with whoever else works on it, and shows it.

    Returns when nothing is left, for this worker and for others: what could not be done here. With `among`, only
    batches of these changes are done, and others' are not waited for.

    Args:
        run: the run.
        stage: the stage.
        execute: does batches.
        among: only batches of these changes, without waiting for those that others are at; None: all.
    """
    with bound(stage=stage.name), span(stage.name, repository=run.name):
        if stage.begin:
            stage.begin(run)
        failures = _share(run, stage, execute, among)
        summary = _summary(run, stage)
        current().finish(summary)
        log.info("%s: %s", stage.name, summary)
        _compact(run, stage)
    return failures


def _share(run: Run, stage: Stage, execute: Execute, among: Collection[str] | None) -> list[Failure]:
    """Looks for what nobody does yet, and does it, until nothing is left."""
    failures: list[Failure] = []
    settled: set[str] = set()
    for look in itertools.count():
        since = run.claims.now()
        todo = [tuple(key for key in batch if key not in settled) for batch in stage.todo(run)]
        batches = [batch for batch in todo if batch and (among is None or set(batch) <= set(among))]
        if look == 0:
            steps = sum(map(len, batches)) if stage.counts_rows else len(batches)
            current().stage(stage.name, steps if stage.name != "mine" else None)
            log.info("%s: %d batch(es) to do", stage.name, len(batches))
        if not batches or (stage.of_changes and run.is_over):
            break
        busy = run.claims.elsewhere(run.scope(stage.name))
        free = [batch for batch in batches if not busy.issuperset(batch)]
        if not free and among is not None:
            break
        if not free:
            current().note(f"other workers are at the last {len(batches)}")
            time.sleep(min(LONGEST_WAIT, 0.1 * (look + 1)))
        for outcome in execute(run, stage, free, since) if free else ():
            if outcome.failure:
                failures.append(outcome.failure)
            if not outcome.elsewhere:
                settled.update(outcome.batch)
    return failures


def _compact(run: Run, stage: Stage) -> None:
    for table in stage.writes:
        try:
            if run.store.parts(table, run.name) > MOST_PARTS:
                run.store.compact(table, run.name)
        except StoreError as error:  # nothing is lost: the next run tries again
            log.warning("the parts of %s of %s stay many: %s", table.TABLE, run.name, error)


def run_stages(run: Run, names: Sequence[str]) -> None:
    """Runs the named stages in the order of `steps`, without Prefect; none after one that halts.

    Raises:
        RunFailed: some batches could not be done.
    """
    failures: list[Failure] = []
    for stage, among in steps(run, names, attempt):
        failures += run_stage(run, stage, among=among)
        if any(failure.halts for failure in failures):
            break
    if failures:
        raise failed(failures)


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
