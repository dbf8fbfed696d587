"""Alternation: the sides take many short turns on one core, strictly one after the other (A B A B …).

Noise of a shared machine lasts longer than a turn, so that all sides get the same of it. Who is not on turn is
stopped. The first call of a turn finds the partner's caches: of a short workload it is not timed. A drawn number of
containers shifts the phase of the garbage collector, the same for all sides of a round.

To wake one process and stop another costs more than a short call, so a turn has several of those.

Turns end early where they agree: what is left is then what processes differ by, which only more pairs can show.

A partner is an object with `go()`, `stop()` and `turn(node, untimed, drawn)`, which makes the untimed calls and then
one for each phase of `drawn`, and returns for each of the latter the seconds by the clock inside, by the clock outside,
and by the clock outside with all that was done around it; or raises.
"""

import random
from typing import Any, Callable, List, Optional, Sequence, Tuple

Call = Tuple[float, float, float]
"""Seconds inside, outside, outside with all that was done around it."""

SHORT = 0.001
"""Seconds: a shorter call is preceded by an untimed one."""
SLOW = 0.05
"""Seconds of a request, fixtures included, from which on nothing is gained by calls that are not timed."""
TURN = 0.003
"""Seconds of the timed calls of a turn together, fixtures included: noise of a machine lasts longer."""
MOST_OF_TURN = 8
"""Timed calls of a turn at most."""
FIRST_LOOK = 24
"""Timed calls of a side before it is first asked whether they are enough."""


def untimed_calls(request: float, call: float) -> int:
    """Calls of a turn before the timed ones; arguments as in `calls_of_pair`."""
    return 1 if call < SHORT and request < SLOW else 0


def calls_of_turn(request: float, call: float) -> int:
    """Timed calls of a turn.

    Args:
        request: as in `calls_of_pair`.
        call: as in `calls_of_pair`.
    """
    return max(1, min(MOST_OF_TURN, int(TURN / max(request, 1e-6)))) if call < SHORT else 1


def calls_of_pair(request: float, call: float, budget: float, fewest: int, most: int, together: int = 1) -> int:
    """Timed calls of a workload in one process, all turns together.

    Args:
        request: seconds of a request seen from outside, fixtures included: the slowest side's.
        call: seconds of the call alone.
        budget: seconds of all turns of one side together.
        fewest: calls at least.
        most: calls at most.
        together: timed calls of a turn.
    """
    each = max(request, 1e-6) * (1 + untimed_calls(request, call) / together)
    return int(max(fewest, min(most, budget / each)))


def turns_of(request: float, call: float, budget: float, fewest: int, most: int) -> Tuple[int, int, int]:
    """Timed calls of a workload in one process, and untimed and timed calls of a turn; arguments as `calls_of_pair`."""
    together = calls_of_turn(request, call)
    return calls_of_pair(request, call, budget, fewest, most, together), untimed_calls(request, call), together


def phases(generator: random.Random, calls: int) -> List[float]:
    """For each timed call the part of the collector's threshold that is used up before it, in [0, 1)."""
    return [generator.random() for _ in range(calls)]


def alternate(
    partners: Sequence[Any],
    node: str,
    untimed: int,
    drawn: Sequence[Any],
    together: int = 1,
    enough: Optional[Callable[[List[List[Call]]], bool]] = None,
) -> List[List[Call]]:
    """Rounds in which each partner has one turn, in the order given.

    Args:
        partners: at least two; all are stopped when this is called and when it returns.
        node: the workload.
        untimed: calls of a turn before the timed ones.
        drawn: for each timed call what is handed to it: a phase, and whatever else is drawn.
        together: timed calls of a turn; the last turn may have fewer.
        enough: whether the calls so far are; asked after `FIRST_LOOK` calls and each doubling. None: they never are.

    Returns:
        For each partner what its timed calls returned, as many for all: one a phase, or fewer where these are enough.
    """
    found = [[] for _ in partners]  # type: List[List[Call]]
    look = FIRST_LOOK
    for begin in range(0, len(drawn), together):
        for partner, calls in zip(partners, found):
            partner.go()
            try:
                calls += partner.turn(node, untimed, drawn[begin : begin + together])
            finally:
                partner.stop()
        if enough and len(found[0]) >= look:
            if enough(found):
                break
            look = 2 * len(found[0])
    return found
