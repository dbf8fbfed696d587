"""The rules by which pairs become a reward: all figures are logs of ratios over pairs, at 95 %."""

import math

from figures import hodges_lehmann
from outside import (
    CERTAIN,
    DOUBTFUL,
    TURN,
    WALLS,
    disagrees,
    falls_short,
    lies,
    of_first,
    others_beside,
    saved,
    short_of_claim,
    short_of_first,
    slow_calls,
)
from users import Trouble

FIRST_GAIN = 0.02
FIRST_PART = 0.5
GAIN_PART = 0.5
"""Part of the expert's gain (log) that has to be reached, too: of an expert's 1.06x, 95 % is hardly any gain at all."""
AA_LIMIT = 0.02
"""Log ratio of base to base from which on, where it is significant, the report calls the machine noisy."""
CLOCKS = WALLS + (TURN, "cpu")
SELDOM = math.log(1.05)
"""By how much less than the threshold (log) the speedup may be that counts the calls that seldom are slow."""
OTHERS = 0.2
"""Part of the candidate's turns by which others may have the core for longer than in turns of base and expert."""
ACCUSING = 12
"""Pairs after which a clock or a single workload may accuse: of many that are looked at, one differs by chance with
fewer.
"""


UNEVEN, UNEVEN_PART = math.log(1.25), 5.0
"""By how much (log), and by how many times as much as the expert's speedup, a candidate's differs from process to
process where the middle of them says nothing.
"""


