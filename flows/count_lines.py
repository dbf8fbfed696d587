"""Counts beside a workload's timings, as text and as JSON."""

from __future__ import annotations

from typing import Any

from rich.markup import escape

from perfquarry.curation.counts import LABELS, label_of
from perfquarry.data.records import Count, Evidence

SHOWN_FUNCTIONS = 6


def facts_of(row: Count, *, faster: bool) -> dict[str, Any]:
    """A row and its label as JSON."""
    return {**row.model_dump(mode="json"), "label": label_of(row, faster=faster)}


def count_lines(row: Count, evidence: Evidence) -> list[str]:
    """What `show` says of a workload's counts."""
    label = label_of(row, faster=evidence.status == "kept")
    if label is None:
        return [f"  instructions: {escape(row.detail)}"]
    lines = [
        f"  instructions: {row.ratio:.3f}× \\[{row.low:.3f}, {row.high:.3f}] over {len(row.seeds)} seeds, "
        f"{row.ir_base:,} → {row.ir_head:,}: {label} ({LABELS[label]})"
    ]
    for one in row.functions[:SHOWN_FUNCTIONS]:
        where = "in the patch" if one.in_patch else "called from it" if one.called_from_patch else "elsewhere"
        base, head = (f"{count:,}" if count is not None else "–" for count in (one.ir_base, one.ir_head))
        lines.append(f"    [dim]{base} → {head}  {escape(one.name)} ({where})[/]")
    return lines
