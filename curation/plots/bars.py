"""Counts as bars."""

from __future__ import annotations

from collections.abc import Mapping

from perfquarry.curation.plots.canvas import drawing
from perfquarry.curation.plots.palette import HEAD, INK


def bar_plot(title: str, counts: Mapping[str, int], axes: tuple[str, str]) -> str:
    """SVG with a bar and its number for each count, from left to right; `axes` are the titles of x and y."""
    told = ", ".join(f"{name} {count}" for name, count in counts.items())
    with drawing(title, f"{axes[1]} by {axes[0]}: {told}.", (760, 260)) as plot:
        (axis,) = plot.axes()
        for place, count in enumerate(counts.values()):
            bar = axis.bar(place, count, 0.7, color=HEAD.light)
            bar[0].set_gid("pq-bar")
            if count:
                axis.annotate(
                    f"{count:,}", (place, count), (0, 3), textcoords="offset points", ha="center", color=INK.light
                )
        axis.set_xlim(-0.6, max(len(counts), 8) - 0.4)
        every = -(-len(counts) // 16)
        axis.set_xticks(range(0, len(counts), every), list(counts)[::every])
        axis.set_ylim(0, 1.12 * max([1, *counts.values()]))
        axis.locator_params(axis="y", integer=True)
        axis.grid(axis="x", visible=False)
        axis.set_xlabel(axes[0])
        axis.set_ylabel(axes[1])
        return plot.svg()
