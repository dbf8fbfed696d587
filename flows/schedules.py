"""What `perfquarry worker` does."""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil

from perfquarry.data.children import Need, environment
from perfquarry.data.errors import InfrastructureError
from perfquarry.data.home import Home
from perfquarry.data.runs import repositories
from perfquarry.flows.deployments import POOL
from perfquarry.flows.options import WORKER_SETTINGS, read_settings
from perfquarry.flows.server import connected

IDLE_SECONDS = 5
"""How long a worker that was asked to end may go on without runs (seconds)."""


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
