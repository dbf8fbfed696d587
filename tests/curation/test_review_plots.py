"""The rows of the review list: both speedups on one axis, and the forest of a candidate's workloads."""

from __future__ import annotations

from perfquarry.curation.review.plots import forest, strips
from perfquarry.data.records import Evidence

ENTRY = {"speedup": 2.0, "low": 1.9, "high": 2.1, "overall_speedup": 1.2, "overall_low": 1.1, "overall_high": 1.3}
NONE = dict.fromkeys(ENTRY)


def test_both_speedups_of_all_rows_lie_on_one_logarithmic_axis() -> None:
    first, second, third = strips([ENTRY, ENTRY | {"speedup": 4.0, "low": 3.9, "high": 4.1}, NONE])
    assert first["kept"] and second["kept"] and first["overall"] and first["one"]
    assert first["kept"] == tuple(sorted(first["kept"])) and first["one"][0] < first["overall"][0]
    one, two, four = first["one"][0], first["kept"][1], second["kept"][1]
    assert abs((two - one) - (four - two)) < 0.1
    assert third["kept"] is None and third["overall"] is None and third["one"] == first["one"]


def evidence(**figures: float) -> Evidence:
    return Evidence(repo="s", stage_version="1", config_hash="1", workload_id="w", change_id="c", **figures)


def test_a_forest_has_a_row_for_each_workload_with_an_interval() -> None:
    rows = [("a", "w1", evidence(speedup=2.0, low=1.9, high=2.1)), ("b", "w2", evidence())]
    found = forest(rows)
    assert found and [row.text for row in found.rows] == ["2.00× [1.90×, 2.10×]"] and len(found.ticks) <= 4
    assert found.one < found.rows[0].low < found.rows[0].x < found.rows[0].high
    assert forest([("b", "w2", evidence())]) is None
