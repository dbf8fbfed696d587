"""One pair of processes of the same side, asked for different things: how many times faster is the second?"""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from perfquarry.harness.alternation.figures import hodges_lehmann
from perfquarry.harness.alternation.turns import alternate, phases, turns_of
from perfquarry.harness.contracts import BuiltSide, Limits, PartnerFailed, ProbeRequest
from perfquarry.harness.probing.live import LiveProcess
from perfquarry.harness.probing.prober import Prober

WARMUPS = 2
TURN_SECONDS = 0.2
MOST_TURNS = 40


@dataclass(frozen=True)
class Compared:
    """What a pair of processes shows of one workload."""

    log: float | None = None
    """Log of the first one's time over the second one's; None where either did not pass."""
    first_failed: str = ""
    """Why the first one did not pass; empty when it did, or was not asked."""


def compare(
    prober: Prober,
    built: BuiltSide,
    requests: tuple[ProbeRequest, ProbeRequest],
    nodes: Sequence[str],
    *,
    limits: Limits,
    seed: int,
    core: int | None,
    fewest_turns: int,
) -> dict[str, Compared]:
    """Loads both (mode 'turns'), and lets them take turns at each workload.

    Args:
        seed: hash seed of both, and seed of the phases of the garbage collector.
        core: both are pinned to it.
        fewest_turns: of each process, at a slow workload.

    Raises:
        SandboxUnavailable: a process could not be started.
    """
    rng = random.Random(seed)  # noqa: S311  # phases, not a secret
    found = {node: Compared() for node in nodes}
    with contextlib.ExitStack() as stack:
        pair = [
            stack.enter_context(prober.open(built, one, limits=limits, hash_seed=seed, core=core)) for one in requests
        ]
        node = ""
        try:
            for partner in pair:
                partner.ready()
            for partner in pair:
                partner.stop()
            for node in nodes:
                found[node] = _compared(pair, node, rng, fewest_turns)
        except PartnerFailed as failure:
            if node in found and not found[node].first_failed:
                found[node] = Compared(first_failed=failure.message if failure.gone else "")
    return found


def _compared(pair: Sequence[LiveProcess], node: str, rng: random.Random, fewest: int) -> Compared:
    calls: list[tuple[float, float]] = []
    for number, partner in enumerate(pair):
        if node not in partner.kinds:
            return Compared(first_failed="" if number else "it is not collected")
        partner.go()
        try:
            _, last, busy = partner.warm(node, WARMUPS)
        except PartnerFailed as failure:
            if failure.gone:
                raise
            return Compared(first_failed="" if number else failure.message)
        finally:
            partner.stop()
        calls.append((busy, last))
    shortest = min(last for _, last in calls)
    slowest = max(busy for busy, _ in calls)
    wanted, untimed, together = turns_of(slowest, shortest, TURN_SECONDS, fewest, MOST_TURNS)
    try:
        first, second = alternate(pair, node, untimed, phases(rng, wanted), together)
    except PartnerFailed as failure:
        if failure.gone:
            raise
        return Compared(first_failed=failure.message)
    logs = [math.log(max(a[0], 1e-9) / max(b[0], 1e-9)) for a, b in zip(first, second, strict=True)]
    return Compared(log=hodges_lehmann(logs))
