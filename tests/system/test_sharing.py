"""The loop over a stage's batches, shared by several workers of a home."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from perfquarry.data.errors import InputError
from perfquarry.flows.options import Options
from perfquarry.flows.run import Run
from perfquarry.flows.runner import run_stage
from perfquarry.flows.stages import Batch, Stage


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[list[Run]]:
    """Three workers; the number of their threads tells them apart and is in no hash."""
    made = [Run.open(Options(repo="demo", home=str(tmp_path), jobs=jobs).model_dump_json()) for jobs in (1, 2, 3)]
    yield made
    for run in made:
        run.close()


class Work:
    """Batches that are to be done until they are done, like rows that are missing in a table."""

    def __init__(self, batches: list[Batch], seconds: float = 0.0) -> None:
        self.left, self.done, self._seconds = list(batches), list[tuple[int, str]](), seconds
        self._lock = threading.Lock()

    def todo(self, run: Run) -> list[Batch]:
        left = [tuple(key for key in batch if key not in {key for _, key in self.done}) for batch in self.left]
        return [batch for batch in left if batch]

    def work(self, run: Run, batch: Batch) -> None:
        time.sleep(self._seconds)
        with self._lock:
            self.done += [(run.options.jobs, key) for key in batch]


def share(runs: list[Run], stage: Stage) -> list[int]:
    """All workers do the stage at once; the number of failures of each."""
    with ThreadPoolExecutor(len(runs)) as pool:
        return [len(found) for found in pool.map(lambda run: run_stage(run, stage), runs)]


def test_every_batch_is_done_once_and_by_several(runs: list[Run]) -> None:
    work = Work([(f"k{number}",) for number in range(40)])
    begun: set[int] = set()
    all_begun = threading.Event()

    def together(run: Run, batch: Batch) -> None:
        begun.add(run.options.jobs)
        if len(begun) == 3:
            all_begun.set()
        assert all_begun.wait(120), "a worker got nothing to do"
        work.work(run, batch)

    assert share(runs, Stage("build", work.todo, together)) == [0, 0, 0]
    assert sorted(key for _, key in work.done) == sorted(key for (key,) in work.left)


def test_large_batches_that_overlap_are_divided(runs: list[Run]) -> None:
    keys = tuple(f"k{number}" for number in range(90))
    work = Work([keys[:60], keys[60:]], seconds=0.2)
    taken = runs[0].claims.take(runs[0].scope("judge"), keys[10:20], runs[0].claims.now())
    threading.Timer(0.5, lambda: runs[0].claims.release(runs[0].scope("judge"), taken)).start()

    def judge(run: Run, batch: Batch) -> None:  # a stage of large batches looks anew at what is done
        done = {key for _, key in work.done}
        work.work(run, tuple(key for key in batch if key not in done))

    assert share(runs[1:], Stage("judge", work.todo, judge, alone=True, counts_rows=True)) == [0, 0]
    assert sorted(key for _, key in work.done) == sorted(keys)


def test_a_worker_waits_for_what_others_are_at(runs: list[Run]) -> None:
    work, first = Work([("slow",)]), runs[0]
    assert first.claims.take(first.scope("build"), ["slow"], first.claims.now())

    def finish() -> None:
        work.work(first, ("slow",))
        first.claims.finish(first.scope("build"), ["slow"])

    threading.Timer(1.0, finish).start()
    assert share(runs[1:], Stage("build", work.todo, work.work)) == [0, 0]
    assert work.done == [(1, "slow")]


def test_what_fails_here_is_left_to_the_others_and_ends_the_stage(runs: list[Run]) -> None:
    work = Work([("good",), ("bad",)])

    def fail(run: Run, batch: Batch) -> None:
        if batch == ("bad",):
            raise InputError("cannot be done")
        work.work(run, batch)

    assert share(runs, Stage("build", work.todo, fail)) == [1, 1, 1]
    assert [key for _, key in work.done] == ["good"]


def test_the_crawl_is_done_by_one_worker_after_the_other(runs: list[Run]) -> None:
    """Its one batch is always to be done: what is new is found while it is done."""
    at_once, most = 0, 0

    def crawl(run: Run, _: Batch) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        time.sleep(0.1)
        at_once -= 1

    assert share(runs, Stage("mine", lambda run: [("history",)], crawl, counts_rows=True)) == [0, 0, 0]
    assert most == 1
