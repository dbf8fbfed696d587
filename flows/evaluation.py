"""`perfquarry evaluate`, and what `solve`, `analyse` and `leaderboard` share with it: jobs at once, what is shown."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
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
from perfquarry.curation.jobs import Job
from perfquarry.curation.published import PublishedTasks
from perfquarry.curation.review.colours import visible
from perfquarry.data.errors import InputError
from perfquarry.data.home import Home
from perfquarry.data.output import Listing
from perfquarry.data.output import show as output
from perfquarry.data.records import PatchReading, Reason
from perfquarry.data.store import TableStore
from perfquarry.flows.runner import RunFailed
from perfquarry.flows.server import quiet
from perfquarry.flows.settings import Settings
from perfquarry.harness.sandbox import BubblewrapSandbox, ending_together

TABLES = "tables"
"""Folder of a report in which grades are kept as they come."""


def readings(rows: list[PatchReading], folder: Path) -> Iterator[str]:
    """What a model read in the patches of a report, a line each."""
    for row in rows:
        hack = f"hack ({row.hack_kind}), {row.hack_votes} of {row.votes} votes" if row.is_hack else "no hack"
        plan = f"{row.points_done} of {len(row.points)} points of the expert's plan"
        yield f"{row.task_id} {row.patch_id}: {hack}; {plan}; {row.failure}"
    yield f"{len(rows)} patches read; look at {folder / 'report.html'}"


def evaluate(
    home: Home,
    files: Sequence[str],
    dataset: str,
    clone_from: str | None,
    to: Path,
    only: Sequence[str],
    settings: Settings,
    *,
    jobs: int,
    retries: int,
    as_json: bool,
) -> None:
    """Grades predictions, a row each, and writes the report; what `to` holds already is not graded again.

    The arguments are those of `PublishedTasks.open` and the command's.

    Args:
        home: where environments and trees are made.
        files: predictions; 'expert', 'half' and 'nop' are known.
        dataset: release, Parquet file of tasks, or a home's repository.
        clone_from: clone of the repository, where the dataset is no release.
        to: folder of the report; another evaluation of the same dataset there goes on.
        only: starts of task ids; none: all.
        settings: schedule and sandbox.
        jobs: gradings at once, at most one a core.
        retries: times that a grading is begun anew after a fault of the machine.

    Raises:
        InputError: bad predictions, no such tasks, or `to` belongs to another dataset or protocol.
        RunFailed: some predictions could not be graded here.
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
    protocol, console = protocol_of(settings), Console(stderr=as_json)

    def say(text: str) -> None:
        output(visible(text), console=console)

    name = f"{Path(dataset).name}@{address_of_tasks(published.tasks)}"
    with held(to, name, protocol):
        places = (home.root, to, *(Path(one).expanduser() for one in (dataset, clone_from or "", *files) if one))
        private = tuple(place.absolute() for place in places if place.exists())
        store = TableStore(to / TABLES)
        gradings = Gradings(published, store, settings, name, protocol, home, private, retries, say)
        with console.status("grading") if console.is_terminal else nullcontext():
            gradings.run(predictions, partial(do_all, "evaluate", name, at_once=jobs))
        rows = gradings.rows()
        report = report_of(rows, published.tasks, gradings.left_out, name, protocol)
        write_report(report, rows, to)
    show(report, console, to, as_json=as_json)
    if lost := [row for row in rows if row.reason == Reason.NOT_GRADED]:
        first = lost[0]
        raise RunFailed(
            f"{len(lost)} of {len(rows)} predictions could not be graded; {first.model}, {first.task_id}: {first.why}. "
            "Run the same command again: it tries these alone."
        )


def show(report: EvaluationReport, console: Console, to: Path | None, *, as_json: bool) -> None:
    """Prints the scores: a table, or the report as JSON."""
    if as_json:
        print(report.model_dump_json(indent=2))  # numbers that are none as null
        return
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
    output("", _scores(report.scores), *lines, console=console)


def _scores(scores: Sequence[Score]) -> Listing:
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


def do_all(command: str, subject: str, jobs: Sequence[Job], at_once: int) -> None:
    """Does jobs that write their own results, in threads, or as task runs on the user's Prefect server.

    The first that raises ends those that have not begun, and its error is raised.

    Args:
        command: name of the flow, where PREFECT_API_URL names a server.
        subject: what the command is about: a part of the flow run's name.
        jobs: what is to do.
        at_once: most that work at the same time.
    """
    if os.environ.get("PREFECT_API_URL"):
        quiet()
        from perfquarry.flows.prefect_flows import do_jobs

        return do_jobs(command, subject, jobs, at_once)
    with ThreadPoolExecutor(max_workers=at_once) as pool, ending_together():
        begun = [pool.submit(job.work) for job in jobs]
        try:
            for one in begun:
                one.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