class RewardRules(object):
    """What the pairs of a session say so far.

    Args:
        session: the pairs.
        hidden: hidden workloads, which have to pass alone, too.
        threshold: the part of the expert's speedup that has to be reached.
        facts: gets the figures.
    """

    def __init__(self, session, hidden, threshold, facts):
        self._session = session
        self._threshold = threshold
        self._log = math.log(threshold)
        self._facts = facts
        self._groups = [("", session.nodes)]
        if hidden:
            self._groups.append(("hidden workloads: ", [node for node in session.nodes if node in hidden]))

    def is_clear(self):
        """Whether more pairs would hardly change it: the threshold lies outside of all intervals, or one is below it.

        Of a change that passes, the clocks outside must have their say, too.
        """
        session = self._session
        cand = session.over_pairs(lambda pair: pair.gain("cand", session.nodes))
        ratios = [self._of_expert(nodes) for _, nodes in self._groups]
        parts = [self._of_gain(nodes) for _, nodes in self._groups]
        if any(high < self._log for _, _, high in ratios) or any(high < 0 for _, _, high in parts) or cand[2] <= 0:
            return True
        if cand[0] <= 0 or any(low < self._log for low, _, _ in ratios) or any(low < 0 for low, _, _ in parts):
            return False
        many = len(session.pairs) >= ACCUSING
        if any(self._on_average(nodes, DOUBTFUL)[1] < self._log - SELDOM for _, nodes in self._groups) and not many:
            return False
        seen = self._saved()
        accusing = [short_of_claim(session, clock, seen[clock]) for clock in CLOCKS]
        accusing.append(short_of_first(session, self._first()))
        if any(one is not None for one in accusing) or lies(session) or disagrees(session, self._threshold):
            return many
        if any(self._might_be_slow_at_first(nodes) for _, nodes in self._groups):
            return many
        # a wall that does not see the expert's gain either says no more with more pairs
        return all(seen[clock][0] > 0 or many and saved(session, clock, "gold")[0] <= 0 for clock in WALLS)

    def shortfall(self):
        """(code, why) where there is no reward; None where there is one.

        Raises:
            Trouble: the expert's change is not faster here.
        """
        session, facts = self._session, self._facts
        gold, cand = (session.over_pairs(lambda pair: pair.gain(role, session.nodes)) for role in ("gold", "cand"))
        of_expert = as_ratios(self._of_expert(session.nodes))
        facts.update(expert=as_ratios(gold), candidate=as_ratios(cand), of_expert=of_expert, undecided_at_95=False)
        aa = session.again()
        if aa:
            facts["base_again"] = as_ratios(aa)
            facts["noisy"] = (aa[0] > 0 or aa[2] < 0) and abs(aa[1]) > AA_LIMIT
        if gold[1] <= 0:
            raise Trouble("the expert's change is not faster here (%s)" % words(gold))
        if cand[0] <= 0:
            might = cand[2] > 0 and self._of_expert(session.nodes)[2] >= self._log
            facts["undecided_at_95"] = might
            return "not_faster", "not faster than the base%s: %s" % (" at 95 %" if might else "", words(cand))
        for name, nodes in self._groups:
            short = self._against_expert(nodes, "_hidden" if name else "")
            if short:
                return short[0], name + short[1]
        why = self._outside()
        return why and ("contradicted", why)

    def _against_expert(self, nodes, suffix):
        """(code, why) where some of the workloads fall short of the expert's; None when they do not."""
        session = self._session
        ratio = self._of_expert(nodes)
        gold, cand = self._first_gains(nodes)
        seen = {"of_expert": ratio, "expert_first": gold, "candidate_first": cand}
        self._facts.update((name + suffix, as_ratios(figures)) for name, figures in seen.items())
        if ratio[0] < self._log <= ratio[2]:
            self._facts["undecided_at_95"] = True
        if ratio[1] < self._log:
            return "below_expert", "%s of the expert's speedup" % words(ratio)
        if self._is_uneven(nodes):
            why = "%s of the expert's speedup: it differs from process to process far more than the expert's"
            return "below_expert", why % words(ratio)
        whole = self._on_average(nodes, CERTAIN)
        self._facts["of_expert_on_average" + suffix] = as_ratios(whole)
        if whole[1] < self._log - SELDOM:
            why = "%s of the expert's speedup on average: some calls are far slower than most"
            return "below_expert", why % words(whole)
        part = self._of_gain(nodes)
        if part[0] < 0 <= part[2]:
            self._facts["undecided_at_95"] = True
        if part[1] < 0:
            whole = session.over_pairs(lambda pair: pair.gain("gold", nodes))
            why = "less than half of the expert's gain: %s, the expert's %s"
            return "below_expert", why % (
                words(session.over_pairs(lambda pair: pair.gain("cand", nodes))),
                words(whole),
            )
        if gold[0] > FIRST_GAIN and cand[1] < FIRST_PART * gold[1]:
            why = "only later calls are faster: first calls %s, the expert's %s" % (words(cand), words(gold))
            return "later_calls_only", why
        known = [node for node in nodes if node in session.fixed]
        if known and gold[0] > FIRST_GAIN:
            first = session.over_pairs(lambda pair: pair.first_of("gold", "cand", known))
            self._facts["first_of_expert" + suffix] = as_ratios(first)
            if first[2] < self._log:
                return "later_calls_only", "only later calls are faster: first calls %s of the expert's" % words(first)
        return None

    def _is_uneven(self, nodes):
        """Whether the pairs differ so much that their middle says nothing, and a quarter of them falls short.

        Work that is hidden in half of the processes is no doubt of the others, and no clock is certain of it.
        """
        pairs = self._session.pairs
        ours, theirs = [one.of_expert(nodes) for one in pairs], [one.gain("gold", nodes) for one in pairs]
        return _quarter(ours) < self._log and _below(ours) > max(UNEVEN, UNEVEN_PART * _below(theirs))

    def _first_gains(self, nodes):
        """What first calls gain over the base's: the expert's, the candidate's."""
        session = self._session
        return [session.over_pairs(lambda pair: pair.first_of("base", role, nodes)) for role in ("gold", "cand")]

    def _might_be_slow_at_first(self, nodes):
        """Whether the candidate's first calls gain too little, but not for certain: a process has one of them."""
        gold, cand = self._first_gains(nodes)
        return gold[0] > FIRST_GAIN and cand[1] < FIRST_PART * gold[1] <= cand[2]

    def _outside(self):
        """Why the clock inside cannot be believed; None where those outside bear it out."""
        seen = self._saved()
        short = falls_short(self._session, self._threshold)
        lied = lies(self._session)
        apart = disagrees(self._session, self._threshold)
        first = self._first()
        self._facts.update(saved_outside=dict(seen, first=first), short_of_expert_outside=short, contradicted=lied)
        self._facts["in_process_doubted"] = apart
        for clock in CLOCKS:
            low, _, high = seen[clock]
            if clock in WALLS and low <= 0 <= high:
                self._facts["undecided_at_95"] = True
            missing = short_of_claim(self._session, clock, seen[clock])
            if missing is not None:
                said = "the clock inside says more than is seen from outside"
                return "%s: %s %.3g s short of half of it" % (said, clock, missing)
        if lied:
            node, figures = sorted(lied.items())[0]
            return "the clock inside says more than is seen from outside at %s: %s" % (node, figures)
        if apart:
            node, figures = sorted(apart.items())[0]
            return "the clock inside disagrees with turns of more calls at %s: %s" % (node, figures)
        for node in self._session.nodes:
            low, middle, _ = others_beside(self._session, node)
            if low > OTHERS:
                return "others are said to have the core for %.2g more of its turns than of others': %s" % (
                    middle,
                    node,
                )
        for clock in WALLS + (TURN,):
            low, middle, _ = short[clock]
            if low > 0:
                said = "from outside it is slower than the clock inside says"
                return "%s: %s %.3g s more than the expert's allows" % (said, clock, middle)
        missing = short_of_first(self._session, first)
        if missing is not None:
            return "the clock inside says more of first calls than is seen from outside: %.3g s short" % missing
        return None

    def _of_gain(self, nodes):
        """By how much the candidate's gain is more than the part of the expert's that has to be reached."""
        return self._session.over_pairs(lambda pair: pair.gain("cand", nodes) - GAIN_PART * pair.gain("gold", nodes))

    def _of_expert(self, nodes, more=None):
        return self._session.over_pairs(lambda pair: pair.of_expert(nodes, more))

    def _on_average(self, nodes, errors):
        return self._of_expert(nodes, slow_calls(self._session, errors))

    def _first(self):
        return self._session.over_pairs(lambda pair: of_first(pair, self._session.nodes))

    def _saved(self):
        return {clock: saved(self._session, clock) for clock in CLOCKS}


def _quarter(logs):
    """The largest of the least quarter, or the least but one of few."""
    return sorted(logs)[(len(logs) - 1) // 4]


def _below(logs):
    """By how much a quarter of them is less than what is taken for their middle."""
    return hodges_lehmann(logs) - _quarter(logs)


def as_ratios(log_gain):
    """A gain as ratios, for the report; None for an end that is not known."""
    ends = (round(math.exp(value), 4) if abs(value) != math.inf else None for value in log_gain)
    return dict(zip(("low", "ratio", "high"), ends))


def words(log_gain):
    """'1.23x [1.20, 1.26]'."""
    low, middle, high = (math.exp(value) for value in log_gain)
    return "%.3gx [%.3g, %.3g]" % (middle, low, high)
