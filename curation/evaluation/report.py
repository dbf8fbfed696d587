"""The report of an evaluation: figures as JSON, and a page that works offline."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field, ValidationError

from perfquarry.curation.evaluation.metrics import PS, Duel, Score, best_known, duels, orders, scores
from perfquarry.curation.evaluation.outcomes import seconds_of
from perfquarry.curation.plots.forest import Estimate, ForestRow, Kind, forest_plot
from perfquarry.curation.plots.lines import line_plot
from perfquarry.curation.plots.pairs import graded_plot
from perfquarry.curation.plots.palette import HEAD, SERIES
from perfquarry.curation.review.rendering import inline, pages, style
from perfquarry.curation.settings import SelectSettings
from perfquarry.data.errors import InputError, StoreError
from perfquarry.data.records import Grade, PatchReading, Record, Task
from perfquarry.data.records.inputs import validation_message
from perfquarry.data.records.row import Row
from perfquarry.data.schema import from_table, to_table

FILE, GRADES, READINGS = "report.json", "grades.parquet", "readings.parquet"
COLOURS = tuple(one.light for one in SERIES)
MOST_MODELS = 6
"""Of more, not each is compared with each on the page."""
R = TypeVar("R", bound=Row)
_RATIO = Kind("speedup over the expert's", HEAD)


class EvaluationReport(Record):
    """What an evaluation found."""

    dataset: str = Field(description="Name of the dataset and content address of its tasks.")
    protocol: str = Field(description="Content address of grader, measuring core and schedule.")
    created_at: datetime
    experts: dict[str, float] = Field(description="Published speedup of the expert, by task that counts.")
    left_out: dict[str, str] = Field(description="Tasks that cannot be graded here, with why; no model's failure.")
    machines: list[str]
    scores: list[Score]
    duels: list[Duel]
    orders: dict[str, str] = Field(description="By task the order of nop, half and expert; '!': not as it should be.")
    best: dict[str, str] = Field(description="By task the model that is better than the expert for certain.")


def report_of(
    rows: Sequence[Grade], tasks: Iterable[Task], left_out: Mapping[str, str], dataset: str, protocol: str
) -> EvaluationReport:
    """The figures of all grades of one dataset."""
    experts = {task.task_id: task.speedup or 1.0 for task in tasks if task.task_id not in left_out}
    return _report(rows, experts, left_out, dataset, protocol)


def _report(
    rows: Sequence[Grade], experts: Mapping[str, float], left_out: Mapping[str, str], dataset: str, protocol: str
) -> EvaluationReport:
    machines = {f"{row.machine.cpu}, {row.machine.cores} cores, {row.machine.sandbox}" for row in rows if row.machine}
    return EvaluationReport(
        dataset=dataset,
        protocol=protocol,
        created_at=datetime.now(UTC),
        experts=dict(experts),
        left_out=dict(left_out),
        machines=sorted(machines),
        scores=scores(rows, experts),
        duels=duels(rows, experts),
        orders=orders(rows),
        best={task: row.model for task, row in best_known(rows).items()},
    )


def merged(folders: Sequence[Path]) -> tuple[EvaluationReport, list[Grade]]:
    """One report of many, and all their grades.

    Raises:
        InputError: a folder holds no report; they differ in dataset or protocol, or hold the same attempt twice.
    """
    reports = [(folder, read_report(folder), read_grades(folder)) for folder in folders]
    first_folder, first, _ = reports[0]
    for folder, other, _ in reports[1:]:
        for name in ("dataset", "protocol"):
            ours, theirs = getattr(first, name), getattr(other, name)
            if address_of(ours) != address_of(theirs):
                raise InputError(
                    f"{folder} has another {name} ({theirs}) than {first_folder} ({ours}): their figures cannot be "
                    "compared; grade both with the same version, schedule and tasks"
                )
    rows: dict[tuple[str, str, int], Grade] = {}
    for folder, _, grades in reports:
        for row in grades:
            known = rows.setdefault((row.task_id, row.model, row.attempt), row)
            if known.patch_id != row.patch_id:
                raise InputError(
                    f"{folder}: {row.model} has another patch for {row.task_id}, attempt {row.attempt}, than a report "
                    "before: give the models different names"
                )
    left_out = {name: why for _, report, _ in reports for name, why in report.left_out.items()}
    experts = {name: value for name, value in first.experts.items() if name not in left_out}
    found = [row for row in rows.values() if row.task_id in experts]
    return _report(found, experts, left_out, first.dataset, first.protocol), found


def address_of(name: str) -> str:
    """The content address in a dataset's name, `FOLDER@ADDRESS`: what its tasks are, wherever they lie."""
    return name.rpartition("@")[2]


