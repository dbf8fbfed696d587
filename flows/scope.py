"""Which changes a run with `--limit N` is about: the N most probable ones that are not finished when it begins."""

from __future__ import annotations

from collections.abc import Sequence

from perfquarry.data.records import Build, Row, Timing, Workload
from perfquarry.flows import again, rows_of_run
from perfquarry.flows.run import Run

_TABLES: dict[str, type[Row]] = {"build": Build, "generate": Workload, "measure": Timing}
"""Stages that take one change at a time, in their order."""


def open_changes(run: Run, ranked: Sequence[str]) -> list[str]:
    """Those of the ranked changes with which the run's stages can begin, and which they have not brought to an end.

    What a time limit rejected, and what noise left undecided, has not come to an end: it is tried again.

    Args:
        run: the run.
        ranked: ids of changes, in their order.
    """
    order = list(_TABLES)
    named = [name for name in order if name in run.stages] or order
    first, last = order.index(named[0]), order.index(named[-1])
    seen = {name: _seen(run, name) for name in order[: last + 1]}
    ended = seen[named[-1]][0].union(*(touched - kept for touched, kept in seen.values()))
    ended -= again.waiting(run, "build") | again.waiting(run, "generate") | rows_of_run.undecided(run).keys()
    ready = seen[order[first - 1]][1] if first else set(ranked)
    return [one for one in ranked if one in ready and one not in ended]


def _seen(run: Run, stage: str) -> tuple[set[str], set[str]]:
    """Changes that a stage has rows of, and those of them that it kept."""
    table = run.store.scan(_TABLES[stage], run.name, columns=["change_id", "status"], **run.where(stage)).to_pylist()
    kept, rejected = (
        {row["change_id"] for row in table if (row["status"] == "kept") == is_kept} for is_kept in (True, False)
    )
    return kept | rejected, kept - rejected if stage == "build" else kept
