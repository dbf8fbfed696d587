"""Line plots for docs/plots/."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from perfquarry.curation.plots import lines

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "plots"


def line_plot(
    name: str,
    title: str,
    series: Mapping[str, lines.Points],
    axes: tuple[str, str],
    ticks: tuple[Sequence[float], Sequence[float]],
    folder: Path = FOLDER,
) -> str:
    """Writes NAME.svg; returns the Markdown that shows it. The outer ticks are the ends of the axes."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.svg").write_text(lines.line_plot(title, series, axes, ticks), encoding="utf-8")
    return f"![{title}](plots/{name}.svg)"
