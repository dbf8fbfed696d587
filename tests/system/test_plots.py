"""The plots of a repository: what Prefect's page, the card and the documentation show."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

from accepted import task

from perfquarry.curation.blocks import Block, MeasuredWorkload, Session
from perfquarry.curation.plots.forest import MOST_NAMES, ForestRow, forest_plot, speedups
from perfquarry.curation.plots.funnel import funnel_plot
from perfquarry.curation.plots.history import PastCandidate, history_plot
from perfquarry.curation.plots.noise import MOST_MARKS, noise_plot
from perfquarry.data.funnel import Funnel, StageCount
from tests.drawn import Drawn

DAY = datetime(2026, 1, 2, tzinfo=UTC)


def test_a_funnel_shows_shares_and_reasons() -> None:
    rejected = {f"reason_{number}": 7 - number for number in range(7)}
    stages = [
        StageCount(stage="mine", entered=40, kept=10, rejected=rejected, pending=2),
        StageCount(stage="judge", entered=10, kept=10),
        StageCount(stage="select", entered=0, kept=0),
    ]
    plot = Drawn(funnel_plot("Funnel", [Funnel(repository="demo", stages=stages)]))
    assert {"10 of 40 kept (25 %)", "10 of 10 kept (100 %)", "0 of 0 kept", "mine", "demo: 40 changes"} <= set(
        plot.texts
    )
    assert "rejected: reason_0 7, reason_1 6, reason_2 5, reason_3 4, reason_4 3, others 3" in plot.texts
    assert "share of the changes that reach the stage, %" in plot.texts and "not yet looked at" in plot.texts
    assert [len(plot.group(name)) for name in ("kept", "rejected", "pending")] == [2, 6, 1]


def rows(number: int) -> list[ForestRow]:
    return [speedups(f"<task> {one} $x$", (1.5 + one, 1.4, 1.6 + one), (1.2, 1.1, 1.3)) for one in range(number)]


def test_speedups_have_their_intervals_and_both_figures() -> None:
    plot = Drawn(forest_plot("Speedups", rows(3), "time of base over head, ×"))
    assert len(plot.marks("estimate-1")) == len(plot.marks("estimate-2")) == 3 and len(plot.group("interval")) == 6
    assert {"<task> 0 $x$", "1.50× [1.40×, 1.60×]", "kept workloads", "all timed workloads", "1×"} <= set(plot.texts)
    assert plot.tips("estimate-2")[0] == "<task> 0 $x$, all timed workloads: 1.20× [1.10×, 1.30×]"
    places = [float(mark.get("x", "")) for mark in plot.marks("estimate-1")]
    assert places == sorted(places)


def test_many_speedups_are_a_distribution_of_one_page() -> None:
    plot = Drawn(forest_plot("Speedups", rows(4 * MOST_NAMES), "×"))
    assert len(plot.marks("estimate-1")) == 4 * MOST_NAMES and "<task> 0 $x$" not in plot.texts
    assert float(plot.root.get("height", "0")) < 1300


def test_the_history_has_tasks_and_other_candidates() -> None:
    others = [
        PastCandidate(DAY + timedelta(days=day), "select" if day % 2 else "build", f"change {day}") for day in range(5)
    ]
    plot = Drawn(history_plot("demo", others, [task(1), task(2, accepted=False)]))
    assert [len(plot.marks(name)) for name in ("task", "select", "build", "measure")] == [1, 2, 3, 0]
    assert plot.tips("build")[0] == "2026-01-02 change 0" and "not built (3)" in plot.texts
    assert "no task yet" in Drawn(history_plot("demo", [], [])).texts


def run(number: int, *, timed: bool = True) -> MeasuredWorkload:
    blocks = [
        Block(1.0, 1.0, math.log(1 + (place % 7 - 3) / 300), at=DAY + timedelta(seconds=place) if timed else None,
              load=0.5 if place % 10 == 0 else 0.1)
        for place in range(number)
    ]  # fmt: skip
    session = Session(number=1, plain=tuple(blocks), aa=tuple(blocks))
    return MeasuredWorkload("w", "c", "m", DAY, (session,))


def test_the_noise_of_a_run_is_drawn_over_time() -> None:
    plot = Drawn(noise_plot("Noise", [run(100)]) or "")
    assert [len(plot.marks(name)) for name in ("aa", "busy", "load")] == [90, 10, 100]
    assert len(plot.group("range")) == 2 and "time since the first pair of the run, s" in plot.texts
    assert "100 A/A pairs; their standard deviation is 0.67 %" in plot.texts and "base over base, ×" in plot.texts
    many = Drawn(noise_plot("Noise", [run(3 * MOST_MARKS)]) or "")
    assert len(many.marks("aa")) + len(many.marks("busy")) == MOST_MARKS
    assert noise_plot("Noise", [run(5, timed=False)]) is None
