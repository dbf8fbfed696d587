"""The Prefect flows: `curate` and below it one for each of its steps. Import this only when PREFECT_API_URL is set.

A task run is a batch of a stage; it gets keys, never rows, and returns nothing: results
are in the tables, which alone decide what a rerun still does.
"""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import httpx
from prefect import flow, get_client, tags, task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterState, FlowRunFilterStateType, FlowRunFilterTags
from prefect.client.schemas.objects import State, StateType
from prefect.exceptions import PrefectException
from prefect.flows import Flow
from prefect.futures import PrefectFuture
from prefect.logging.handlers import APILogHandler
from prefect.runtime import flow_run
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings
from prefect.states import Completed, Crashed, Failed
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from perfquarry.curation.in_force import newest_tasks
from perfquarry.curation.jobs import Job
from perfquarry.curation.plots.repository import repository_plots
from perfquarry.curation.rows_of_run import provenance
from perfquarry.data.errors import InfrastructureError, PerfquarryError, RunFailed, RunWaits, ServerUnavailable
from perfquarry.data.figures import with_interval
from perfquarry.data.files import is_locked
from perfquarry.data.funnel import Funnel, funnel
from perfquarry.data.logs import without_frames_of_ends
from perfquarry.flows.pipeline import Step, run_steps
from perfquarry.flows.run import Run
from perfquarry.flows.runner import WAITING, Begin, End, Failure, Outcome, attempt, failed
from perfquarry.flows.stages import BY_NAME, Batch, Stage
from perfquarry.harness.sandbox import ending_together

P = ParamSpec("P")
R = TypeVar("R")
WAITING_STATE = "Waiting"
"""Name of the state of a run that failed because answers or money are missing."""
ENDS: dict[End, str] = {
    "done": "done",
    "elsewhere": "another worker does it",
    "late": "the time of the run was over",
    "aside": "others wait for its core: it goes on later",
}
"""Messages of batches that did not fail."""
HOLDER = "worker:"
"""Beginning of the tag that names the process of a flow run."""
PLOTS = {
    "funnel": "Share of the changes that each stage keeps, with the reasons for the others",
    "history": "Tasks by speedup, and the other candidates, by the day of the merge",
    "speedups": "Speedups of the accepted tasks with their 95 % intervals",
    "noise": "Noise of the machine over the run",
}
"""By name of a plot what it shows."""
_log = logging.getLogger("perfquarry.artifacts")


@task(name="batch", task_run_name="{stage}-{label}", persist_result=False)
def batch_task(stage: str, options: str, keys: Sequence[str], label: str, since: float) -> State[None]:
    """One batch of one stage; the options are JSON (`flows.options.Options`)."""
    outcome = attempt(Run.open(options), BY_NAME[stage], tuple(keys), since)
    if outcome.failure:
        return Failed(message=f"{type(outcome.failure.error).__name__}: {outcome.failure.error}")
    return Completed(message=ENDS[outcome.end])


@contextmanager
def task_runs(run: Run) -> Iterator[Begin]:
    """Does batches as task runs of the current flow run, whose task runner says how many at once."""
    options = run.options.model_dump_json()
    futures: list[PrefectFuture[Any]] = []

    def begin(stage: Stage, batch: Batch, since: float, done: Callable[[Outcome], None]) -> None:
        def ended(future: PrefectFuture[Any]) -> None:
            future.wait()
            done(_outcome(stage, batch, future.state))

        futures.append(batch_task.submit(stage.name, options, batch, f"{batch[0][:12]}-{len(batch)}", since))
        futures[-1].add_done_callback(ended)

    try:
        with ending_together():
            yield begin
    except BaseException:  # Prefect's own handler of SIGTERM, too
        without_frames_of_ends()
        raise
    finally:
        for future in futures:
            future.wait()


def _outcome(stage: Stage, batch: Batch, state: State[Any]) -> Outcome:
    if state.is_completed():
        return Outcome(batch, next((end for end, text in ENDS.items() if text == state.message), "done"))
    return Outcome(batch, failure=Failure(stage.name, batch, _error(state.message or "crashed")))


