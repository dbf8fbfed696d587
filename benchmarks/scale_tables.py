"""Synthetic changes through the tables: crawl and judge are stubs, all else is what a run does.

python -m benchmarks.scale_tables ROWS FOLDER
"""

from __future__ import annotations

import json
import random
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.compute as pc

from perfquarry.data.own_rows import append_in_parts
from perfquarry.data.records import Change, FileChange, Row, Verdict, content_id
from perfquarry.flows.options import Options
from perfquarry.flows.run import Run
from perfquarry.flows.runner import run_stage
from perfquarry.flows.stages import STAGES, Batch, Stage

PATCH_BYTES = 1000
_STEPS: list[tuple[str, float, float, int, float]] = []


def changes(run: Run, rows: int) -> Iterator[Change]:
    """Rows as a crawl would make them."""
    chance, then = random.Random(1), datetime(2026, 1, 1, tzinfo=UTC)
    words = [f"name_{number} = compute({number})\n" for number in range(500)]
    file = FileChange(path="package/module.py", status="modified", added=9, deleted=3, role="source", language="python")
    stamp = run.stamp("mine").fields()
    for number in range(rows):
        yield Change(
            **stamp,
            change_id=content_id("synthetic", number),
            kind="commit",
            base_sha=f"{number:040x}",
            head_sha=f"{number + 1:040x}",
            authored_at=then,
            merged_at=then,
            title=f"Change {number} of the synthetic history",
            message="",
            files=[file],
            patch="".join(chance.choices(words, k=40))[:PATCH_BYTES],
        )


def judge(run: Run, keys: Batch) -> None:
    """The judge's stage with a verdict that costs nothing."""
    where = pc.field("change_id").isin(list(keys))
    stamp = run.stamp("judge").fields()

    def verdicts() -> Iterator[Verdict]:
        for change in run.store.records(Change, run.name, where=where, **run.where("mine")):
            probability = int(change.change_id[:4], 16) / 65536
            rejected = probability < 0.97
            yield Verdict(
                **stamp,
                change_id=change.change_id,
                judge="stub",
                is_performance="no" if rejected else "unsure",
                probability=probability,
                status="rejected" if rejected else "kept",
                reason="unlikely_performance" if rejected else None,
            )

    append_in_parts(run, verdicts())


@contextmanager
def step(name: str, rows: int = 0) -> Iterator[None]:
    """Notes the wall and CPU time of a block, and the peak so far."""
    wall, cpu = time.monotonic(), time.process_time()
    yield
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    _STEPS.append((name, time.monotonic() - wall, time.process_time() - cpu, rows, peak))
    print(_STEPS[-1], file=sys.stderr, flush=True)


def parts(run: Run) -> int:
    """Files of both tables."""
    return sum(1 for model in (Change, Verdict) for _ in Path(run.home.root, "tables", model.TABLE).rglob("part-*"))


def main() -> None:
    """Prints the facts as JSON."""
    rows, home = int(sys.argv[1]), sys.argv[2]
    run = Run.open(Options(repo="demo", home=home, jobs=1).model_dump_json())
    _, todo = (stage for stage in STAGES if stage.name in ("mine", "judge"))

    def look(name: str) -> int:
        with step(name):
            return sum(map(len, todo.todo(run)))

    with step("mine: make, check and append changes", rows):
        append_in_parts(run, changes(run, rows))
    assert look("what is still to be judged: all") == rows
    with step("judge: claim, read, append verdicts", rows):
        assert not run_stage(run, Stage("judge", todo.todo, judge, alone=True, counts_rows=True))
    assert look("what is still to be judged: nothing") == 0
    before = parts(run)
    with step("compaction of both tables", 2 * rows):
        models: tuple[type[Row], ...] = (Change, Verdict)
        for model in models:
            run.store.compact(model, run.name)
    assert look("what is still to be judged: nothing, compacted") == 0
    assert run.store.count(Verdict, run.name) == rows
    run.close()
    print(json.dumps({"steps": _STEPS, "parts": before, "compacted": parts(run), "patch_bytes": PATCH_BYTES}))


if __name__ == "__main__":
    main()
