"""Homes full of synthetic candidates, as the stages would have written them."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import uvicorn

from perfquarry.curation.counts import row_of
from perfquarry.curation.evidence import decide
from perfquarry.curation.review.app import create_app
from perfquarry.curation.review.database import open_database
from perfquarry.curation.review.decisions import Decisions
from perfquarry.curation.review.guard import Guard, names_of, secret_of
from perfquarry.curation.review.index import Index
from perfquarry.curation.review.service import ReviewService
from perfquarry.curation.review.tables import Tables
from perfquarry.curation.settings import SelectSettings
from perfquarry.data.home import Home
from perfquarry.data.records import (
    Count,
    Evidence,
    Finding,
    FunctionCount,
    Machine,
    SeedCount,
    Stamp,
    Task,
    Timing,
    Verdict,
    Workload,
    content_id,
    workload_id_of,
)
from perfquarry.data.records.task import TaskWorkload
from perfquarry.data.store import TableStore

REPO = "sample"
STAMP = Stamp(repo=REPO, stage_version="1", config_hash="c0ffee")
MACHINE = Machine(
    machine_id="m1", system="Linux", kernel="6", cpu="x", cores=2, memory_bytes=1, clock_resolution=1e-9, sandbox="none"
)
PATCH = """diff --git a/pkg/words.py b/pkg/words.py
--- a/pkg/words.py
+++ b/pkg/words.py
@@ -1,7 +1,7 @@ class Words:
     def count(self, text):
         found = {}
         for word in text.split():
-            if word not in list(found):
+            if word not in found:
                 found[word] = 0
             found[word] += 1
         return found
