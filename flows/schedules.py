"""What `perfquarry schedule` and `perfquarry worker` do."""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

import psutil
from rich.text import Text

from perfquarry.data.children import Need, environment
from perfquarry.data.errors import InfrastructureError
from perfquarry.data.home import Home
from perfquarry.flows.deployments import POOL, chosen
from perfquarry.flows.options import WORKER_SETTINGS, read_settings
from perfquarry.flows.output import Listing, put
from perfquarry.flows.runs import repositories
from perfquarry.flows.server import local_server, quiet

IDLE_SECONDS = 5
"""How long a worker that was asked to end may go on without runs (seconds)."""


@contextlib.contextmanager
def connected(home: Home) -> Iterator[str]:
    """PREFECT_API_URL names a server that answers: the user's, or the home's own, which stays up meanwhile."""
    quiet()
    if url := os.environ.get("PREFECT_API_URL"):
        yield url
        return
    os.environ.setdefault("PREFECT_HOME", str(home.server))
    with local_server(home) as server:
        os.environ["PREFECT_API_URL"] = server.wait()
        yield os.environ["PREFECT_API_URL"]


def apply(home: Home, repositories: Sequence[str], *, as_json: bool) -> None:
    """Creates or updates the deployments of these repositories, all without names.

    Raises:
        ServerUnavailable: the server did not do it.
    """
    wanted = chosen(repositories)
    with connected(home) as url:
        from perfquarry.flows.prefect_deployments import apply as create

        create(wanted)
    put(wanted, [f"{len(wanted)} deployment(s) on {url}; `perfquarry worker` does their runs"], as_json=as_json)


def show(home: Home, *, as_json: bool) -> None:
    """Prints what is deployed."""
    with connected(home):
        from perfquarry.flows.prefect_deployments import listed

        deployed = listed()
    none = "nothing is deployed: `perfquarry schedule apply REPO…` does that, `perfquarry worker` does the runs"
    names = ("repository", "cron, UTC", "next run, UTC", "last run, UTC", "ended")
    table = Listing(names, f"{len(deployed)} deployment(s)")
    for one in deployed:
        cron = one.cron if one.active else Text(f"{one.cron} (paused)", "dim")
        table.add(one.repository, cron, _minute(one.next_run), _minute(one.last_run), one.last_state)
    put(deployed, [table if deployed else none], as_json=as_json)


def _minute(date: datetime | None) -> str:
    return f"{date:%Y-%m-%d %H:%M}" if date else "–"


def remove(home: Home, repositories: Sequence[str], *, as_json: bool) -> None:
    """Deletes deployments, all without names.

    Raises:
        ServerUnavailable: the server did not do it.
    """
    with connected(home):
        from perfquarry.flows.prefect_deployments import remove as delete

        gone = delete(repositories)
    put(gone, [f"{len(gone)} deployment(s) removed: {', '.join(gone) or '–'}"], as_json=as_json)


def start(home: Home, repositories: Sequence[str], *, as_json: bool) -> None:
    """Has the runs of these deployments begun now.

    Raises:
        InputError: one of the repositories has no deployment.
        ServerUnavailable: the server did not do it.
    """
    with connected(home) as url:
        from perfquarry.flows.prefect_deployments import start as make_runs

        runs = make_runs(repositories)
    put(runs, [f"{len(runs)} run(s) on {url}: {', '.join(runs)}; `perfquarry worker` does them"], as_json=as_json)


def work(home: Home, limit: int, name: str | None, settings: Path | None) -> None:
    """Prefect's process worker on our pool, with this home, until it is asked to end.

    Raises:
        InputError: the settings cannot be read.
        InfrastructureError: the worker ended by itself.
    """
    read_settings(settings)
    with connected(home):
        from perfquarry.flows.prefect_deployments import settle_ended

        settle_ended(home, repositories(home))
        more = {"PERFQUARRY_HOME": str(home.root)}
        if settings:
            more[WORKER_SETTINGS] = str(settings.resolve())
        command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", POOL, "--type", "process"]
        command += ["--limit", str(limit), "--name", name or platform.node()]
        process = subprocess.Popen(command, env=environment(Need.EVERYTHING, **more), start_new_session=True)
        signals: list[int] = []

        def end(number: int, _: object) -> None:
            signals.append(number)
            process.send_signal(signal.SIGINT)

        for one in (signal.SIGINT, signal.SIGTERM):
            signal.signal(one, end)
        code = _ended(process, signals)
    if not signals:
        raise InfrastructureError(f"Prefect's worker ended with exit code {code}: see what it said above")


def _ended(process: subprocess.Popen[bytes], signals: Sequence[int]) -> int:
    """Waits for the worker; once asked to end, until its runs have ended, or it is asked again.

    An idle worker of Prefect 3.8.8 outlives the first SIGINT: it is killed.
    """
    idle = 0
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(1.0)
        if signals:
            with contextlib.suppress(psutil.NoSuchProcess):
                idle = 0 if psutil.Process(process.pid).children() else idle + 1
            if idle >= IDLE_SECONDS or len(signals) > 1:
                os.killpg(process.pid, signal.SIGKILL)