def shown_duels(report: EvaluationReport) -> list[Duel]:
    """Comparisons to show: all of a few models; of many those of the best one, the next best models first."""
    if len(report.scores) <= MOST_MODELS:
        return report.duels
    order = {one.model: place for place, one in enumerate(report.scores)}
    best = report.scores[0].model
    mine = [one for one in report.duels if best in (one.first, one.second)]
    return sorted(mine, key=lambda one: order[one.first] + order[one.second])[:MOST_MODELS]


def read_report(folder: Path) -> EvaluationReport:
    """The figures of a report.

    Raises:
        InputError: there are none.
    """
    try:
        return EvaluationReport.model_validate_json((folder / FILE).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{folder} holds no report ({FILE}): give the --to of perfquarry evaluate") from error
    except ValidationError as error:
        raise InputError(f"{folder / FILE} is no report: {validation_message(error)}") from error


def read_grades(folder: Path) -> list[Grade]:
    """The grades of a report.

    Raises:
        InputError: there are none.
    """
    return _rows(Grade, folder / GRADES)


def read_readings(folder: Path) -> list[PatchReading]:
    """What models said of a report's patches (`perfquarry analyse`); empty where none was asked.

    Raises:
        InputError: the file cannot be read.
    """
    return _rows(PatchReading, folder / READINGS) if (folder / READINGS).exists() else []


def write_readings(rows: Sequence[PatchReading], folder: Path) -> None:
    """Keeps what models said beside the grades."""
    if rows:
        pq.write_table(to_table(rows, PatchReading), folder / READINGS)


def _rows(model: type[R], file: Path) -> list[R]:
    try:
        return list(from_table(model, pq.ParquetFile(file).read()))
    except (OSError, pa.ArrowException, StoreError) as error:
        raise InputError(f"cannot read {file}: {error}") from error


def write_report(report: EvaluationReport, rows: Sequence[Grade], to: Path) -> None:
    """Writes `grades.parquet`, `report.json` and `report.html`; the page shows the folder's readings, too."""
    readings: dict[tuple[str, str], list[PatchReading]] = {}
    for one in read_readings(to):
        readings.setdefault((one.task_id, one.patch_id), []).append(one)
    pq.write_table(to_table(rows, Grade), to / GRADES)
    (to / FILE).write_text(report.model_dump_json(indent=2), encoding="utf-8")
    ordered = sorted(report.scores, key=lambda one: not one.tasks)
    colours = {one.model: COLOURS[number % len(COLOURS)] for number, one in enumerate(ordered)}
    text = (
        pages()
        .get_template("site/evaluation.html.jinja")
        .render(
            report=report,
            style=style(),
            colours=colours,
            curve=inline(_curve(report)),
            duels=shown_duels(report),
            tasks=[_task(name, rows, report) for name in report.experts],
            readings=readings,
            least_gain=1 / (1 - SelectSettings().min_gain),
        )
    )
    (to / "report.html").write_text(text, encoding="utf-8")


def _curve(report: EvaluationReport) -> str:
    """Opt_p@1 over p, as SVG."""
    series = {one.model: [(p, one.opt_curve[p]) for p in PS] for one in report.scores if one.tasks}
    axes = "p: part of the expert's speedup that is reached", "share of tasks, %"
    ticks = [0.0, 0.25, 0.5, 0.75, 1.0]
    return line_plot("Opt by threshold", series, axes, (ticks, ticks), percent=True, headline=False)


def _task(name: str, rows: Sequence[Grade], report: EvaluationReport) -> dict[str, Any]:
    """One task: its attempts as a forest of speedups over the expert's, and the pairs of each."""
    mine = sorted((row for row in rows if row.task_id == name), key=lambda row: (row.model, row.attempt))
    estimates = [
        ForestRow(
            f"{row.model} #{row.attempt}", [Estimate(_RATIO, row.of_expert, row.of_expert_low, row.of_expert_high)]
        )
        for row in mine
        if row.of_expert
    ]
    title = f"Speedups over the expert's, {name}"
    drawn = forest_plot(title, estimates, "over the expert's, × (95 % interval)", headline=False) if estimates else ""
    return {
        "name": name,
        "expert": report.experts[name],
        "attempts": [(row, inline(_pairs(row))) for row in mine],
        "forest": inline(drawn),
    }


def _pairs(row: Grade) -> str:
    """Of each workload the ratios of base over candidate and over expert, a pair of processes a point."""
    pairs = json.loads(row.pairs)
    found = {}
    for one in row.workloads:
        base, cand, gold = (seconds_of(pairs, one.node, role) for role in ("base", "cand", "gold"))
        found[one.node] = {"this model": np.divide(base, cand).tolist(), "the expert": np.divide(base, gold).tolist()}
    return graded_plot(f"Pairs of {row.model} #{row.attempt}, {row.task_id}", found) if found else ""
