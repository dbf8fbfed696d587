"""The plot of the pairs of one workload."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from perfquarry.curation.blocks import Block, Session
from perfquarry.curation.plots.pairs import BUSY, graded_plot, pair_sessions, pairs_plot
from perfquarry.data.records import SessionStatistics
from tests.drawn import Drawn

FIGURES = {"n_base": 6, "n_head": 6, "base_median": 2.0, "head_median": 1.0, "delta": 0.4, "p_value": 0.001}
STATISTICS = SessionStatistics(session=1, speedup=2.0, low=1.9, high=2.1, **FIGURES)
BEGAN = datetime(2026, 1, 2, tzinfo=UTC)


def session(number: int, ratios: list[float], aa: list[float], load: float = 0.0, timed: bool = True) -> Session:
    def block(place: int, one: float) -> Block:
        at = BEGAN + timedelta(seconds=10 * place + 100 * number) if timed else BEGAN
        return Block(one, 1.0, math.log(one), at=at, load=load, middle=(math.log(0.9 * one), math.log(1.1 * one)))

    plain, again = ([block(place, one) for place, one in enumerate(values)] for values in (ratios, aa))
    return Session(number=number, plain=tuple(plain), aa=tuple(again))


def drawn(*sessions: Session, narrow: bool = False) -> Drawn:
    return Drawn(pairs_plot("words", pair_sessions(sessions, [STATISTICS]), narrow=narrow))


def test_each_pair_is_a_mark_at_its_time() -> None:
    plot = drawn(session(1, [2.0, 2.1, 1.9, 2.05], [1.01, 0.99]))
    first, second, third, fourth = plot.marks("pair")
    places = [float(mark.get("x", "")) for mark in (first, second, third, fourth)]
    steps = [b - a for a, b in pairwise(places)]
    assert max(steps) - min(steps) < 0.05 < min(steps)
    assert float(second.get("y", "")) < float(first.get("y", "")) < float(third.get("y", ""))
    assert plot.tips("pair")[1] == "session 1: selects, base over head: 2.1×; half of its turns 1.890× to 2.310×"
    assert len(plot.marks("aa")) == 2 and len(plot.group("turns")) == 4
    assert {"time since its first pair, s", "base over head, ×", "session 1: selects", "1×"} <= set(plot.texts)
    assert {"speedup", "95 % interval", "A/A: its range"} <= set(plot.texts)


def test_pairs_beside_others_are_coloured_and_named() -> None:
    plot = drawn(session(1, [2.0] * 5, []), session(2, [2.0] * 6, [], load=BUSY))
    assert len(plot.marks("pair")) == 5 and len(plot.marks("busy")) == 6
    assert "others used ≥ 25 % of the core" in plot.texts
    assert "others used 25 % of the core" in plot.tips("busy")[0]


def test_a_pair_far_away_lies_at_the_rim_with_its_value() -> None:
    plot = drawn(session(1, [2.0, 2.01, 2.02, 1.99, 2.0, 2.03, 60.0], []))
    assert plot.tips("beyond") == ["session 1: selects, base over head: 60×; half of its turns 54.000× to 66.000×; "
                                   "beyond the axis"]  # fmt: skip
    assert "60.0×" in plot.texts and len(plot.marks("pair")) == 6


def test_without_times_the_order_is_shown_and_a_telephone_gets_one_column() -> None:
    sessions = session(1, [1.5] * 6, [1.0], timed=False), session(2, [1.5] * 6, [], timed=False)
    wide, narrow = drawn(*sessions), drawn(*sessions, narrow=True)
    assert "pair, in the order they ran" in wide.texts
    assert wide.root.get("width") == "640" and narrow.root.get("width") == "340"
    assert len({mark.get("x") for mark in narrow.marks("pair")[:12]}) == 6


def test_no_pairs_no_marks() -> None:
    assert not pair_sessions([session(1, [], [])])
    assert "No whole pair" in pairs_plot("words", [])


def test_a_clock_that_was_broken_does_not_break_the_report() -> None:
    """Seen: a cheat's time of 1e-297 s, whose ratio as a log axis had no end."""
    drawn = Drawn(graded_plot("Pairs", {"test_it": {"candidate": [2.0, 1e295, 1e-300], "expert": [2.0, 2.1, 2.0]}}))
    assert len(drawn.marks("candidate")) == 3 and "1e+295×" in drawn.tips("candidate")[1]
