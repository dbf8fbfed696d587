"""What Prefect's page shows of a run."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

from accepted import task

from perfquarry.flows.plots import ROWS, timing_plot

SVG = "{http://www.w3.org/2000/svg}"


def test_a_plot_of_both_sides() -> None:
    tasks = [task(1, title="<script>alert('☃')</script> & more"), task(2, accepted=False)]
    plot = ElementTree.fromstring(timing_plot("demo", tasks) or "")
    (row,) = plot.findall(f"{SVG}g")
    texts = [text.text for text in row.findall(f"{SVG}text")]
    assert texts == ["<script>alert('☃')</script> & more", "perfquarry__demo-0000000001", "1.50×", "shown: 1.82×"]
    base, head = (float(line.get("x1", "")) for line in row.findall(f"{SVG}line"))
    assert head < base and len(row.findall(f"{SVG}circle")) == 6
    ticks = sorted(float(text.get("x", "")) for text in plot.findall(f"{SVG}text")[3:])
    assert len(ticks) >= 2 and min(later - earlier for earlier, later in pairwise(ticks)) >= 32


def test_no_timings_no_plot_and_many_tasks_one_page() -> None:
    assert timing_plot("demo", [task(1).model_copy(update={"durations": "[]"})]) is None
    plot = ElementTree.fromstring(timing_plot("demo", [task(number) for number in range(100)]) or "")
    assert len(plot.findall(f"{SVG}g")) == ROWS
