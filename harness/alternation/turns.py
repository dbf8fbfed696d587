"""Alternation: the sides take many short turns on one core, strictly one after the other (A B A B …).

Noise of a shared machine lasts longer than a turn, so that all sides get the same of it. Who is not on turn is
stopped. The first call of a turn finds the partner's caches: of a short workload it is not timed. A drawn number of
containers shifts the phase of the garbage collector, the same for all sides of a round.

A partner is an object with `go()`, `stop()` and `call(node, phase)`, which returns the seconds of one call by the
clock inside, by the clock outside, and by the clock outside with all that was done around it; or raises.
"""

import random
from typing import Any, List, Sequence, Tuple

Call = Tuple[float, float, float]
"""Seconds inside, outside, outside with all that was done around it."""

SHORT = 0.001
"""Seconds: a shorter call is preceded by an untimed one."""


def untimed_calls(seconds: float) -> int:
    """Calls of a turn before the timed one, of a workload whose call lasts so many seconds."""
    return 1 if seconds < SHORT else 0


def rounds_of(request: float, call: float, budget: float, fewest: int, most: int) -> int:
    """Rounds of a workload in one set of processes.

    Args:
        request: seconds of a request seen from outside, fixtures included: the slowest side's.
        call: seconds of the call alone.
        budget: seconds of all turns of one side together.
        fewest: rounds at least.
        most: rounds at most.
    """
    turn = max(request, 1e-6) * (1 + untimed_calls(call))
    return int(max(fewest, min(most, budget / turn)))


def phases(generator: random.Random, rounds: int) -> List[float]:
    """For each round the part of the collector's threshold that is used up before the call, in [0, 1)."""
    return [generator.random() for _ in range(rounds)]


def alternate(partners: Sequence[Any], node: str, untimed: int, drawn: Sequence[Any]) -> List[List[Call]]:
    """Rounds in which each partner has one turn, in the order given.

    Args:
        partners: at least two; all are stopped when this is called and when it returns.
        node: the workload.
        untimed: calls of a turn before the timed one.
        drawn: for each round what is handed to each call: a phase, and whatever else is drawn.

    Returns:
        For each partner what its timed calls returned, one a round.
    """
    found = [[] for _ in partners]  # type: List[List[Call]]
    for phase in drawn:
        for partner, calls in zip(partners, found):
            partner.go()
            try:
                for _ in range(untimed):
                    partner.call(node, phase)
                calls.append(partner.call(node, phase))
            finally:
                partner.stop()
    return found
