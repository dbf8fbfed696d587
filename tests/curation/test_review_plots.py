"""The axes of the review page's plots."""

from __future__ import annotations

import pytest

from curation.review.plots import _LogAxis


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
