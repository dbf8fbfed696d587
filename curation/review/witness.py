"""Instruction counts on the pages: each workload's, and where they and the clock disagree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from perfquarry.curation.counts import LABELS, CountLabel, change_count, label_of
from perfquarry.data.records import Count, Evidence, FunctionCount, Reason

SHOWN_FUNCTIONS = 8
"""Functions of a workload that are shown at once; the others are behind a click."""
LEAST = 1.03
"""A task gains 3 % by the clock at least; a change that executes less than this is in doubt."""
DOUBTFUL = frozenset[CountLabel]({"not_fewer", "hidden"})


@dataclass(frozen=True)
class CountedFunction:
    """One function that executes fewer or more instructions at the head."""

    name: str
    base: int | None
    head: int | None
    difference: int
    where: str


@dataclass(frozen=True)
class Witness:
    """What counting says of one workload."""

    count: Count
    label: CountLabel | None
    """None where nothing could be counted."""
    meaning: str
    doubtful: bool
    functions: list[CountedFunction]
    more: list[CountedFunction]


def witness_of(count: Count, evidence: Evidence) -> Witness:
    """A workload's row as the page shows it, beside what the clock shows."""
    label = label_of(count, faster=evidence.status == "kept")
    functions = [_function(one) for one in count.functions]
    return Witness(
        count,
        label,
        LABELS[label] if label else "",
        label in DOUBTFUL and bool(decided([evidence])),
        functions[:SHOWN_FUNCTIONS],
        functions[SHOWN_FUNCTIONS:],
    )


def doubts(counts: Iterable[Count], faster: Mapping[str, bool]) -> list[str]:
    """Where clock and count disagree over one change, in words; none where nothing was counted.

    `faster` says by workload_id whether the clock shows an accepted gain; workloads without a decision are not in it.
    """
    known = [one for one in counts if one.workload_id in faster]
    labels = [label_of(one, faster=faster[one.workload_id]) for one in known]
    found = [
        f"{labels.count(label)} workload{'s' if labels.count(label) > 1 else ''}: {LABELS[label]}"
        for label in LABELS
        if label in DOUBTFUL and label in labels
    ]
    whole = change_count(known)
    if whole.ratio is not None and whole.ratio < LEAST:
        found.append(
            f"the change as a whole: instructions of base over head are {whole.ratio:.3f}× "
            f"(geometric mean of the touched workloads, {whole.touched}), below {LEAST}×"
        )
    return found


def decided(rows: Iterable[Evidence]) -> dict[str, bool]:
    """By workload_id whether the clock shows an accepted gain, of all workloads that it decided."""
    return {
        row.workload_id: row.status == "kept"
        for row in rows
        if row.speedup is not None and row.reason != Reason.UNDECIDED
    }


def _function(one: FunctionCount) -> CountedFunction:
    where = "in the patch" if one.in_patch else "called from the patch" if one.called_from_patch else "elsewhere"
    return CountedFunction(one.name, one.ir_base, one.ir_head, (one.ir_head or 0) - (one.ir_base or 0), where)
