"""How long pages of the review queue take with many candidates: `python -m benchmarks.review [NUMBER]`."""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import httpx

from benchmarks.report import machine_facts, replace_section
from perfquarry.data.home import Home
from tests.review_home import desk_of, fill, serving, task_of

REPEATS = 20


def main(number: int) -> None:
    """Fills a home with synthetic candidates, serves it, asks for pages, and writes the section."""
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        tasks = [task_of(one, 1.05 + rng.expovariate(2)) for one in range(number)]
        fill(home, tasks, measured=50)
        began = time.perf_counter()
        desk = desk_of(home)
        opening = time.perf_counter() - began
        places = {
            "the queue, first page": "/",
            "the queue, page 100": "/?page=100",
            "search of two words": "/?q=memoise+regex",
            "newest first, all": "/?state=all&sort=date",
            "a candidate": f"/tasks/{tasks[10].task_id}",
            "its plots, read first": f"/tasks/{tasks[10].task_id}/evidence",
        }
        with (
            serving(desk, home) as (address, _),
            httpx.Client(base_url=address, trust_env=False, timeout=60) as client,
        ):
            rows = [(name, *_timed(client, place)) for name, place in places.items()]
    lines = [
        f"`python -m benchmarks.review {number}` on {machine_facts()}: {number:,} synthetic candidates in SQLite, "
        f"timings of 50 of them; {REPEATS} requests each over HTTP, "
        f"client and server in one process. Opening the queue (reading the tables into the "
        f"database) took {opening:.1f} s.",
        "",
        "| page | first (ms) | median (ms) | CPU, first (ms) | CPU, median (ms) | kB |",
        "|---|---:|---:|---:|---:|---:|",
        *(f"| {name} | {' | '.join(f'{value:.0f}' for value in values)} |" for name, *values in rows),
    ]
    replace_section("Review queue", "\n".join(lines))
    print("\n".join(lines))


def _timed(client: httpx.Client, place: str) -> tuple[float, ...]:
    spent, busy = [], []
    for _ in range(REPEATS):
        began, cpu = time.perf_counter(), time.process_time()
        answer = client.get(place)
        spent.append(1000 * (time.perf_counter() - began))
        busy.append(1000 * (time.process_time() - cpu))
        assert answer.status_code == 200
    return spent[0], median(spent), busy[0], median(busy), len(answer.content) / 1000


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
