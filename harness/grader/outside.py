"""What the clocks outside say of a gain that the candidate's own process claims.

In each turn the grader takes four times besides: around the request that runs the timed part (`run`), around the
whole turn's call with what a script prepares and does with its result (`whole`), the time from the side's being let
go until it was stopped (`turn`), which leaves no gap, and the processor time of all that belongs to the side in it
(`cpu`). Of a claim, at least `PART` must be seen in both walls; the other two must not speak against it. And a
candidate may not be seen to fall short, from outside, of what its claim owes to the expert's: else it could halve
its time and claim to need none.
"""

import math

from figures import hodges_lehmann, median

PART = 0.5
"""Of what a candidate claims to save, what must be seen from outside."""
MARGIN = 0.1
"""Of the base's time, by which a single workload may fall short before it is called a lie."""
SHORT = 0.05
"""The same in the comparison with the expert's side."""
STRICT = 0.8
"""Of what a candidate claims to save in a test, what further calls must save in a turn seen from outside."""
CERTAIN, DOUBTFUL = 3.0, 1.5
"""Standard errors by which a mean has to be more than another to count, and to be worth more pairs."""
SHORTEST = 1e-9
WALLS = ("run", "whole")
TURN = "turn"
"""A clock of the whole turn: too coarse for short calls, so it has to speak for certain."""


def saved(session, clock, role="cand", part=PART):
    """(low, middle, high) over pairs of the seconds saved, less a part of what is claimed, all workloads together."""
    value = of_cpu if clock == "cpu" else of_wall
    return session.over_pairs(lambda pair: sum(value(pair, node, clock, part, role) for node in session.nodes))


def short_of_claim(session, clock, seen):
    """Seconds by which a clock is short of half of the claim; None where it bears the claim out, or cannot decide.

    A wall clock that sees the expert's gain, and for certain less than all that is claimed, is believed by its middle.
    One too coarse for that, of calls of microseconds say, and that of the processor have to be short for certain,
    and more than half of what they differ by for the expert's change, which claims nothing that is not so.
    """
    _, middle, high = seen
    if clock in WALLS and saved(session, clock, "gold")[0] > 0 and saved(session, clock, part=1.0)[2] < 0:
        return -middle if middle < 0 else None
    value = of_cpu if clock == "cpu" else of_wall
    differ = [abs(sum(value(pair, node, clock, 1.0, "gold") for node in session.nodes)) for pair in session.pairs]
    return -middle if high < -median(differ) / 2 else None


def of_wall(pair, node, clock, part, role="cand"):
    """Seconds of a turn that a side saves by a clock outside, less a part of what it says itself."""
    base, cand = (pair.turns[one][node] for one in ("base", role))
    calls = calls_of(base, clock)
    rows = zip(getattr(base, clock), getattr(cand, clock), base.inside, cand.inside)
    return hodges_lehmann([b - c - part * calls * (inner - claim) for b, c, inner, claim in rows])


def calls_of(turns, clock):
    """Calls that a clock's value is about: of the whole turn those that are not timed, too."""
    return 1 + turns.untimed if clock == TURN else 1


def of_cpu(pair, node, _, part, role="cand"):
    """The same for processor time.

    One core cannot use more of it in a call than the call lasts; so a claim means that it falls, too, but for
    the share of the base's call that was spent waiting. Calls that are not timed count.
    """
    base, cand = (pair.turns[one][node] for one in ("base", role))
    calls = 1 + base.untimed
    share = min(1.0, median(base.cpu) / (median(base.whole) * calls))
    rows = zip(base.cpu, cand.cpu, base.inside, cand.inside)
    return hodges_lehmann([b - c - part * max(0.0, calls * (share * inner - claim)) for b, c, inner, claim in rows])


def of_first(pair, nodes, part=PART, role="cand"):
    """The same for first calls by the wall clock, all workloads together."""
    base, cand = (pair.turns[one] for one in ("base", role))
    return sum(
        base[node].first_outside - cand[node].first_outside - part * (base[node].first - cand[node].first)
        for node in nodes
    )


def short_of_first(session, first):
    """Seconds by which the wall clock is short for certain of half of what first calls claim; None: it cannot decide.

    There is one first call a pair; what is missing has to be more than half of what the clocks differ by for the
    expert's.
    """
    differ = median([abs(of_first(pair, session.nodes, 1.0, "gold")) for pair in session.pairs])
    return -first[1] if first[2] < -differ / 2 else None


