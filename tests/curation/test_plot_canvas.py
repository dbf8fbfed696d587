"""What every plot has: readable axes, colours for everybody, the same bytes, text that harms nobody."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations

import pytest

from perfquarry.curation.plots.canvas import drawing, ratio_axis, ratio_range, ratio_ticks, short, times
from perfquarry.curation.plots.palette import GROUND, INK, PALETTE, SERIES, SOFT, css
from tests.drawn import SVG, Drawn


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_of_marks_and_texts_on_both_grounds() -> None:
    for colour in SERIES:
        assert contrast(colour.light, GROUND.light) >= 3, colour
        assert contrast(colour.dark, GROUND.dark) >= 3, colour
    for text in (INK, SOFT):
        assert contrast(text.light, GROUND.light) >= 4.5 and contrast(text.dark, GROUND.dark) >= 4.5, text
    assert len({one.light for one in PALETTE}) == len(PALETTE)  # a colour is found by its light value


# red-green blind and blue-yellow blind vision: Machado, Oliveira and Fernandes (2009), severity 1, linear RGB
BLIND = {
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


def lab(colour: str, blind: str | None) -> tuple[float, float, float]:
    rgb = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    line = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in rgb]
    if blind:
        line = [min(1, max(0, sum(a * b for a, b in zip(row, line, strict=True)))) for row in BLIND[blind]]
    weights = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    xyz = [sum(a * b for a, b in zip(row, line, strict=True)) for row in weights]
    x, y, z = (
        (part / white) ** (1 / 3) if part / white > 0.008856 else 7.787 * part / white + 16 / 116
        for part, white in zip(xyz, (0.9505, 1.0, 1.089), strict=True)
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("blind", [None, *BLIND])
def test_the_first_four_colours_differ_for_every_kind_of_vision(blind: str | None) -> None:
    for one, other in combinations(SERIES[:4], 2):
        for first, second in ((one.light, other.light), (one.dark, other.dark)):
            distance = sum((a - b) ** 2 for a, b in zip(lab(first, blind), lab(second, blind), strict=True)) ** 0.5
            assert distance > 10, (one.name, other.name, distance)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.97, 1.04, [0.97, 0.98, 0.99, 1.0, 1.01, 1.02, 1.03, 1.04]),
        (0.89, 1.4, [0.9, 1.0, 1.1, 1.2, 1.3, 1.4]),
        (0.89, 3.1, [1, 1.25, 1.5, 2, 2.5, 3]),
        (0.89, 11.5, [1, 1.5, 2, 3, 4, 6, 8]),
        (0.89, 40.0, [1, 2, 5, 10, 20]),
        (0.9, 5000.0, [1, 10, 100, 1000]),
        (0.002, 1.1, [0.01, 0.1, 1]),
    ],
)
def test_ratios_have_readable_ticks(low: float, high: float, ticks: list[float]) -> None:
    assert ratio_ticks(low, high, 8 if len(ticks) == 8 else 7) == ticks


def plot(title: str = "Title") -> str:
    with drawing(title, "What it shows.", (340, 200)) as one:
        (axis,) = one.axes()
        ratio_axis(axis, "x", ratio_range([0.9, 1.1, 2.0]), "base over head, ×")
        one.marks(axis, [1, 2], [1, 2], SERIES[0], "point", ["first", "<b>"])
        return one.svg()


def test_the_same_plot_has_the_same_bytes_in_another_process() -> None:
    code = "from tests.curation.test_plot_canvas import plot; import sys; sys.stdout.write(plot())"
    again = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert again.stdout == plot() == plot()


def test_text_is_text_and_the_reader_may_want_it_dark() -> None:
    drawn = Drawn(plot())
    assert {"Title", "base over head, ×", "1×", "2×"} <= set(drawn.texts)
    assert drawn.root.findtext(f"{SVG}title") == "Title" and drawn.root.findtext(f"{SVG}desc") == "What it shows."
    assert drawn.colours <= {one.light for one in PALETTE}
    assert drawn.tips("point") == ["first", "<b>"]
    style = drawn.root.findtext(f"{SVG}style") or ""
    assert style.startswith("@media (prefers-color-scheme:dark)") and SERIES[0].dark in style and GROUND.dark in style
    for one in drawn.root.iter():  # every colour has the class by which it changes, and no style that a CSP refuses
        assert "style" not in one.attrib
        for name in ("fill", "stroke"):
            if one.get(name, "none") != "none":
                assert any(word.startswith(f"{name[0]}-") for word in one.get("class", "").split())


def test_titles_from_repositories_do_no_harm() -> None:
    drawn = Drawn(plot("<script>alert('☃')</script> $x^2$ \x00\u202e 中"))
    assert drawn.texts[-1].startswith("<script>alert('☃')</script> $x^2$ �� 中")
    assert not [one for one in drawn.root.iter() if "script" in one.tag]


def test_words_for_figures() -> None:
    assert [times(value) for value in (None, 1.416, 12.34, 1234.5)] == ["–", "1.42×", "12.3×", "1,234×"]
    assert short("a\nb  c", 5) == "a b c" and short("abcdef", 4) == "abc…"
    assert css(frozenset()) == ""


def test_matplotlib_is_imported_by_the_first_plot_only() -> None:
    code = (
        "import sys, perfquarry.curation.plots.pairs as one; assert 'matplotlib' not in sys.modules;"
        "one.pairs_plot('t', []); assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
