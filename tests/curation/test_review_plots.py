"""The review page's plots: their axes, and the ratio of each pair."""

from __future__ import annotations

import math

import pytest

from perfquarry.curation.blocks import Block, Session
from perfquarry.curation.review.plots import BOTTOM, TOP, PairPlot, _LogAxis, pair_plots
from perfquarry.data.records import Evidence, SessionStatistics


@pytest.mark.parametrize(
    ("high", "ticks"),
    [
        (1.4, [0.9, 1.0, 1.1, 1.2, 1.3, 1.4]),
        (3.1, [1, 1.25, 1.5, 2, 2.5, 3]),
        (11.5, [1, 1.5, 2, 3, 4, 6, 8]),
        (40.0, [1, 2, 5, 10, 20]),
    ],
)
def test_ticks_reach_the_largest_speedup(high: float, ticks: list[float]) -> None:
    assert _LogAxis(0.89, high).ticks() == ticks


def session(number: int, ratios: list[float], aa: list[float]) -> Session:
    blocks = [tuple(Block(one, 1.0, math.log(one)) for one in values) for values in (ratios, aa)]
    return Session(number=number, plain=blocks[0], aa=blocks[1])


def plots(*sessions: Session) -> list[PairPlot]:
    figures = {"n_base": 6, "n_head": 6, "base_median": 2.0, "head_median": 1.0, "delta": 0.4, "p_value": 0.001}
    statistics = [SessionStatistics(session=1, speedup=2.0, low=1.9, high=2.1, **figures)]
    facts = {"repo": "sample", "stage_version": "1", "config_hash": "1", "workload_id": "w", "change_id": "c"}
    return pair_plots(sessions, Evidence(**facts, sessions=statistics))


def test_each_pair_is_a_mark_in_the_order_it_ran() -> None:
    [plot] = plots(session(1, [2.0, 2.1, 1.9, 2.05], [1.01, 0.99]))
    pairs = [mark for mark in plot.marks if mark.kind == "pair"]
    assert [mark.title for mark in pairs][1] == "pair 2, base over head: 2.1×"
    assert [mark.x for mark in pairs] == sorted(mark.x for mark in pairs)
    assert pairs[1].y < pairs[0].y < pairs[2].y < plot.one
    assert [tick.text for tick in plot.pairs] == ["1", "2", "3", "4"]
    assert "1×" in [tick.text for tick in plot.ticks]


def test_interval_and_a_a_are_bands() -> None:
    [plot] = plots(session(1, [2.0, 2.1, 1.9, 2.05], [1.01, 0.99]))
    assert plot.estimate and plot.aa
    assert plot.estimate.top < plot.estimate.line < plot.estimate.top + plot.estimate.height < plot.aa.top
    assert plot.aa.top < plot.one < plot.aa.top + plot.aa.height


def test_the_axis_is_logarithmic_and_of_all_sessions() -> None:
    one, two = plots(session(1, [2.0] * 6, []), session(2, [4.0] * 6, []))
    assert one.one == two.one and one.aa is None and two.estimate is None
    assert one.one - one.marks[0].y == pytest.approx(one.marks[0].y - two.marks[0].y, abs=0.3)


def test_a_pair_far_away_is_drawn_at_the_rim() -> None:
    [plot] = plots(session(1, [2.0, 2.01, 2.02, 1.99, 2.0, 2.03, 60.0], []))
    [cut] = [mark for mark in plot.marks if mark.cut]
    assert cut.y == TOP < BOTTOM and "60×, beyond the axis" in cut.title


def test_many_pairs_have_few_numbers_and_none_gives_no_plot() -> None:
    [plot] = plots(session(1, [1.0] * 16, []))
    assert [tick.text for tick in plot.pairs] == ["1", "3", "5", "7", "9", "11", "13", "15"]
    assert plots(session(1, [], [])) == []
