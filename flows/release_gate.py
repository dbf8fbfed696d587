"""`perfquarry release check`: the gate shown."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from perfquarry.curation.release.check import GoldRun, Outcome, check, verdict
from perfquarry.curation.release.writing import record
from perfquarry.data.home import Home
from perfquarry.data.settings import Settings
from perfquarry.flows.expert_runs import ExpertRuns
from perfquarry.flows.reports import times

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
    console = Console(stderr=as_json, highlight=False)
    runner = ExpertRuns(folder, home, settings) if run else None
    checks, runs = check(folder, runner, lambda one: console.print(_line(one), soft_wrap=True), images=images)
    statuses = record(folder, runs) if note and runs else {}
    if as_json:
        facts = {
            "folder": str(folder),
            "outcome": verdict(checks),
            "checks": [one.model_dump() for one in checks],
            "runs": [one.model_dump() for one in runs],
            "statuses": statuses,
        }
        print(json.dumps(facts, indent=2))
        return verdict(checks)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("check", "", "what"):
        table.add_column(name, overflow="fold")
    for one in checks:
        table.add_row(
            one.name,
            f"[{_COLOUR[one.outcome]}]{one.outcome}[/]",
            "\n".join(
                [one.what, *(f"[{_COLOUR[one.outcome]}]{escape(text)}[/]" for text in [*one.problems, one.why] if text)]
            ),
        )
    console.print(table)
    if runs:
        gold, null = sum(run.gold for run in runs), sum(run.null for run in runs)
        console.print(f"gold passes {gold} of {len(runs)}, null patch fails {null} of {len(runs)}")
    if statuses:
        counts = Counter(statuses.values())
        console.print(f"noted in {folder}: {', '.join(f'{count} {name}' for name, count in counts.items())}")
    return verdict(checks)


def _line(run: GoldRun) -> str:
    gold = f"[green]gold {times(run.speedup)} \\[{times(run.low)}, {times(run.high)}][/]"
    if not run.gold:
        gold = f"[red]gold fails: {escape(run.gold_detail)}[/]"
    null = "null fails" if run.null else f"[red]null: {escape(run.null_detail)}[/]"
    counts = f"{run.accepted} of {run.workloads} workloads, {run.seconds:.0f} s"
    return f"{escape(run.task_id)}: {gold}, {null} ({counts})"
