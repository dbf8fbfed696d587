"""Runs stages one after the other without Prefect: `--no-server`, tests and notebooks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from data.errors import AnswersAwaited, BudgetExceeded, InfrastructureError, PerfquarryError
from data.funnel import funnel
from flows.display import current
from flows.run import Run
from flows.stages import STAGES, Batch, Stage
from harness.sandbox import ending_together

log = logging.getLogger("perfquarry.flows")

WAITING = (AnswersAwaited, BudgetExceeded)
"""Errors after which nothing is broken: the batch goes on once answers or money are there."""
ATTEMPTS = 3
"""Times a batch is tried when our machinery, not the code under test, fails."""


@dataclass(frozen=True)
class Failure:
    """A batch that could not be done; what it lacks stays to be done by the next run."""

    stage: str
    batch: Batch
    error: BaseException

    @property
    def halts(self) -> bool:
        """Whether later stages have to wait: with half of the verdicts they would choose from the wrong half."""
        return self.stage == "judge" and isinstance(self.error, WAITING)


class RunFailed(PerfquarryError):
    """Some batches could not be done; everything else is in the tables."""


def failed(failures: Sequence[Failure]) -> RunFailed:
    """The error that tells what could not be done; what only waits for answers or money comes last."""
    waiting = [failure for failure in failures if isinstance(failure.error, WAITING)]
    if len(waiting) == len(failures):
        first = waiting[0]
        return RunFailed(f"{len(failures)} batch(es) of {first.stage} are not done yet; the first: {first.error}")
    first = next(failure for failure in failures if failure not in waiting)
    return RunFailed(
        f"{len(failures)} batch(es) could not be done; the first, in {first.stage}: "
        f"{type(first.error).__name__}: {first.error}. The rest is in the tables; run the same command again."
    )


def attempt(run: Run, stage: Stage, batch: Batch) -> Failure | None:
    """Does one batch, again if the infrastructure fails, and moves the bar.

    Whatever goes wrong is logged and returned: one broken batch must not cost the others.
    """
    retrying = Retrying(
        retry=retry_if_exception_type(InfrastructureError),
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_exponential(multiplier=0.5, max=20),
        reraise=True,
    )
    try:
        retrying(stage.work, run, batch)
    except WAITING as error:
        log.info("%s %s: %s: %s", stage.name, run.name, batch[:1], error)
        return Failure(stage.name, batch, error)
    except Exception as error:
        log.exception("%s %s: %s", stage.name, run.name, batch[:1], exc_info=error)
        return Failure(stage.name, batch, error)
    if not stage.counts_rows:
        current().advance()
    return None


Execute = Callable[[Run, Stage, Sequence[Batch]], Iterable[Failure]]


def in_threads(run: Run, stage: Stage, batches: Sequence[Batch]) -> list[Failure]:
    """Does the batches in the stage's number of threads."""
    with ThreadPoolExecutor(max_workers=stage.workers(run)) as pool, ending_together():
        try:
            found = list(pool.map(lambda batch: attempt(run, stage, batch), batches))
        except BaseException:
            pool.shutdown(cancel_futures=True, wait=False)
            raise
    return [failure for failure in found if failure]


def run_stage(run: Run, stage: Stage, execute: Execute = in_threads) -> list[Failure]:
    """Does all that the stage still has to do and shows it; returns what could not be done."""
    batches = stage.todo(run)
    steps = sum(len(batch) for batch in batches) if stage.counts_rows else len(batches)
    current().stage(stage.name, steps if stage.name != "mine" else None)
    failures = list(execute(run, stage, batches))
    current().finish(_summary(run, stage))
    return failures


def run_stages(run: Run, names: Sequence[str]) -> None:
    """Runs the named stages in order, without Prefect; none after one that halts.

    Raises:
        RunFailed: some batches could not be done.
    """
    failures: list[Failure] = []
    for stage in STAGES:
        if stage.name in names and not any(failure.halts for failure in failures):
            failures += run_stage(run, stage)
    if failures:
        raise failed(failures)


def _summary(run: Run, stage: Stage) -> str:
    counts = {count.stage: count for count in funnel(run.store, run.name, run.provenance).stages}
    count = counts[stage.name]
    fallen = sum(count.rejected.values())
    return f"{count.kept} kept, {fallen} rejected" + (f", {count.pending} to do" if count.pending else "")
