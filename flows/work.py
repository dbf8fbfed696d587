"""Does the stages of one run, with or without a Prefect server, and shows the outcome."""

from __future__ import annotations

import importlib
import logging
import os
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from perfquarry.curation.facts import of_run
from perfquarry.curation.notices import report_new_tasks
from perfquarry.curation.rows_of_run import provenance
from perfquarry.data.display import current, showing, waiting
from perfquarry.data.errors import GitFailed, InputError, RunFailed, RunWaits, ServerUnavailable
from perfquarry.data.funnel import Funnel, funnel
from perfquarry.data.git import commit_of, origin_of
from perfquarry.data.logs import log_to
from perfquarry.data.output import Report
from perfquarry.data.own_rows import TABLES
from perfquarry.data.registry import registered_at
from perfquarry.data.runs import recorded, run_name
from perfquarry.data.spans import span, tracing
from perfquarry.flows.options import Options, as_given
from perfquarry.flows.pipeline import run_stages
from perfquarry.flows.run import Run
from perfquarry.flows.server import leased, quiet
from perfquarry.flows.sources import check_sources, sources_of
from perfquarry.flows.watermarks import Watermark
from perfquarry.harness.leases.tidying import tidy
from perfquarry.harness.sandbox.priority import timed_nice
from perfquarry.miners.clone import is_local
from perfquarry.miners.judge import spec_of

_log = logging.getLogger("perfquarry.flows")

Execute = Callable[[Run, Sequence[str]], None]
"""Does the named stages of a run; raises RunFailed where some batches could not be done."""


def work(options: Options, stages: Sequence[str], *, with_server: bool, as_json: bool) -> Report:
    """Runs the stages; the report has the funnel, the accepted tasks, and where the Parquet lies.

    Raises:
        InputError: the repository or a change cannot be found.
        RunFailed: some batches could not be done.
    """
    began = time.monotonic()
    console = Console(stderr=as_json)
    run = Run.open(options.model_dump_json())
    executor = _with_server(run) if with_server else nullcontext(run_stages)
    quiet()
    counts = perform(run, stages, executor, console, silent=as_json)
    return of_run(run, options.repo, counts, time.monotonic() - began)


def perform(
    run: Run,
    stages: Sequence[str],
    executor: AbstractContextManager[Execute],
    console: Console,
    *,
    silent: bool = False,
    flow_run: str = "",
) -> Funnel:
    """One run from its claims to its notices; returns the funnel.

    When nothing is new since a finished run with the same options, no stage looks at
    anything and the executor, which gets ready while the repository is fetched, is not entered.

    Args:
        run: what is run.
        stages: names of the stages.
        executor: gets ready whatever does the stages, while the repository is fetched.
        console: where progress is shown.
        silent: show none.
        flow_run: id of Prefect's flow run, where there is one already.

    Raises:
        InputError: the repository or a change cannot be found.
        RunFailed: some batches could not be done.
    """
    run.begin()
    run.stages[:] = stages
    name = run_name(run.name)
    log_to(run.home.logs, console, name, run.name)
    with (
        claiming(run, stages, console),
        recorded(run.home, name, run.name, stages, flow_run) as record,
        tracing(),
        span("run", run=name, repository=run.name),
    ):
        run.options.settings.notify.address()  # what is wrong is reported before the work
        timed_nice()
        _check_names(run, stages, console)
        watermark = Watermark(run, stages)
        if mark := watermark.reached():
            report_new_tasks(run, run.options.settings.notify)
            _log.info("nothing new since %s at %s", f"{mark.at:%Y-%m-%d %H:%M}", mark.head)
            if not silent:
                console.print(f"nothing new since {mark.at:%Y-%m-%d %H:%M} UTC", highlight=False)
            record.set(outcome="nothing new")
            return mark.funnel
        try:
            with executor as execute:
                doing = "fetch" if run.is_cloned else "clone"
                named = "" if run.source == run.name else f" as {run.name}"
                with waiting(console, doing, f"{run.source}{named}", silent=silent):
                    _check(run, stages)
                _check_before(run, stages)
                watermark.begin()
                tidy(run.home, run.options.settings.resources.disk)
                with showing(console, silent=silent, also=record):
                    execute(run, stages)
        except RunFailed as error:
            report_new_tasks(run, run.options.settings.notify)  # others may have been accepted
            record.set(outcome="waiting" if isinstance(error, RunWaits) else "failed", message=str(error))
            raise
        report_new_tasks(run, run.options.settings.notify)
        watermark.finish()
        record.set(outcome="done")
        return funnel(run.store, run.name, provenance(run))


