"""Small line plots as SVG, for docs/plots/."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "plots"
_COLOURS = ("#1f6feb", "#d1242f", "#1a7f37", "#8250df", "#9a6700", "#57606a", "#0a7d8c")
_WIDTH, _HEIGHT = 560, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 54, 140, 40, 44

Points = Sequence[tuple[float, float]]


def line_plot(
    name: str,
    title: str,
    series: Mapping[str, Points],
    axes: tuple[str, str],
    ticks: tuple[Sequence[float], Sequence[float]],
    folder: Path = FOLDER,
) -> str:
    """Writes NAME.svg; returns the Markdown that shows it. The outer ticks are the ends of the axes."""
    across, up = ticks

    def x(value: float) -> float:
        return _LEFT + (value - across[0]) / (across[-1] - across[0]) * (_WIDTH - _LEFT - _RIGHT)

    def y(value: float) -> float:
        return _HEIGHT - _BOTTOM - (value - up[0]) / (up[-1] - up[0]) * (_HEIGHT - _TOP - _BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" font-family="sans-serif" font-size="11">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="20" font-size="14">{title}</text>',
    ]
    for tick in across:
        parts.append(_line(x(tick), y(up[0]), x(tick), y(up[-1]), "#ddd"))
        parts.append(_text(x(tick), _HEIGHT - _BOTTOM + 15, f"{tick:g}", "middle"))
    for tick in up:
        parts.append(_line(x(across[0]), y(tick), x(across[-1]), y(tick), "#ddd"))
        parts.append(_text(_LEFT - 6, y(tick) + 4, f"{tick:g}", "end"))
    parts.append(_text((x(across[0]) + x(across[-1])) / 2, _HEIGHT - 10, axes[0], "middle"))
    parts.append(_text(_LEFT, _TOP - 6, axes[1], "start"))
    for number, (label, points) in enumerate(series.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        path = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="2.5" fill="{colour}"/>' for a, b in points]
        height = _TOP + 10 + 16 * number
        parts.append(_line(_WIDTH - _RIGHT + 10, height - 4, _WIDTH - _RIGHT + 26, height - 4, colour))
        parts.append(_text(_WIDTH - _RIGHT + 31, height, label, "start"))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.svg").write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")
    return f"![{title}](plots/{name}.svg)"


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#333">{text}</text>'
