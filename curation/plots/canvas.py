"""Drawing: a figure in the project's style, its axes, and the SVG of it."""

from __future__ import annotations

import io
import logging
import math
import threading
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from perfquarry.curation.plots.palette import GRID, GROUND, INK, SOFT, Colour
from perfquarry.curation.plots.svg import OURS, finished

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, NARROW = 640, 340
"""Pixels of a plot beside others, and of one on a telephone."""
MANY_TICKS = 7
EXTREME = 1e9
"""Ratios beyond it (or its inverse) are drawn at it, and no measurement: a broken clock says anything."""
_LOCK = threading.Lock()
"""matplotlib's settings are those of the whole process."""
_STYLE: dict[str, Any] = {
    # the font that comes with matplotlib: room is measured by it on every machine; readers see their own
    "font.family": ["DejaVu Sans"],
    "font.size": 11,
    "text.color": INK.light,
    "text.parse_math": False,  # a title with $ in it is a title
    "axes.facecolor": "none",
    "axes.edgecolor": GRID.light,
    "axes.labelcolor": SOFT.light,
    "axes.titlecolor": INK.light,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.labelsize": 11,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": GRID.light,
    "grid.linewidth": 1,
    "xtick.color": GRID.light,
    "ytick.color": GRID.light,
    "xtick.labelcolor": SOFT.light,
    "ytick.labelcolor": SOFT.light,
    "legend.frameon": False,
    "legend.fontsize": 11,
    "legend.labelcolor": SOFT.light,
    "figure.facecolor": GROUND.light,
    "savefig.facecolor": GROUND.light,
    "svg.fonttype": "none",  # text stays text
}
_SERIES: tuple[tuple[float, ...], ...] = (
    tuple(round(0.9 + number * 0.01, 2) for number in range(26)),
    tuple(round(0.8 + number * 0.02, 2) for number in range(31)),
    tuple(round(0.7 + number * 0.05, 2) for number in range(18)),
    tuple(round(0.5 + number * 0.1, 1) for number in range(16)),
    (0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 2.5, 3, 4),
    (0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 8),
    (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50),
    (0.01, 0.05, 0.2, 1, 5, 20, 100),
    tuple(10.0**power for power in range(-3, 5)),
    tuple(100.0**power for power in range(-4, 8)),
)


