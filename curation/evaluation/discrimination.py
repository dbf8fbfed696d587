"""Does a task tell solutions apart: none, half of the expert's patch, all of it?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from perfquarry.curation.evaluation.known import EXPERT, HALF, NOP
from perfquarry.curation.evaluation.metrics import speedup_of
from perfquarry.data.records import Grade, Reason


def orders(grades: Iterable[Grade]) -> dict[str, str]:
    """By task in what order the known models come, where expert and nop were graded.

    'nop < half <= expert' is as it should be. Half is left out of it where it does not apply or is not correct. What
    begins with '!' tells that the task does not tell them apart.
    """
    by_task: dict[str, dict[str, Grade]] = {}
    for row in grades:
        if row.model in (EXPERT, HALF, NOP) and row.reason != Reason.NOT_GRADED:
            by_task.setdefault(row.task_id, {})[row.model] = row
    return {task: _order(rows) for task, rows in sorted(by_task.items()) if {EXPERT, NOP} <= set(rows)}


def _order(rows: Mapping[str, Grade]) -> str:
    expert, nop, half = rows[EXPERT], rows[NOP], rows.get(HALF)
    if expert.status != "kept":
        return f"! the expert's patch has no reward: {expert.reason}"
    if nop.status == "kept":
        return "! no patch at all has a reward"
    if half is None or not half.correct or half.speedup is None:
        return "nop < expert"
    if (half.of_expert_low or 0.0) > 1:
        return "! half of the expert's patch is faster than all of it"
    if half.status == "kept":
        return "! half of the expert's patch has the reward, too: the other half adds nothing that is timed"
    return "nop < half <= expert" if speedup_of(half) > 1 and (half.low or 0.0) > 1 else "nop = half < expert"
