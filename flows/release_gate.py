"""`perfquarry release check`: the gate shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console, RenderableType
from rich.text import Text

from perfquarry.curation.release.check import Check, GoldRun, Outcome, check, verdict
from perfquarry.curation.release.expert_runs import ExpertRuns
from perfquarry.curation.release.writing import record
from perfquarry.data.figures import with_interval
from perfquarry.data.home import Home
from perfquarry.flows.output import Listing, put, show
from perfquarry.flows.settings import Settings

_COLOUR: dict[Outcome, str] = {"ok": "green", "failed": "red", "not run": "yellow"}


def gate(
    folder: Path, home: Home, settings: Settings, *, run: bool, images: bool, note: bool, as_json: bool
) -> Outcome:
    """Checks a release and shows the outcome.

    Args:
        folder: of the release.
        home: where tasks are made.
        settings: of timing and of sandboxes.
        run: whether tasks are run.
        images: whether images are read from their registry.
        note: write into the release what was seen of each task folder.
        as_json: print facts.

    Raises:
        InputError: the folder is no release.
        InfrastructureError: the machine's own fault while tasks were run.
    """
    console = Console(stderr=as_json)
    runner = ExpertRuns(folder, home, settings) if run else None
    checks, runs = check(folder, runner, lambda one: show(_line(one), console=console), images=images)
    statuses = record(folder, runs) if note and runs else {}
    facts = {"folder": str(folder), "outcome": verdict(checks), "checks": checks, "runs": runs, "statuses": statuses}
    put(facts, _shown(folder, checks, runs, statuses), as_json=as_json)
    return verdict(checks)


def _shown(
    folder: Path, checks: Sequence[Check], runs: Sequence[GoldRun], statuses: Mapping[str, str]
) -> Iterator[RenderableType]:
    table = Listing(("check", "", "what"))
    for one in checks:
        colour = _COLOUR[one.outcome]
        wrong = "".join(f"\n{text}" for text in [*one.problems, one.why] if text)
        table.add(one.name, Text(one.outcome, colour), Text.assemble(one.what, (wrong, colour)))
    yield table
    if runs:
        gold, null = sum(run.gold for run in runs), sum(run.null for run in runs)
        yield f"gold passes {gold} of {len(runs)}, null patch fails {null} of {len(runs)}"
    if statuses:
        counts = Counter(statuses.values())
        yield f"noted in {folder}: {', '.join(f'{count} {name}' for name, count in counts.items())}"


def _line(run: GoldRun) -> Text:
    gold = (f"gold {with_interval(run.speedup, run.low, run.high)}", "green")
    if not run.gold:
        gold = (f"gold fails: {run.gold_detail}", "red")
    null = ("null fails", "") if run.null else (f"null: {run.null_detail}", "red")
    counts = f"{run.accepted} of {run.workloads} workloads, {run.seconds:.0f} s"
    return Text.assemble(f"{run.task_id}: ", gold, ", ", null, f" ({counts})")
