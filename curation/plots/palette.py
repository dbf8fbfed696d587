"""The colours of all plots: Okabe and Ito's, which people with any colour vision can tell apart.

On white their orange is darkened and on black their blue is their sky blue, so that every mark has a contrast of
3 to 1 with its ground, and every text 4.5 to 1 (WCAG 2.2, AA).
"""

from __future__ import annotations

from typing import NamedTuple


class Colour(NamedTuple):
    """One colour by its name, on a light and on a dark ground."""

    name: str
    light: str
    dark: str


GROUND = Colour("ground", "#ffffff", "#181c1f")
INK = Colour("ink", "#1b1f24", "#e3e6e8")
SOFT = Colour("soft", "#59616b", "#9ca5ad")
"""Texts of axes, lines at 1×."""
GRID = Colour("grid", "#e2e3e0", "#2f363c")
BLUE = Colour("blue", "#0072b2", "#56b4e9")
VERMILLION = Colour("vermillion", "#d55e00", "#e8743b")
GREEN = Colour("green", "#009e73", "#2fb98d")
PURPLE = Colour("purple", "#b85c92", "#cc79a7")
ORANGE = Colour("orange", "#a87400", "#e69f00")
GREY = Colour("grey", "#7b828b", "#8d959c")

SERIES = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, GREY)
"""Colours of lines and groups, in this order."""
PALETTE = (GROUND, INK, SOFT, GRID, *SERIES)

HEAD, AA, NOISE = BLUE, GREY, VERMILLION
"""The same thing has the same colour in every plot."""


def css(names: frozenset[str]) -> str:
    """Rules that turn the named colours of a plot into those of a dark ground where the reader wants one.

    A shape whose fill has a colour of the palette is of class `f-NAME`, one whose stroke has, `s-NAME`.
    """
    rules = [
        f".f-{one.name}{{fill:{one.dark}}}.s-{one.name}{{stroke:{one.dark}}}" for one in PALETTE if one.name in names
    ]
    return f"@media (prefers-color-scheme:dark){{{''.join(rules)}}}" if rules else ""
