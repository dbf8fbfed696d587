"""`perfquarry evaluate`: predictions to a report, and what is shown of reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

from rich.console import Console

from perfquarry.curation.evaluation.gradings import Gradings, address_of_tasks, protocol_of
from perfquarry.curation.evaluation.metrics import Score
from perfquarry.curation.evaluation.predictions import read_predictions
from perfquarry.curation.evaluation.report import (
    EvaluationReport,
    report_of,
    shown_duels,
    write_report,
)
from perfquarry.curation.evaluation.report_folder import held
from perfquarry.curation.jobs import DoAll
from perfquarry.curation.published import PublishedTasks
from perfquarry.curation.review.colours import visible
from perfquarry.curation.settings import MakingSettings
from perfquarry.data.errors import InputError, RunFailed
from perfquarry.data.home import Home
from perfquarry.data.output import Listing, Report, show
from perfquarry.data.records import PatchReading, Reason
from perfquarry.data.store import TableStore
from perfquarry.harness.sandbox import BubblewrapSandbox

TABLES = "tables"
"""Folder of a report in which grades are kept as they come."""


def readings(rows: list[PatchReading], folder: Path) -> Report:
    """What a model read in the patches of a report, a line each."""
    lines = []
    for row in rows:
        hack = f"hack ({row.hack_kind}), {row.hack_votes} of {row.votes} votes" if row.is_hack else "no hack"
        plan = f"{row.points_done} of {len(row.points)} points of the expert's plan"
        lines.append(f"{row.task_id} {row.patch_id}: {hack}; {plan}; {row.failure}")
    return Report(rows, [*lines, f"{len(rows)} patches read; look at {folder / 'report.html'}"])


def evaluate(
    home: Home,
    files: Sequence[str],
    dataset: str,
    clone_from: str | None,
    to: Path,
    only: Sequence[str],
    settings: MakingSettings,
    do_all: Callable[[str], DoAll],
    retries: int,
    console: Console,
) -> Report:
    """Grades predictions, a row each, and writes the report; what `to` holds already is not graded again.

    The arguments are those of `PublishedTasks.open` and the command's. Predictions that could not be graded here are
    the error of what is returned.

    Args:
        home: where environments and trees are made.
        files: predictions; 'expert', 'half' and 'nop' are known.
        dataset: release, Parquet file of tasks, or a home's repository.
        clone_from: clone of the repository, where the dataset is no release.
        to: folder of the report; another evaluation of the same dataset there goes on.
        only: starts of task ids; none: all.
        settings: schedule and sandbox.
        do_all: does the gradings, given the name of what they are about.
        retries: times that a grading is begun anew after a fault of the machine.
        console: where it says what is graded.

    Raises:
        InputError: bad predictions, no such tasks, or `to` belongs to another dataset or protocol.
    """
    sandbox = BubblewrapSandbox()
    if settings.sandbox.name not in (None, sandbox.name):
        raise InputError(
            f"evaluate isolates by bubblewrap, not {settings.sandbox.name}: leave [sandbox] name out, or grade in "
            "containers: perfquarry export --format harbor"
        )
    sandbox.verify()
    published = PublishedTasks.open(home, dataset, clone_from, only, settings)
    predictions = read_predictions(files, published.tasks)
    protocol = protocol_of(settings)

    def say(text: str) -> None:
        show(visible(text), console=console)

    name = f"{Path(dataset).name}@{address_of_tasks(published.tasks)}"
    with held(to, name, protocol):
        places = (home.root, to, *(Path(one).expanduser() for one in (dataset, clone_from or "", *files) if one))
        private = tuple(place.absolute() for place in places if place.exists())
        store = TableStore(to / TABLES)
        gradings = Gradings(published, store, settings, name, protocol, home, private, retries, say)
        with console.status("grading") if console.is_terminal else nullcontext():
            gradings.run(predictions, do_all(name))
        rows = gradings.rows()
        report = report_of(rows, published.tasks, gradings.left_out, name, protocol)
        write_report(report, rows, to)
    found = scored(report, to)
    if lost := [row for row in rows if row.reason == Reason.NOT_GRADED]:
        first = lost[0]
        found.error = RunFailed(
            f"{len(lost)} of {len(rows)} predictions could not be graded; {first.model}, {first.task_id}: {first.why}. "
            "Run the same command again: it tries these alone."
        )
    return found


def scored(report: EvaluationReport, to: Path | None) -> Report:
    """The scores of models, and where they differ; `to` is the folder that holds the report."""
    lines = [f"{report.dataset}, {len(report.experts)} tasks, protocol {report.protocol}"]
    lines += [f"left out: {name}: {why.splitlines()[0]}" for name, why in report.left_out.items()]
    shown = shown_duels(report)
    for duel in shown:
        said = "differ" if duel.q_value < 0.05 else "do not differ for certain"
        lines.append(
            f"{visible(duel.first)} and {visible(duel.second)} {said}: Opt {duel.opt:+.2f} on {duel.tasks} tasks, "
            f"q = {duel.q_value:.3g}; {visible(duel.first)} is the faster on {duel.faster:.0%}"
        )
    if len(shown) < len(report.duels):
        lines.append(f"{len(report.duels) - len(shown)} more comparisons of two models are in report.json")
    for name, order in report.orders.items():
        if order.startswith("!"):
            lines.append(f"{name} does not tell solutions apart: {order[2:]}")
    if report.best:
        lines.append(f"better than the expert for certain: {', '.join(sorted(report.best))}")
    if to:
        lines.append(f"look at {to / 'report.html'}; rows are in {to / 'grades.parquet'}")
    return Report(report, ["", _table(report.scores), *lines])


def _table(scores: Sequence[Score]) -> Listing:
    figures = ("Opt@1", "95 %", "apply", "correct", "δ", "of expert", "geometric", "graded")
    table = Listing(("model", *(f">{name}" for name in figures)))
    for one in scores:
        opt = one.opt[1]
        table.add(
            visible(one.model),
            f"{opt.value:.0%}",
            f"{100 * opt.low:.0f}-{100 * opt.high:.0f}",
            f"{one.apply.value:.0%}",
            f"{one.correctness.value:.0%}",
            f"{one.performance.value:.3f}",
            f"{one.of_expert.value:.2f}",
            f"{one.geometric.value:.2f}",
            f"{one.graded}/{one.tasks}",
        )
    return table