@contextmanager
def _with_server(run: Run) -> Iterator[Execute]:
    """A Prefect server starts while the run prepares and the history is read, and is waited for when it is needed."""

    def execute(run: Run, stages: Sequence[str]) -> None:
        done: list[str] = []
        if server:
            if not server.answers:
                current().announce("server", "Prefect's server of this home starts; --no-server goes without")
                done = [name for name in stages if name == "mine" or (name == "judge" and not _asks_model(run))]
                run_stages(run, done)
                current().stage("server", None)
            os.environ["PREFECT_API_URL"] = server.promised()
        from perfquarry.flows.prefect_flows import run_with_prefect  # takes seconds, in which the server starts

        if "select" in stages:
            importlib.import_module("scipy.stats")  # takes another one
        if server and server.wait() != os.environ["PREFECT_API_URL"]:
            raise ServerUnavailable(
                "the local Prefect server was replaced while it started; run the same command again"
            )
        if server:
            current().finish("answers")
        run_with_prefect(run, stages, done)

    with leased(run.home) as server:
        yield execute


def _asks_model(run: Run) -> bool:
    return spec_of(run.options.settings.judge) is not None


@contextmanager
def claiming(run: Run, stages: Sequence[str], console: Console) -> Iterator[None]:
    """Says who else works on the repository, and frees what this run has claimed when it ends."""
    busy = sum(len(run.claims.elsewhere(run.scope(stage))) for stage in stages)
    if busy:
        console.print(f"[yellow]others work on {escape(run.name)}, too ({busy} claims): sharing what is to do[/]")
    try:
        yield
    finally:
        run.close()


def _point_to_entry(run: Run, console: Console) -> None:
    """Says that the registry has an entry of what was given as a folder: without its name its recipe is not used."""
    folder = Path(run.options.repo).expanduser()
    if run.options.source or not folder.is_dir() or run.source != str(folder.resolve()):
        return
    if entry := registered_at(origin_of(folder)):
        command = f"perfquarry curate {entry.name} --source {shlex.quote(run.options.repo)}"
        console.print(
            f"[yellow]this is a clone of {entry.name}, of which the registry knows how it is built and tested: "
            f"`{escape(command)}` uses that[/]",
            highlight=False,
            soft_wrap=True,
        )


def _check_names(run: Run, stages: Sequence[str], console: Console) -> None:
    """Looks at what the options name, before a server is started or anything is cloned over the network.

    Raises:
        InputError: a judge, a source of workloads or a local repository is none.
    """
    generate = run.options.settings.generate
    check_sources([*generate.sources, *generate.further])
    spec_of(run.options.settings.judge)
    if "generate" in stages:
        sources_of(run)
    if run.name != "demo" and is_local(as_given(run.source)):
        if not run.is_cloned:
            _point_to_entry(run, console)
        run.newest_commit()  # takes milliseconds where nothing is fetched


def _check(run: Run, stages: Sequence[str]) -> None:
    """Clones or updates the repository and looks the asked changes up, before anything is shown or written.

    Raises:
        InputError: the repository has no commit, or a change is not in the clone.
    """
    run.newest_commit()
    if "judge" in stages:
        with run.judging():  # whoever answers is there
            pass
    for change in run.options.changes:
        try:
            commit_of(run.clone, change)
        except GitFailed as error:
            raise InputError(f"no commit {change!r} in {run.source}: give hashes of its default branch") from error


def _check_before(run: Run, stages: Sequence[str]) -> None:
    """Looks whether the first of the stages has anything to begin with.

    Raises:
        InputError: the stage before it was not run with these settings.
    """
    before = dict(zip((*TABLES, "select")[1:], TABLES, strict=True)).get(stages[0])
    if before and not run.store.count(TABLES[before], run.name, **run.where(before)):
        raise InputError(
            f"there is nothing to {stages[0]}: with these settings, {run.name} has no rows of the stage before it; "
            f"run `perfquarry {before} {run.options.repo}` first, or `perfquarry curate {run.options.repo}`"
        )
