"""`perfquarry revalidate`: published tasks measured again on this machine, from their recipes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console, RenderableType

from perfquarry.curation.measured_again import held_in_part, measure_again
from perfquarry.curation.published import PublishedTasks
from perfquarry.curation.revalidation import outcome, share_that_holds
from perfquarry.data.errors import EnvironmentFailed, GitFailed
from perfquarry.data.figures import times
from perfquarry.data.home import Home
from perfquarry.data.output import Listing, put, show
from perfquarry.data.records import Revalidation, content_id
from perfquarry.data.store import TableStore
from perfquarry.flows.runner import RunFailed
from perfquarry.flows.settings import Settings


def revalidate(
    home: Home, source: str, clone_from: str | None, only: Sequence[str], settings: Settings, *, as_json: bool
) -> None:
    """Measures the tasks of a release or a home again, a row each, and shows how many hold.

    Tasks that cannot be made runnable here are listed, and are no rows: nothing is known of them.

    Raises:
        InputError: no such tasks, or one clone for several repositories.
        RunFailed: some tasks could not be tried.
    """
    published = PublishedTasks.open(home, source, clone_from, only, settings)
    tasks = published.tasks
    console, store = Console(stderr=as_json), TableStore(home.tables)
    run_id = content_id("revalidation", source, datetime.now(UTC).isoformat())
    rows: list[Revalidation] = []
    untried: dict[str, str] = {}
    for number, task in enumerate(tasks, 1):
        try:
            made = published.make(task)
            row = measure_again(task, made, settings, run_id)
        except (EnvironmentFailed, GitFailed) as error:
            untried[task.task_id] = str(error)
            continue
        store.append([row])
        rows.append(row)
        show(f"{number}/{len(tasks)} {task.task_id}: {outcome(row)}", console=console)
    share = share_that_holds(rows) if rows else None
    held = sum(row.status == "kept" for row in rows)
    facts: dict[str, Any] = {"tasks": len(rows), "held": held, **held_in_part(rows), "untried": untried}
    facts |= {"share": dict(zip(("share", "low", "high"), share, strict=True)) if share else None}
    facts |= {"rows": [row.model_dump(mode="json", exclude={"durations"}) for row in rows]}
    put(facts, _shown(rows, share, held), as_json=as_json)
    if untried:
        first, why = next(iter(untried.items()))
        raise RunFailed(f"{len(untried)} of {len(tasks)} tasks could not be tried here; {first}: {why}")


def _shown(
    rows: Sequence[Revalidation], share: tuple[float, float, float] | None, held: int
) -> Iterator[RenderableType]:
    names = (">published", ">95 % interval", ">here", ">95 % interval", ">load", "outcome")
    table = Listing(("task", *names))
    for row in rows:
        table.add(
            row.task_id,
            times(row.published_speedup),
            f"[{times(row.published_low)}, {times(row.published_high)}]",
            times(row.speedup),
            f"[{times(row.low)}, {times(row.high)}]",
            f"{row.foreign_load:.2f}",
            outcome(row),
        )
    yield table
    if share:
        part, low, high = (100 * value for value in share)
        machine = rows[-1].machine
        some = held_in_part(rows)
        yield (
            f"\n{held} of {len(rows)} tasks hold: {part:.0f} % (95 % interval {low:.0f} to {high:.0f} %) "
            f"on {machine.cpu}, {machine.cores} cores, sandbox {machine.sandbox}\n"
            f"{some['tasks_in_part']} of {len(rows)} hold with at least one workload; "
            f"{some['workloads_held']} of {some['workloads']} workloads hold"
        )