"""
VERBS = ("Avoid", "Cache", "Inline", "Skip", "Hoist", "Memoise", "Batch", "Vectorise")
THINGS = ("the copy", "lookups", "the regex", "attribute access", "the sort", "temporary lists", "validation")


def task_of(number: int, speedup: float, **fields: object) -> Task:
    """A candidate; equal numbers make equal ones."""
    rng = random.Random(number)
    head = content_id("head", number) * 3
    change = content_id("change", number)
    node = f"tests/test_words.py::WordsTest::test_count_{number}"
    row = {
        "task_id": f"owner__{REPO}-{head[:10]}",
        "change_id": change,
        "codebase": f"owner/{REPO}",
        "url": "https://example.org/owner/sample",
        "base_sha": content_id("base", number) * 3,
        "head_sha": head,
        "created_at_commit": datetime(2020, 1, 1, tzinfo=UTC) + timedelta(hours=number),
        "title": f"{rng.choice(VERBS)} {rng.choice(THINGS)} in count ({number})",
        "message": f"Candidate {number}\n\nThe list was made anew for each word.",
        "pull_number": number + 1,
        "issues": [7],
        "patch": PATCH,
        "python": "3.11.7",
        "oracle_targets": ["pkg/words.py::Words.count"],
        "workloads": [
            TaskWorkload(
                workload_id=workload_id_of(change, "unit-test", node),
                source="unit-test",
                code=node,
                base_seconds=1.0,
                head_seconds=1 / speedup,
                speedup=speedup,
                low=speedup * 0.98,
                high=speedup * 1.02,
                delta=1 - 1 / speedup,
                p_value=1e-6,
                q_value=1e-5,
            )
        ],
        "speedup": speedup,
        "low": speedup * 0.98,
        "high": speedup * 1.02,
        "delta": 1 - 1 / speedup,
        "q_value": 1e-5,
        "overall_speedup": speedup,
        "overall_low": speedup * 0.98,
        "overall_high": speedup * 1.02,
        "timed_workloads": 1,
        "machine_id": MACHINE.machine_id,
        "licence": "MIT",
        "lines_changed": 2,
        "files_changed": 1,
    }
    return Task(**(STAMP.fields() | row | fields))


def timings_of(task: Task, seed: int = 0) -> list[Timing]:
    """Both sessions of its workload, 12 blocks each."""
    rng = random.Random(f"{task.task_id} {seed}")
    [workload] = task.workloads
    rows = []
    for session in (1, 2):
        for block in range(12):
            for side, aa in (("base", False), ("head", False), *([("head", True)] if block % 3 == 0 else [])):
                seconds = (workload.head_seconds if side == "head" and not aa else 1.0) * rng.gauss(1, 0.01)
                rows.append(
                    Timing(
                        **STAMP.fields(),
                        workload_id=workload.workload_id,
                        change_id=task.change_id,
                        session=session,
                        block=block,
                        position=2 if aa else int(side == "head"),
                        side=side,
                        aa=aa,
                        samples=[seconds * rng.gauss(1, 0.02) for _ in range(5)],
                        cold=seconds * 2,
                        outcome="passed",
                        hash_seed=block,
                        machine=MACHINE,
                    )
                )
    return rows


def fill(home: Home, tasks: Sequence[Task], measured: int = 0, findings: Sequence[Finding] = ()) -> None:
    """Writes the tables of a home: evidence and timings of the first `measured` tasks only."""
    store = TableStore(home.tables)
    store.append(list(tasks))
    timed = [(task, timings_of(task)) for task in tasks[:measured]]
    timings = [row for _, rows in timed for row in rows]
    store.append(timings)
    evidence: list[Evidence] = decide(timings, SelectSettings(), STAMP) if timings else []
    store.append(evidence)
    store.append([_workload(task) for task in tasks[:measured]])
    store.append([_verdict(task) for task in tasks])
    store.append(list(findings))


def finding(task: Task, check: str, evidence: str, severity: str = "warning") -> Finding:
    """What screening said of a task."""
    row = {"task_id": task.task_id, "change_id": task.change_id, "check": check, "severity": severity}
    return Finding(**STAMP.fields(), **row, evidence=evidence)


def count_of(task: Task, ratio: float, functions: Sequence[FunctionCount] = ()) -> Count:
    """Instructions of its workload, with two seeds."""
    [one] = task.workloads
    seeds = [SeedCount(seed=seed, ir_base=round(1_000_000 * ratio), ir_head=1_000_000) for seed in (1, 2)]
    return row_of(STAMP, one.workload_id, task.change_id, seeds, functions=list(functions))


def _workload(task: Task) -> Workload:
    [one] = task.workloads
    common = {"workload_id": one.workload_id, "change_id": task.change_id, "code": one.code}
    return Workload(**STAMP.fields(), **common, source="unit-test")


def _verdict(task: Task) -> Verdict:
    return Verdict(
        **STAMP.fields(),
        change_id=task.change_id,
        judge="heuristic",
        is_performance="yes",
        probability=0.9,
        why="for: the message speaks of lists made anew",
    )


class NoFlows:
    """Stands where flows are started in tests of everything else."""

    def run(self, task, action, wished_by, report):
        report(f"{action} of {task.task_id}")
        return "nothing was done"

    def stop(self):
        pass


def desk_of(home: Home, url: str = "", required: int = 1, starter=None, near: float | None = None) -> ReviewService:
    """The desk of a home with a database of its own."""
    engine = open_database(url or f"sqlite:///{home.root}/review/reviews.db")
    store = TableStore(home.tables)
    index = Index(engine, store, near=near)
    return ReviewService(index, Decisions(engine, required), Tables(home, store), starter or NoFlows())


@contextmanager
def serving(desk: ReviewService, home: Home, reviewers: Sequence[str] = ("ann",), sign_in: bool = False):
    """A real server on a free port in a thread; yields its address and its guard."""
    guard = Guard(
        secret_of(Path(home.root) / "review" / "secret"),
        tuple(reviewers),
        frozenset(names_of("127.0.0.1")),
        sign_in or len(reviewers) > 1,
    )
    config = uvicorn.Config(create_app(desk, guard), host="127.0.0.1", port=0, log_level="warning", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server ended"
            thread.join(0.02)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}", guard
    finally:
        server.should_exit = True
        thread.join(30)
        desk.index.engine.dispose()
