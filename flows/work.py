"""Does the stages of one run, with or without a Prefect server, and shows the outcome."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

import git
from filelock import FileLock, Timeout
from rich.console import Console
from rich.markup import escape

from data.errors import InputError
from data.funnel import funnel
from data.home import Home
from flows.decisions import newest_tasks
from flows.display import log_to, showing
from flows.gc import tidy
from flows.judging import judging
from flows.options import Options
from flows.reports import explain, funnel_table, task_row, tasks_table
from flows.run import Run
from flows.runner import run_stages
from flows.server import local_server, quiet
from miners.judge import spec_of


def work(options: Options, stages: Sequence[str], *, with_server: bool, as_json: bool) -> None:
    """Runs the stages and prints the funnel, the accepted tasks, and where the Parquet lies.

    Raises:
        InputError: the repository or a change cannot be found.
        RunFailed: some batches could not be done.
    """
    began = time.monotonic()
    console = Console(stderr=as_json)
    run = Run.open(options.model_dump_json())
    log_to(run.home.logs, console, f"{run.name}-{datetime.now(UTC):%Y%m%dT%H%M%S}")
    with _only_run_of(run, console), _server(run, with_server) as prefect:
        _check(run, stages)
        tidy(run)
        with showing(console, silent=as_json):
            if prefect:
                prefect.start()
                from flows.prefect_flows import run_with_prefect

                run_with_prefect(run, stages)
            else:
                run_stages(run, stages)
    _report(run, console, as_json, time.monotonic() - began)


class _Server:
    """A Prefect server to be; started while the run prepares, waited for when it is needed."""

    def __init__(self, wait: object) -> None:
        self._wait = wait

    def start(self) -> None:
        """Makes PREFECT_API_URL name a server that answers."""
        if callable(self._wait):
            os.environ["PREFECT_API_URL"] = self._wait()


@contextmanager
def _server(run: Run, wanted: bool) -> Iterator[_Server | None]:
    quiet()
    if not wanted:
        yield None
    elif os.environ.get("PREFECT_API_URL"):
        yield _Server(None)
    else:
        os.environ.setdefault("PREFECT_HOME", str(run.home.server))
        with local_server(run.home) as server:
            yield _Server(server.wait)


@contextmanager
def _only_run_of(run: Run, console: Console) -> Iterator[None]:
    """One run a repository and home at a time; the lock dies with its holder."""
    run.home.locks.mkdir(parents=True, exist_ok=True)
    lock = FileLock(run.home.locks / f"run-{run.name}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        console.print(f"[yellow]another run of {escape(run.name)} is under way in this home; waiting for it[/]")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _check(run: Run, stages: Sequence[str]) -> None:
    """Clones or updates the repository and looks the asked changes up, before anything is shown or written.

    Raises:
        InputError: the judge or source of workloads is unknown, or a change is not in the clone.
    """
    if run.options.settings.generate.source != "unit-test":
        raise InputError(f"unknown source of workloads {run.options.settings.generate.source!r}: known is unit-test")
    spec_of(run.options.settings.judge)
    clone = git.Repo(run.clone)
    if "judge" in stages:
        with judging(run):  # whoever answers is there
            pass
    for change in run.options.changes:
        try:
            clone.git.rev_parse("--verify", "--quiet", "--end-of-options", f"{change}^{{commit}}")
        except git.GitCommandError as error:
            raise InputError(f"no commit {change!r} in {run.source}: give hashes of its default branch") from error


def _report(run: Run, console: Console, as_json: bool, seconds: float) -> None:
    counts = funnel(run.store, run.name, run.provenance)
    accepted = [task for task in newest_tasks(run.store, run.name) if task.status == "kept"]
    if as_json:
        facts = {
            "repository": run.name,
            "funnel": counts.as_json(),
            "tasks": [task_row(task) for task in accepted],
            "tables": str(run.home.tables),
            "seconds": round(seconds, 1),
        }
        print(json.dumps(facts, indent=2))
        return
    console.print()
    console.print(funnel_table(counts))
    explain(console, counts)
    console.print()
    console.print(tasks_table(accepted))
    console.print(
        f"\nParquet: {run.home.tables}/<table>/repo={run.name}/   ({seconds:.0f} s)\n"
        f"One task in full: perfquarry show TASK. One file: perfquarry export {run.options.repo} --to tasks.parquet",
        highlight=False,
        soft_wrap=True,
        markup=False,
    )


def serve(home: Home) -> None:
    """Keeps the home's server up and says where its page is, until Ctrl-C."""
    quiet()
    console = Console()
    with local_server(home) as server:
        console.print(f"Prefect: {server.wait().removesuffix('/api')}   (Ctrl-C ends it)", highlight=False)
        while True:
            time.sleep(3600)
