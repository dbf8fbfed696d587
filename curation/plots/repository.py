"""Plots of a repository in a home, and of a judge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perfquarry.curation.blocks import runs_of
from perfquarry.curation.plots.canvas import drawing
from perfquarry.curation.plots.forest import forest_plot, speedups
from perfquarry.curation.plots.funnel import funnel_plot
from perfquarry.curation.plots.history import LANES, PastCandidate, history_plot
from perfquarry.curation.plots.noise import noise_plot
from perfquarry.curation.plots.palette import BLUE, SOFT, VERMILLION
from perfquarry.data.funnel import Funnel, reached
from perfquarry.data.records import Change, Task, Timing
from perfquarry.data.store import TableStore
from perfquarry.miners.judge.scores import Scores


def repository_plots(store: TableStore, repo: str, counts: Funnel, tasks: Sequence[Task]) -> dict[str, str]:
    """SVGs of a repository by name: funnel and history, and with data for them speedups and noise.

    Args:
        store: the tables.
        repo: whose.
        counts: its funnel.
        tasks: rows of the decisions in force, accepted and rejected.
    """
    kept = sorted((task for task in tasks if task.status == "kept"), key=lambda task: -(task.speedup or 0))
    plots = {
        "funnel": funnel_plot(f"Funnel of {repo}", [counts]),
        "history": history_plot(repo, candidates_of(store, repo), tasks),
    }
    if kept:
        rows = [
            speedups(
                task.title,
                (task.speedup, task.low, task.high),
                (task.overall_speedup, task.overall_low, task.overall_high),
            )
            for task in kept
        ]
        plots["speedups"] = forest_plot(f"Accepted tasks of {repo}", rows, "time of base over head, × (95 % interval)")
    if noise := noise_plot(f"Noise of the machine while {repo} was measured", runs_of(store.records(Timing, repo))):
        plots["noise"] = noise
    return plots


def candidates_of(store: TableStore, repo: str) -> list[PastCandidate]:
    """The changes that the judge keeps and that are no tasks, with the stage that rejected them."""
    places = {change: stage for change, stage in reached(store, repo).items() if stage in LANES}
    table = store.scan(Change, repo, columns=["change_id", "merged_at", "title"])
    rows = {row["change_id"]: row for row in table.to_pylist()}
    found = [(rows[change], stage) for change, stage in places.items() if change in rows]
    return [PastCandidate(row["merged_at"], stage, row["title"]) for row, stage in found]


def judge_plot(scores: Scores, title: str) -> str:
    """SVG: precision by recall over all thresholds, and the share of improvements by probability, with intervals."""
    description = (
        f"Left, precision by recall over {len(scores.curve)} thresholds; right, share of improvements by probability "
        f"in {len(scores.bins)} bins. {scores.labels} labels, {scores.improvements} improvements, "
        f"Brier score {scores.brier:.3f}."
    )
    with drawing(title, description, (760, 400)) as plot:
        left, right = plot.axes(1, 2)
        left.set_title("precision by recall")
        right.set_title(f"reliability: {scores.labels} labels, Brier score {scores.brier:.3f}")
        for axis, across, up in (
            (left, "recall, %", "precision, %"),
            (right, "probability, %", "share of improvements, %"),
        ):
            axis.set(xlim=(-3, 103), ylim=(-3, 103), xlabel=across, ylabel=up)
        points = [(100 * one.recall, 100 * one.precision, one) for one in scores.curve]
        left.fill_between(
            [x for x, _, _ in points],
            [100 * one.precision_low for _, _, one in points],
            [100 * one.precision_high for _, _, one in points],
            color=BLUE.light, alpha=0.2, lw=0, label="95 % interval of the precision",
        )  # fmt: skip
        tips = [
            f"from probability {one.probability:.2f}: precision {y:.1f} %, recall {x:.1f} %" for x, y, one in points
        ]
        places = [x for x, _, _ in points], [y for _, y, _ in points]
        plot.marks(left, *places, BLUE, "threshold", tips, linestyle="-", lw=1.5, markersize=4, label="a threshold")
        for choice, marker, label in ((scores.goes_on, "D", "goes on"), (scores.yes, "s", "called yes")):
            if choice.precision is not None and choice.recall is not None:
                tip = f"{label}: precision {100 * choice.precision:.1f} %, recall {100 * choice.recall:.1f} %"
                at = [100 * choice.recall], [100 * choice.precision]
                hollow: dict[str, Any] = {"markersize": 9, "markerfacecolor": "none", "markeredgewidth": 2}
                plot.marks(left, *at, VERMILLION, "choice", [tip], label=label, marker=marker, **hollow)
        right.plot([0, 100], [0, 100], color=SOFT.light, lw=1, ls=(0, (4, 3)), label="as predicted")
        for one in scores.bins:
            x = 100 * one.probability
            right.plot([x, x], [100 * one.share_low, 100 * one.share_high], color=BLUE.light, lw=1.5, gid="pq-interval")
        tips = [
            f"{one.labels} labels from {one.low:.1f} to {one.high:.1f}: {100 * one.share:.1f} %" for one in scores.bins
        ]
        places = [100 * one.probability for one in scores.bins], [100 * one.share for one in scores.bins]
        plot.marks(right, *places, BLUE, "bin", tips, label="a bin of 0.1 with its 95 % interval")
        plot.legend()
        return plot.svg()
