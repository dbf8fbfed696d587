"""What `perfquarry release check` shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from perfquarry.curation.release.check import Check, GoldRun, Outcome
from perfquarry.data.figures import with_interval
from perfquarry.data.output import Listing

_COLOUR: dict[Outcome, str] = {"ok": "green", "failed": "red", "not run": "yellow"}


def gate_parts(
    folder: Path, checks: Sequence[Check], runs: Sequence[GoldRun], statuses: Mapping[str, str]
) -> Iterator[RenderableType]:
    """All checks, how many tasks pass with their patch and fail without, and what was noted."""
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


def gold_line(run: GoldRun) -> Text:
    """How a task passed with its patch and without."""
    gold = (f"gold {with_interval(run.speedup, run.low, run.high)}", "green")
    if not run.gold:
        gold = (f"gold fails: {run.gold_detail}", "red")
    null = ("null fails", "") if run.null else (f"null: {run.null_detail}", "red")
    counts = f"{run.accepted} of {run.workloads} workloads, {run.seconds:.0f} s"
    return Text.assemble(f"{run.task_id}: ", gold, ", ", null, f" ({counts})")
