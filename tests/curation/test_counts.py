"""Wall × count, and counts over a change: arithmetic, and rows as the table keeps them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from perfquarry.curation.counts import FENCE, LABELS, change_count, counts_of, fence_of, label_of, row_of
from perfquarry.data.records import Count, FunctionCount, SeedCount, Stamp
from perfquarry.data.store import TableStore

STAMP = Stamp(repo="sample", stage_version="1", config_hash="c")


def row(*ratios: float, name: str = "w", head: int = 1_000_000) -> Count:
    seeds = [SeedCount(seed=n, ir_base=round(head * ratio), ir_head=head) for n, ratio in enumerate(ratios, 1)]
    return row_of(STAMP, name, "change", seeds)


@pytest.mark.parametrize(
    ("faster", "ratio", "label"),
    [
        (True, 1.2, "agree"),
        (True, 1.0, "not_fewer"),
        (True, 0.8, "not_fewer"),
        (False, 1.2, "hidden"),
        (False, 1.0, "neither"),
        (False, 0.8, "neither"),
        (True, math.exp(FENCE) * 0.9999, "not_fewer"),
        (True, math.exp(FENCE) * 1.0001, "agree"),
    ],
)
def test_the_four_fields(faster: bool, ratio: float, label: str) -> None:
    assert label_of(row(ratio), faster=faster) == label
    assert set(LABELS) == {"agree", "not_fewer", "hidden", "neither"}


def test_a_ratio_that_moves_with_the_seed_has_a_wider_fence() -> None:
    assert label_of(row(1.02, 1.03, 1.04), faster=True) == "agree"
    assert label_of(row(0.99, 1.03, 1.06), faster=True) == "not_fewer"
    assert fence_of(1.0, 1.001) == FENCE and fence_of(1.0, 1.05) == pytest.approx(math.log(1.05))


def test_a_row_is_the_median_over_the_seeds() -> None:
    made = row(1.1, 1.3, 1.2)
    assert (made.ratio, made.low, made.high) == pytest.approx((1.2, 1.1, 1.3))
    assert (made.ir_base, made.ir_head, made.status) == (1_200_000, 1_000_000, "kept")


def test_what_was_not_counted_has_a_reason_and_no_label() -> None:
    for made in (
        row_of(STAMP, "w", "change", [], "base, seed 1: crashed"),
        row_of(STAMP, "w", "change", []),
        row_of(STAMP, "w", "change", [SeedCount(seed=1, ir_base=5, ir_head=0)]),
    ):
        assert (made.status, made.reason, made.ratio) == ("rejected", "not_counted", None) and made.detail
        assert label_of(made, faster=True) is None


def test_a_change_gains_by_what_it_touches() -> None:
    """As the published task whose five workloads execute 0.53 to 1.28 as often: a mixed one."""
    mixed = change_count([row(one) for one in (0.53, 0.67, 0.94, 1.17, 1.28)])
    assert mixed.ratio == pytest.approx(0.8705, abs=0.0005) and mixed.touched == 5
    found = change_count([row(1.21), row(1.0), row(1.004), row(1.0), row_of(STAMP, "w", "change", [], "crashed")])
    assert found.ratio == pytest.approx(1.21) and (found.touched, found.counted) == (1, 4)
    assert change_count([row(1.001)]).ratio is None and change_count([]).counted == 0


def test_the_newest_row_of_each_workload(tmp_path: Path) -> None:
    store = TableStore(tmp_path)
    assert counts_of(store, "sample") == {}
    function = FunctionCount(name="a.py::f", ir_base=5, native=False, in_patch=True, called_from_patch=False)
    store.append([row(1.1), row(1.2, name="other").model_copy(update={"functions": [function]})])
    store.append([row(1.3).model_copy(update={"config_hash": "other settings"})])
    found = counts_of(store, "sample")
    assert {name: one.ratio for name, one in found.items()} == pytest.approx({"w": 1.3, "other": 1.2})
    assert found["other"].functions == [function]