def _error(message: str) -> PerfquarryError:
    """The error that `batch_task` reported."""
    name, _, text = message.partition(": ")
    kinds = {one.__name__: one for kind in WAITING for one in (kind, *kind.__subclasses__())}
    return kinds[name](text) if name in kinds else InfrastructureError(message)


@flow(name="curate", flow_run_name="curate-{repo}", persist_result=False, validate_parameters=False)
def curate(repo: str, options: str, stages: Sequence[str], done: Sequence[str] = ()) -> State[None]:
    """The named stages of one repository, in order; failed if some batches could not be done."""
    run = Run.open(options)
    state = do_stages(run, stages, done)
    publish(run, funnel(run.store, run.name, provenance(run)))
    return state


def do_stages(run: Run, stages: Sequence[str], done: Sequence[str] = ()) -> State[None]:
    """The steps of the named stages as flow runs below the current one, whose heartbeat is enough: they end at once.

    Those that were done while the server started have one, too, and do nothing.
    """

    def does(step: Step) -> list[Failure]:
        def step_flow(options: str) -> list[Failure]:
            if step.name in done:
                logging.getLogger("perfquarry.flows").info("%s was done while the server started", step.name)
                return []
            return step.does(Run.open(options), task_runs)

        return _below(step.name, run.name, step.workers(run), step_flow)(run.options.model_dump_json())

    with _log_on_page(), temporary_settings(updates={PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        failures = run_steps(run, stages, does)
    return outcome_of(failed(failures)) if failures else Completed(message="done")


def _below(name: str, subject: str, at_once: int, does: Callable[P, R]) -> Flow[P, R]:
    """A flow that is made for one run: what it does, and how many of its task runs work at once."""
    workers: TaskRunner[Any] = ThreadPoolTaskRunner(max_workers=at_once)
    made = flow(
        name=name,
        flow_run_name=f"{name}-{subject}",
        task_runner=workers,
        persist_result=False,
        validate_parameters=False,
    )
    return made(does)


@contextmanager
def _log_on_page() -> Iterator[None]:
    """Our log stands on the page of the whole run, too; PREFECT_LOGGING_TO_API_ENABLED=false leaves it out."""
    whole, handler, log = flow_run.id, APILogHandler(), logging.getLogger("perfquarry")

    def of_the_whole(record: logging.LogRecord) -> bool:
        record.flow_run_id = whole  # else Prefect shows a line with its stage only
        return True

    handler.addFilter(of_the_whole)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        handler.flush()


def outcome_of(error: RunFailed) -> State[None]:
    """The state of a flow run that ended so; `Waiting` where nothing is broken."""
    return Failed(message=str(error), name=WAITING_STATE if isinstance(error, RunWaits) else "Failed")


def error_of(state: State[None]) -> RunFailed | None:
    """The error that such a state stands for, None for one of success."""
    if state.is_completed():
        return None
    return (RunWaits if state.name == WAITING_STATE else RunFailed)(state.message or "the flow run did not complete")


def run_with_prefect(run: Run, stages: Sequence[str], done: Sequence[str] = ()) -> None:
    """The `curate` flow on the server of PREFECT_API_URL, tagged with the home and the repository.

    Flow runs with the same tags that still show as running, of processes of this home
    that have ended, are marked as crashed first.

    Raises:
        RunFailed: some batches could not be done.
        ServerUnavailable: the server did not answer.
    """
    _hush()  # what failed is in our own log and in RunFailed
    own = [f"repo:{run.name}", f"home:{run.home.root}"]
    mark_crashed(own, run.home.signs)
    with tags(*own, f"{HOLDER}{run.claims.holder}"):
        state: State[Any] = curate(run.name, run.options.model_dump_json(), list(stages), done, return_state=True)
    if error := error_of(state):
        raise error


def _hush() -> None:
    """Prefect's own lines about runs that failed are left out."""
    for name in ("prefect.flow_runs", "prefect.task_runs"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


@task(name="job", task_run_name="{label}", persist_result=False, cache_policy=NO_CACHE)
def job_task(label: str, job: Job) -> None:
    """One job of a command that is no stage."""
    job.work()


def do_jobs(command: str, subject: str, jobs: Sequence[Job], at_once: int) -> None:
    """The jobs as task runs of one flow run, named after the command and its subject.

    Raises:
        Exception: the first error of a job, as it was raised there; jobs that have not begun are left.
    """

    def all_jobs() -> None:
        with ending_together():
            futures = [job_task.submit(job.label, job) for job in jobs]
            for future in futures:
                future.result()

    _hush()  # the error is raised here
    _below(command, subject, at_once, all_jobs)()


def mark_crashed(own: Sequence[str], signs: Path) -> None:
    """Marks flow runs as crashed that show as running and whose process has ended.

    Args:
        own: the tags of this home and repository.
        signs: the folder in which living processes have their sign (`data.alive`).

    Raises:
        ServerUnavailable: the server did not answer.
    """
    running = FlowRunFilter(
        tags=FlowRunFilterTags(all_=list(own)),
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.RUNNING, StateType.PENDING])),
    )
    try:
        with get_client(sync_client=True) as client:
            dead = [one for one in client.read_flow_runs(flow_run_filter=running) if not _works(one.tags, signs)]
            for one in dead:
                client.set_flow_run_state(one.id, Crashed(message="The process was killed."), force=True)
    except (PrefectException, httpx.HTTPError) as error:
        raise ServerUnavailable(f"the Prefect server did not answer while old runs were looked at: {error}") from error


