"""`kill -9` of a random process every so often during a run on Prefect workers: the tables of an undisturbed run.

The parts are real: Postgres behind the Prefect server and the claims, a process work pool, two
workers, flow runs from a deployment. What dies is started again after a second, as compose does.
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil

from benchmarks.same_tables import content
from perfquarry.data.records import Attempt, Build, Change, Verdict, Workload
from perfquarry.flows.options import Options
from perfquarry.flows.pipeline import run_stages
from perfquarry.flows.run import Run
from perfquarry.flows.server import quiet
from perfquarry.flows.stages import STAGES
from tests.real_servers import free_port, postgres, postgres_binaries

NAMES = ("mine", "judge", "build", "generate")
TABLES = (Change, Verdict, Attempt, Build, Workload)
POOL = "faults"
FLOW_RUNS, WORKERS = 2, 2

DEPLOY = """
import sys
from prefect.deployments.runner import EntrypointType
from perfquarry.flows.prefect_flows import curate
deployment = curate.to_deployment(
    "faults", work_pool_name=sys.argv[1], entrypoint_type=EntrypointType.MODULE_PATH,
    parameters={"repo": "demo", "options": sys.argv[2], "stages": sys.argv[3].split(",")},
)
print(deployment.apply())
"""


class Parts:
    """The processes of the run."""

    def __init__(self, folder: Path, database: str, options: str) -> None:
        self._folder, self._options, self._port = folder, options, free_port()
        self._api = f"http://127.0.0.1:{self._port}/api"
        self._environment = {
            **os.environ,
            "PREFECT_HOME": str(folder / "prefect"),
            "PREFECT_API_URL": self._api,
            "PREFECT_SERVER_DATABASE_CONNECTION_URL": database.replace("+psycopg", "+asyncpg"),
            "PERFQUARRY_DATABASE": database,
        }
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self._deployment = ""

    def start(self) -> None:
        """The server, the pool, the deployment and the workers."""
        self.again("server")
        self._wait()
        self._prefect("work-pool", "create", POOL, "--type", "process")
        done = self._call([sys.executable, "-c", DEPLOY, POOL, self._options, ",".join(NAMES)])
        self._deployment = done.stdout.split()[-1]
        for number in range(WORKERS):
            self.again(f"worker {number}")

    def again(self, name: str) -> None:
        """Starts the server or a worker."""
        command = ["worker", "start", "--pool", POOL, "--type", "process", "--limit", "1", "--name", name]
        if name == "server":
            command = ["server", "start", "--host", "127.0.0.1", "--port", str(self._port)]
        with (self._folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                [sys.executable, "-m", "prefect", *command], env=self._environment, stdout=log, stderr=log
            )

    def ask(self) -> bool:
        """Asks for one more run of the flow; false while the server is away."""
        address = f"{self._api}/deployments/{self._deployment}/create_flow_run"
        try:
            return httpx.post(address, json={}, timeout=20, trust_env=False).is_success
        except httpx.HTTPError:
            return False

    def flows(self) -> list[psutil.Process]:
        """Processes of flow runs."""
        found: dict[int, tuple[int, psutil.Process]] = {}
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):  # it has ended meanwhile
                inside = process.environ()
                if inside.get("PREFECT_API_URL") == self._api and "PREFECT__FLOW_RUN_ID" in inside:
                    found[process.pid] = process.ppid(), process
        return [process for parent, process in found.values() if parent not in found]

    def stop(self) -> None:
        """Ends all."""
        for process in [*self.flows(), *self.running.values()]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        for server in self.running.values():
            server.wait()

    def answers(self) -> bool:
        """Whether the server does."""
        try:
            return httpx.get(f"{self._api}/health", timeout=10, trust_env=False).is_success
        except httpx.HTTPError:
            return False

    def _wait(self) -> None:
        for _ in range(600):
            if self.answers():
                return
            time.sleep(0.5)
        raise RuntimeError("the Prefect server did not answer")

    def _prefect(self, *arguments: str) -> None:
        self._call([sys.executable, "-m", "prefect", *arguments])

    def _call(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, env=self._environment, check=True, capture_output=True, text=True)


def fault_run(parts: Parts, run: Run, every: float) -> Iterator[str]:
    """Kills until nothing is left to do; what happened, a line each."""
    chance, began = random.Random(20261121), time.monotonic()
    killed_at = asked_at = began
    kinds: list[str] = []

    def line(text: str) -> str:
        print(text := f"{time.monotonic() - began:5.0f} s  {text}", file=sys.stderr, flush=True)
        return text

    while left := to_do(run):
        flows = parts.flows()
        if not (flows and parts.answers()):  # only what has come up again is killed
            killed_at = time.monotonic()
        for name, process in list(parts.running.items()):
            if process.poll() is not None:
                time.sleep(1)
                parts.again(name)
        if len(flows) < FLOW_RUNS and time.monotonic() - asked_at > 20 and parts.ask():
            asked_at = time.monotonic()
        if time.monotonic() - killed_at > every:
            kinds = kinds or chance.sample(("server", "worker", "flow run"), 3)  # each as often as the others
            kind = kinds.pop()
            victims = [*parts.running, *(f"flow run {number}" for number in range(len(flows)))]
            victim = chance.choice([one for one in victims if one.startswith(kind)])
            with contextlib.suppress(psutil.NoSuchProcess):
                (flows[int(victim[9:])] if victim.startswith("flow") else parts.running[victim]).kill()
            killed_at = time.monotonic()
            yield line(f"kill -9 of {victim}; still to do: {left}")
        time.sleep(1)
    yield line("nothing left to do")


def to_do(run: Run) -> str:
    """What the stages after the crawl still have to do; empty when that is nothing."""
    if not run.store.count(Change, run.name):
        return "everything"
    left = {stage.name: sum(map(len, stage.todo(run))) for stage in STAGES if stage.name in NAMES[1:]}
    return ", ".join(f"{name} {number}" for name, number in left.items() if number)


def faults(folder: Path, every: float, changes: int | None = None) -> str:
    """The section's text; only so many changes are built where a number is given."""
    quiet()
    binaries = postgres_binaries()
    if binaries is None:
        raise RuntimeError("this part needs a Postgres server (Debian: postgresql)")
    undisturbed, home = folder / "undisturbed", folder / "home"
    options = [
        Options(repo="demo", home=str(one), jobs=1, limit=changes).model_dump_json() for one in (undisturbed, home)
    ]
    run = Run.open(options[0])
    run_stages(run, NAMES)
    run.close()
    with postgres(binaries) as database:
        parts = Parts(folder, database, options[1])
        try:
            parts.start()
            for _ in range(FLOW_RUNS):
                parts.ask()
            log = list(fault_run(parts, Run.open(options[1]), every))
        finally:
            parts.stop()
    want, got = content(undisturbed, "demo", TABLES), content(home, "demo", TABLES)
    same = ", ".join(f"{name} {len(rows)}" for name, rows in got.items())
    assert want == got, f"tables differ: {[name for name in want if want[name] != got[name]]}"
    return (
        f"Stages {', '.join(NAMES)} of the demo on {WORKERS} Prefect workers, `kill -9` of a random one of server, "
        f"workers and flow runs {every:.0f} s after all were up again. Rows equal to those of an undisturbed run "
        f"(clock, sizes and logs aside): {same}.\n\n```\n" + "\n".join(log) + "\n```"
    )
