"""The figures of the builds benchmark: a line a repository, a line a commit, the logs of what failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from scipy.stats import binomtest

from benchmarks.report import machine_facts

if TYPE_CHECKING:
    from benchmarks.builds import Trial

LOG_LINES = 30


def section(name: str, trials: Sequence[Trial], sampled: int, jobs: int) -> str:
    """The section of docs/benchmarks.md on one repository."""
    return f"""\
`make bench-builds`. {machine_facts()}; {jobs} commits at a time, environments cold at first and shared later.

| repository | sampled | measured | built | built and tests run | 95 % interval | median s a commit | \
reasons of the rest |
|---|---:|---:|---:|---:|---:|---:|---|
{_row(name, trials, sampled)}

A commit counts when both sides build and a test that executes the change passes at the base; where there is no such \
test that the change leaves alone, one of the nearest test files. Intervals are Wilson's.
"""


def _row(name: str, trials: Sequence[Trial], sampled: int) -> str:
    count, built = len(trials), sum(trial.built for trial in trials)
    good = sum(trial.status == "kept" for trial in trials)
    if not count:
        return f"| {name} | {sampled} | 0 | | | | | |"
    low, high = binomtest(good, count).proportion_ci(method="wilson")
    reasons = Counter(trial.reason for trial in trials if trial.reason)
    years = sorted(trial.merged_at.year for trial in trials)
    return (
        f"| {name} {years[0]}–{years[-1]} | {sampled} | {count} "
        f"| {built} ({built / count:.0%}) | {good} ({good / count:.0%}) "
        f"| {low:.0%}–{high:.0%} | {median(trial.seconds for trial in trials):.0f} "
        f"| {', '.join(f'{reason} {number}' for reason, number in reasons.most_common())} |"
    )


def print_details(trials: Mapping[str, Sequence[Trial]]) -> None:
    """One line a commit, oldest first."""
    for name, found in trials.items():
        table = Table(title=escape(name), title_justify="left")
        for column in ("date", "commit", "python", "s", "outcome", "test that passed, or the end of the log"):
            table.add_column(column, overflow="fold")
        for trial in sorted(found, key=lambda one: one.merged_at):
            outcome = "[green]runs[/]" if trial.status == "kept" else f"[red]{trial.reason}[/]"
            last = trial.test or next((line for line in reversed(trial.log.splitlines()) if line.strip()), "")
            date, commit = f"{trial.merged_at:%Y-%m-%d}", trial.head_sha[:10]
            table.add_row(date, commit, trial.python, f"{trial.seconds:.0f}", outcome, escape(last[-160:]))
        Console(width=160).print(table)


def write_failures(trials: Mapping[str, Sequence[Trial]], file: Path) -> None:
    """Every failed commit with the end of its log, the most frequent reason first."""
    failed = [(name, trial) for name, found in trials.items() for trial in found if trial.status != "kept"]
    often = Counter(trial.reason for _, trial in failed)
    parts = ["# Commits that were not built or whose tests did not run\n"]
    for reason, number in often.most_common():
        parts.append(f"## {reason}: {number}\n")
        for name, trial in failed:
            if trial.reason == reason:
                end = "\n".join(trial.log.splitlines()[-LOG_LINES:])
                date = f"{trial.merged_at:%Y-%m-%d}"
                parts.append(f"### {name} {trial.head_sha} ({date}, Python {trial.python})\n\n```\n{end}\n```\n")
    file.write_text("\n".join(parts), encoding="utf-8")
