"""Whether later calls in a process still do the work of the first.

Timed are later calls. A result kept between calls makes them time a look-up, which says nothing of
the code, and gives a change that adds such a cache an absurd speedup. The first call is also slower
for other reasons (lazy imports, compiled patterns, cold caches of the processor), so its time alone
proves nothing. Two things do: changed lines that only the first call executes, all of them; and a
first call that costs one side far more than the other, beyond what it costs both, together with
changed lines of that side lost in later calls (where lines are known).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perfquarry.data.records import Side
from perfquarry.harness.contracts import ProbeItem


def dear_starts(runs: Mapping[Side, Sequence[ProbeItem]], share: float, *, excused: bool = True) -> list[Side]:
    """The sides whose first calls do work that their later calls save, beyond what the other side's first calls cost.

    Args:
        runs: timed runs of a script in fresh processes, `seconds` of the first call and `samples` of later ones.
        share: smallest share of the work, saved / (saved + later call), that counts. What is saved counts only if it
            is more than 1 - share of a later call of the other side: less of it explains no gain.
        excused: whether what the other side's first calls cost is no saving: of two sides, one at most. False: those
            that further runs could find, as what others do on the machine may be all of that cost.
    """
    # what others do on the machine only ever adds: the least is nearest to the truth
    later = {side: min(sample for item in items for sample in item.samples) for side, items in runs.items()}
    once = {side: min(map(first_call, items)) - later[side] for side, items in runs.items()}
    found: list[Side] = []
    pairs: tuple[tuple[Side, Side], ...] = (("head", "base"), ("base", "head"))
    for side, other in pairs:
        saved = once[side] - (once[other] if excused else 0.0)
        if saved > (1 - share) * later[other] and saved >= share * (saved + later[side]):
            found.append(side)
    return found


def first_call(item: ProbeItem) -> float:
    """Seconds of the first call, without those for which it had no processor where these are known."""
    return min(item.seconds, item.first_seconds or item.seconds)