class Drawing:
    """One figure while it is drawn; `drawing` makes it.

    Title and description are read to people who do not see it; the title is shown above where `headline` is true.
    """

    def __init__(self, title: str, description: str, size: tuple[float, float], *, headline: bool) -> None:
        from matplotlib.figure import Figure

        self._title, self._description = visible(title), visible(description)
        self.figure: Figure = Figure(figsize=(size[0] / 72, size[1] / 72), dpi=72, layout="constrained")
        self._tips: dict[str, list[str]] = {}
        if headline:
            self.figure.suptitle(self._title, x=0.01, ha="left", fontsize=13, fontweight="bold")

    def axes(self, rows: int = 1, columns: int = 1, **how: Any) -> list[Axes]:
        """Axes in reading order; `how` as of `Figure.subplots`."""
        return list(self.figure.subplots(rows, columns, squeeze=False, **how).flat)

    def marks(
        self,
        axis: Axes,
        across: Sequence[Any],
        up: Sequence[float],
        colour: Colour,
        name: str,
        tips: Sequence[str] = (),
        **how: Any,
    ) -> None:
        """One mark for each point, which the SVG has in a group of class `name`; `how` as of `Axes.plot`.

        `name` is one word; `tips` are texts that are shown where the mouse rests on a mark.
        """
        if not len(across):
            return
        shape: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 6, "zorder": 3} | how
        axis.plot(across, up, color=colour.light, gid=f"{OURS}{name}", **shape)
        self._tips.setdefault(name, []).extend(visible(tip) for tip in tips)

    def legend(self, **how: Any) -> None:
        """One legend for all axes, below them: each label once."""
        known: dict[str, Any] = {}
        for axis in self.figure.axes:
            handles, labels = axis.get_legend_handles_labels()
            known |= {label: handle for handle, label in zip(handles, labels, strict=True) if label not in known}
        if known:
            how = {"ncols": 3, "handletextpad": 0.5, "columnspacing": 1.4} | how
            self.figure.legend(list(known.values()), [*map(visible, known)], loc="outside lower left", **how)

    def svg(self) -> str:
        """The plot as a text; the same figure gives the same bytes."""
        file = io.StringIO()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # the reader's font may have it
            self.figure.savefig(file, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
        tips = {name: texts for name, texts in self._tips.items() if texts}
        return finished(file.getvalue(), self._title, self._description, tips)


@contextmanager
def drawing(
    title: str, description: str, size: tuple[float, float] = (WIDTH, 320), *, headline: bool = True
) -> Iterator[Drawing]:
    """A figure in the project's style, for as long as the context lasts: draw and call `svg` within it."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # where it keeps its list of fonts is nobody's concern
    import matplotlib as mpl

    style: Any = {**_STYLE, "svg.hashsalt": title}
    with _LOCK, mpl.rc_context(style):
        yield Drawing(title, description, size, headline=headline)


def visible(text: str) -> str:
    """The text without characters that XML refuses or that hide or turn others (CVE-2021-42574)."""
    return "".join(
        char if char == "\n" or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") else "�"
        for char in text
    )


def short(text: str, most: int) -> str:
    """The text, or its beginning and '…'."""
    text = visible(" ".join(text.split()))
    return text if len(text) <= most else text[: most - 1] + "…"


def times(value: float | None) -> str:
    """A ratio for people: '1.42×'."""
    if value is None:
        return "–"
    if value >= 1e6:
        return f"{value:.2g}×"
    return f"{value:.2f}×" if value < 10 else f"{value:.1f}×" if value < 100 else f"{value:,.0f}×"


def ratio_ticks(low: float, high: float, most: int = MANY_TICKS) -> list[float]:
    """Values to write at a logarithmic axis of ratios: of the usual series the finest with at most `most` inside."""
    inside: list[float] = []
    for series in _SERIES:
        inside = [value for value in series if low <= value <= high]
        if inside and len(inside) <= most and series[0] <= 1.5 * low and 2 * series[-1] >= high:
            break
    return inside


def ratio_range(values: Sequence[float], room: float = 0.05, least: float = 0.02) -> tuple[float, float]:
    """Ends of an axis that shows 1× and all values up to `EXTREME`, with some room."""
    logs = [0.0, *(math.log(drawable(value)) for value in values if value > 0)]
    margin = max(room * (max(logs) - min(logs)), least)
    return math.exp(min(logs) - margin), math.exp(max(logs) + margin)


def drawable(ratio: float) -> float:
    """The ratio, or the farthest that is drawn."""
    return min(max(ratio, 1 / EXTREME), EXTREME)


def ratio_axis(
    axis: Axes, which: Literal["x", "y"], ends: tuple[float, float], label: str, most: int = MANY_TICKS
) -> None:
    """Makes an axis logarithmic, with readable values (0.9×, 1×, 1.1×, 2×), a line at 1× and a title."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    line = axis.xaxis if which == "x" else axis.yaxis
    ticks = ratio_ticks(*ends, most)
    if which == "x":
        axis.set_xscale("log")
        axis.set_xlim(*ends)
        axis.set_xlabel(label)
        axis.axvline(1, color=SOFT.light, linewidth=1, zorder=1)
    else:
        axis.set_yscale("log")
        axis.set_ylim(*ends)
        axis.set_ylabel(label)
        axis.axhline(1, color=SOFT.light, linewidth=1, zorder=1)
    line.set_major_locator(FixedLocator(ticks))
    line.set_major_formatter(FixedFormatter([f"{tick:g}×" for tick in ticks]))
    line.set_minor_locator(NullLocator())
