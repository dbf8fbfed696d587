"""`perfquarry release check`: the gate shown."""

from __future__ import annotations

import json
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from perfquarry.curation.release.check import GoldRun, check, passed
from perfquarry.data.home import Home
from perfquarry.data.settings import Settings
from perfquarry.flows.expert_runs import ExpertRuns
from perfquarry.flows.reports import times


def gate(folder: Path, home: Home, settings: Settings, *, run: bool, as_json: bool) -> bool:
    """Checks a release and shows the outcome; whether nothing failed.

    Raises:
        InputError: the folder is no release.
        InfrastructureError: the machine's own fault while tasks were run.
    """
    console = Console(stderr=as_json, highlight=False)
    runner = ExpertRuns(folder, home, settings) if run else None
    checks, runs = check(folder, runner, lambda one: console.print(_line(one), soft_wrap=True))
    if as_json:
        facts = {
            "folder": str(folder),
            "ok": passed(checks),
            "checks": [one.model_dump() for one in checks],
            "runs": [one.model_dump() for one in runs],
        }
        print(json.dumps(facts, indent=2))
        return passed(checks)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("check", "", "what"):
        table.add_column(name, overflow="fold")
    for one in checks:
        mark = "[green]ok[/]" if one.ok else f"[yellow]skipped: {one.skipped}[/]" if one.skipped else "[red]failed[/]"
        table.add_row(one.name, mark, "\n".join([one.what, *(f"[red]{escape(text)}[/]" for text in one.problems)]))
    console.print(table)
    if runs:
        gold, null = sum(run.gold for run in runs), sum(run.null for run in runs)
        console.print(f"gold passes {gold} of {len(runs)}, null patch fails {null} of {len(runs)}")
    return passed(checks)


def _line(run: GoldRun) -> str:
    gold = f"[green]gold {times(run.speedup)} \\[{times(run.low)}, {times(run.high)}][/]"
    if not run.gold:
        gold = f"[red]gold fails: {escape(run.gold_detail)}[/]"
    null = "null fails" if run.null else f"[red]null: {escape(run.null_detail)}[/]"
    counts = f"{run.accepted} of {run.workloads} workloads, {run.seconds:.0f} s"
    return f"{escape(run.task_id)}: {gold}, {null} ({counts})"