def _works(run_tags: Sequence[str], signs: Path) -> bool:
    return any(is_locked(signs / tag.removeprefix(HOLDER)) for tag in run_tags if tag.startswith(HOLDER))


def publish(run: Run, counts: Funnel) -> None:
    """Creates the artifacts `funnel-REPO`, `tasks-REPO` and of each plot `NAME-plot-REPO`.

    A server that refuses them costs a warning: the tables have it all.
    """
    tasks = newest_tasks(run.store, run.name)
    accepted = sorted((task for task in tasks if task.status == "kept"), key=lambda task: -(task.speedup or 0))
    suffix = re.sub(r"[^a-z0-9]+", "-", run.name.lower()).strip("-")
    try:
        create_table_artifact(key=f"funnel-{suffix}", table=funnel_rows(counts), description=f"Funnel of {run.name}")
        create_table_artifact(
            key=f"tasks-{suffix}",
            table=[
                {
                    "task": task.task_id,
                    "title": task.title,
                    "speedup, kept workloads": with_interval(task.speedup, task.low, task.high),
                    "speedup, all decided": with_interval(task.overall_speedup, task.overall_low, task.overall_high),
                    "δ": round(task.delta or 0, 3),
                    "workloads": len(task.workloads),
                }
                for task in accepted
            ],
            description=f"{len(accepted)} accepted task(s) of {run.name}",
        )
        for name, plot in repository_plots(run.store, run.name, counts, tasks).items():
            image = base64.b64encode(plot.encode()).decode()
            create_markdown_artifact(
                key=f"{name}-plot-{suffix}",
                markdown=f"![{PLOTS[name]}](data:image/svg+xml;base64,{image})",
                description=f"{PLOTS[name]}, {run.name}",
            )
    except (PrefectException, httpx.HTTPError) as error:
        _log.warning("the artifacts of %s could not be stored: %s", run.name, error)


def funnel_rows(counts: Funnel) -> list[dict[str, str | int]]:
    """The funnel as a table, a stage a row."""
    return [
        {
            "stage": stage.stage,
            "in": stage.entered,
            "kept": stage.kept,
            "rejected": sum(stage.rejected.values()),
            "to do": stage.pending,
            "why": ", ".join(f"{reason} {count}" for reason, count in stage.rejected.items()),
        }
        for stage in counts.stages
    ]
