"""The funnel: of the changes that reach a stage, the share that it keeps, and the reasons for the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from perfquarry.curation.plots.canvas import drawing
from perfquarry.curation.plots.palette import GREY, HEAD, INK, ORANGE, SOFT, Colour
from perfquarry.data.funnel import Funnel, StageCount

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE, _ROW = 760, 42
_MOST_REASONS = 5
_SHADES = (0.5, 0.3)


def funnel_plot(title: str, funnels: Sequence[Funnel], *, headline: bool = True) -> str:
    """SVG with a group of bars for each repository: a stage is a bar from 0 to 100 % of the changes that reach it."""
    rows = sum(len(one.stages) for one in funnels)
    size = (_SIZE, 90 + _ROW * rows + 44 * len(funnels))
    with drawing(title, _description(funnels), size, headline=headline) as plot:
        axes = plot.axes(max(1, len(funnels)), 1, height_ratios=[len(one.stages) or 1 for one in funnels] or [1])
        for axis, one in zip(axes, funnels, strict=False):
            axis.set_title(f"{one.repository}: {one.stages[0].entered if one.stages else 0:,} changes")
            _draw(axis, one.stages)
        axes[-1].set_xlabel("share of the changes that reach the stage, %")
        plot.legend()
        return plot.svg()


def _draw(axis: Axes, stages: Sequence[StageCount]) -> None:
    axis.set_xlim(0, 100)
    axis.set_ylim(len(stages) - 0.4, -0.5)
    axis.set_yticks([y - 0.1 for y in range(len(stages))], [one.stage for one in stages])
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="y", visible=False)
    for y, stage in enumerate(stages):
        kept = 100 * stage.kept / stage.entered if stage.entered else 0
        text = f"{stage.kept:,} of {stage.entered:,} kept" + (f" ({kept:.3g} %)" if stage.entered else "")
        axis.annotate(
            text, (1, y - 0.1), (8, 0), ("axes fraction", "data"), "offset points", va="center", color=INK.light,
            annotation_clip=False,
        )  # fmt: skip
        left = 0.0
        if stage.rejected:
            why = ", ".join(f"{name} {count:,}" for name, count, _, _, group in _parts(stage) if group == "rejected")
            axis.text(0, y + 0.2, f"rejected: {why}", va="top", fontsize=10, color=SOFT.light)
        for _, count, colour, alpha, group in _parts(stage):
            width = 100 * count / stage.entered
            label = {"kept": "kept", "pending": "not yet looked at"}.get(group, "rejected, by reason")
            bar = axis.barh(y - 0.1, width, 0.5, left, color=colour.light, alpha=alpha, label=label, lw=0)
            bar[0].set_gid(f"pq-{group}")
            left += width


def _parts(stage: StageCount) -> list[tuple[str, int, Colour, float, str]]:
    """Name, changes, colour, opacity and group of each piece of a bar that has any."""
    reasons = list(stage.rejected.items())
    rest = sum(count for _, count in reasons[_MOST_REASONS:])
    shown = [*reasons[:_MOST_REASONS], *([("others", rest)] if rest else [])]
    parts = [("kept", stage.kept, HEAD, 0.75, "kept")]
    parts += [(name, count, GREY, _SHADES[place % 2], "rejected") for place, (name, count) in enumerate(shown)]
    parts.append(("to do", stage.pending, ORANGE, 0.5, "pending"))
    return [part for part in parts if part[1]]


def _description(funnels: Sequence[Funnel]) -> str:
    texts = []
    for one in funnels:
        stages = [
            f"{stage.stage} keeps {stage.kept} of {stage.entered}"
            + (
                f" ({', '.join(f'{name} {count}' for name, count in list(stage.rejected.items())[:3])})"
                if stage.rejected
                else ""
            )
            for stage in one.stages
        ]
        texts.append(f"{one.repository}: {'; '.join(stages)}")
    return f"Changes that each stage keeps, with the most frequent reasons of the others. {'. '.join(texts)}."
