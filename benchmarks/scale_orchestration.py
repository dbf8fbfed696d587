"""What a batch costs when there is nothing to do in it: claims alone, and Prefect's task runs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from perfquarry.flows.options import Options
from perfquarry.flows.run import Run
from perfquarry.flows.runner import Executor, run_stage
from perfquarry.flows.server import local_server, quiet
from perfquarry.flows.stages import Batch, Stage
from tests.real_servers import postgres, postgres_binaries

BATCHES, KEYS = 500, 1000


def seconds(run: Run, batches: list[Batch], executor: Executor | None = None) -> tuple[float, float]:
    """Wall and CPU seconds (of this process) of a stage whose batches do nothing."""
    left = set(batches)
    stage = Stage("build", lambda run: sorted(left), lambda run, batch: left.discard(batch))
    wall, cpu = time.monotonic(), time.process_time()
    failures = run_stage(run, stage, executor)
    assert not failures and not left
    return time.monotonic() - wall, time.process_time() - cpu


def _run(home: Path, database: str | None = None) -> Run:
    os.environ.pop("PERFQUARRY_DATABASE", None)
    if database:
        os.environ["PERFQUARRY_DATABASE"] = database
    run = Run.open(Options(repo="demo", home=str(home), jobs=2).model_dump_json())
    _ = run.claims, run.store
    os.environ.pop("PERFQUARRY_DATABASE", None)
    return run


def with_prefect(home: Path) -> None:
    """Prints the seconds of both kinds of batches as task runs; PREFECT_API_URL is set."""
    from prefect import flow
    from prefect.task_runners import ThreadPoolTaskRunner

    from perfquarry.flows.prefect_flows import task_runs

    run = _run(home)

    @flow(task_runner=ThreadPoolTaskRunner(max_workers=2), persist_result=False)
    def bench() -> None:
        seconds(run, [(f"warm{number}",) for number in range(20)], task_runs)
        print(*seconds(run, single("p"), task_runs))

    bench()
    run.close()


def single(name: str) -> list[Batch]:
    """Batches of one change."""
    return [(f"{name}{number:06d}",) for number in range(BATCHES)]


def orchestration(folder: Path) -> str:
    """The section's text."""
    lines = ["| batches | ms a batch | CPU ms a batch | CPU ms a change |", "|---|---|---|---|"]

    def report(name: str, taken: tuple[float, float], batches: int, keys: int) -> None:
        wall, cpu = (1000 * one / batches for one in taken)
        lines.append(f"| {name} | {wall:.2f} | {cpu:.2f} | {cpu / keys:.4f} |")
        print(lines[-1], file=sys.stderr, flush=True)

    large: list[Batch] = [tuple(f"l{b:03d}{k:05d}" for k in range(KEYS)) for b in range(20)]
    run = _run(folder / "sqlite")
    report("one change, claims in SQLite", seconds(run, single("s")), BATCHES, 1)
    report(f"{KEYS} changes, claims in SQLite", seconds(run, large), len(large), KEYS)
    run.close()
    if binaries := postgres_binaries():
        with postgres(binaries) as url:
            run = _run(folder / "postgres", url)
            report("one change, claims in Postgres", seconds(run, single("s")), BATCHES, 1)
            report(f"{KEYS} changes, claims in Postgres", seconds(run, large), len(large), KEYS)
            run.close()
    quiet()
    run = _run(folder / "prefect")
    with local_server(run.home) as server:
        if not os.environ.get("PREFECT_API_URL"):
            os.environ["PREFECT_API_URL"] = server.wait()
        command = [sys.executable, "-m", "benchmarks.scale_orchestration", str(folder / "prefect")]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    run.close()
    wall, cpu = map(float, said.split())
    report("one change, claims in SQLite, a task run on the Prefect server", (wall, cpu), BATCHES, 1)
    return "A stage whose batches do nothing, two threads; CPU time is the worker's own.\n\n" + "\n".join(lines)


if __name__ == "__main__":
    with_prefect(Path(sys.argv[1]))