def lies(session):
    """Workloads of which a wall clock clearly saw less than a part of the claim.

    What is missing has to be more than half of what the clocks differ by for the expert's change, which claims nothing
    that is not so: beside other load they differ for honest code, too.
    """
    found = {}
    for node in session.nodes:
        base = median([median(pair.turns["base"][node].inside) for pair in session.pairs])
        for clock in WALLS:
            figures = session.over_pairs(lambda pair: of_wall(pair, node, clock, PART))
            apart = median([abs(of_wall(pair, node, clock, 1.0, "gold")) for pair in session.pairs])
            # a clock whose own noise is as large as the call says nothing of it
            if figures and figures[2] - figures[0] < base and figures[2] < -max(MARGIN * base, apart / 2):
                found[node] = "%s: %.3g s of %.3g s" % (clock, figures[1], base)
    return found


def falls_short(session, threshold):
    """By wall clock, (low, middle, high) of the seconds by which it is slower than its claim to the expert's allows."""

    def excess(pair, clock):
        total = 0.0
        for node in session.nodes:
            base, gold, cand = (pair.turns[role][node] for role in ("base", "gold", "cand"))
            rows = zip(getattr(cand, clock), getattr(gold, clock), gold.inside, base.inside)
            allowed, calls = 1 / threshold - 1, calls_of(base, clock)
            total += hodges_lehmann([c - g - calls * (allowed * inner + SHORT * b) for c, g, inner, b in rows])
        return total

    return {clock: session.over_pairs(lambda pair: excess(pair, clock)) for clock in WALLS + (TURN,)}


def disagrees(session, threshold):
    """Tests whose clock inside says clearly more than the slope of turns seen from outside, with what is missing.

    A turn of more calls lasts longer by calls alone: what a turn needs beside them cancels out. Seen so, it must save
    what it claims to save; and it may not be slower than its claim to the expert's allows. Beside
    other load the two clocks differ for honest code, too: what is missing has to be more than half of what they
    differ by for the expert's change, which claims nothing that is not so.
    """
    found = {}
    for node in session.in_process:

        def missing(pair):
            base, cand = (pair.turns[role][node].slope for role in ("base", "cand"))
            return STRICT * (base[0] - cand[0]) - (base[1] - cand[1])

        def clocks(pair):
            (base_in, base_out), (gold_in, gold_out) = (pair.turns[one][node].slope for one in ("base", "gold"))
            return (base_in - base_out) - (gold_in - gold_out)

        def excess(pair):
            gold, cand = (pair.turns[role][node].slope for role in ("gold", "cand"))
            return cand[1] - gold[1] - (1 / threshold - 1) * gold[1] - SHORT * gold[1]

        apart = median([abs(clocks(pair)) for pair in session.pairs])
        for name, value in (("saved", missing), ("of the expert's", excess)):
            figures = session.over_pairs(value)
            if node not in found and figures and figures[0] > apart / 2:
                found[node] = "%s: %.3g s a call" % (name, figures[1])
    return found


def slow_calls(session, errors=CERTAIN):
    """By workload, the log of how many times longer than in the middle the candidate's calls are on average.

    Only what is more than the expert's by so many standard errors: what estimates over turns leave out as disturbed
    may be inputs for which it is slow. Disturbances are on all sides, others' use of the core is taken off, and each
    pair is seen relative to its own middle. The standard error is that of single calls or that of pairs, whichever is
    larger: the calls of one process can be uneven together, in a process of the same code the next time not.
    """
    found = {}
    for node in session.nodes:
        sides = [_relative(session, role, node) for role in ("cand", "gold")]
        cand, gold = (_mean([one for turns in side for one in turns]) for side in sides)
        apart = _mean([_mean(ours)[0] - _mean(theirs)[0] for ours, theirs in zip(*sides)])
        error = max(math.hypot(cand[1], gold[1]), apart[1])
        if cand[0] - gold[0] > errors * error and cand[0] > 1:
            found[node] = math.log(cand[0] / max(1.0, gold[0]))
    return found


def _relative(session, role, node):
    """By pair, a role's calls in parts of the middle one."""
    turns = [pair.turns[role][node].each for pair in session.pairs]
    return [[each / max(median(one), SHORTEST) for each in one] for one in turns]


def _mean(values):
    """Mean and its standard error."""
    mean = sum(values) / len(values)
    return mean, math.sqrt(sum((one - mean) ** 2 for one in values) / max(1, len(values) - 1) / len(values))


def others_beside(session, node):
    """(low, middle, high) over pairs: the part of its turns in which others had the core, beyond that of its partners.

    Base and expert's side take turns with it: others disturb all of them. A candidate can work in a process that is
    gone before its clock is read, while another one waits for the core: then it is "others" who had it.
    """

    def part(pair, role):
        return pair.turns[role][node].others

    return session.over_pairs(lambda pair: part(pair, "cand") - max(part(pair, "base"), part(pair, "gold")))
