"""Pairs: base, expert's side and candidate alive together on one core, in strictly alternating short turns.

Each pair has fresh processes and a hash seed of its own; which side has the first turn is drawn. In every second
pair the base runs once more, from a second copy of its tree: base against base shows what this machine adds.
The data of a script are drawn for each call, the same for all sides, as it is made; its results are compared.
The figure of a workload in a pair is the Hodges-Lehmann estimate of the log ratios of its turns; a verdict is
given over pairs, whose turns are not independent of each other.
"""

import contextlib
import math
import os
import random
import time

from figures import agree, hodges_lehmann, log_harmonic, median, paired
from partner import Draw, Stumbled
from results import Results
from turns import FIRST_LOOK, SLOW, alternate, calls_of_pair, phases, untimed_calls
from users import Trouble

SIDES = ("base", "gold", "cand")
AGAIN = "again"
AA_EVERY = 2
OBSERVE_SECONDS = 0.2
AROUND = 0.9
"""Of the base's turns, the part in which a request takes no longer beside its call than is taken from the others'."""
SLOPE_CALLS, SLOPES = 3, 8
"""Calls of a longer turn of a test; rounds of these in a pair."""
SEEDS = 3
"""Calls of the base and of the expert's side by which a script's data are tried before they are drawn."""
TRIES = 3
"""Times that a pair is begun in which a side fails."""
ALONE = 12
"""Processes in which the candidate alone has to do what it failed in a pair, and base and expert's side do."""
UNUSUAL = 4
"""Times as much as processes of the same code differ in the middle: of a few dozen hardly two differ by more."""
_random = random.SystemRandom()


class Failed(Exception):
    """The candidate fails a workload, or has another result than the base."""

    def __init__(self, code, why):
        Exception.__init__(self, why)
        self.code = code


class SideTurns(object):
    """What the turns of one workload in one pair took on one side, in seconds, one value a turn."""

    def __init__(self, calls, cpu, turn, first, untimed, others=(0.0,)):
        self.inside, self.run, self.whole = (list(values) for values in zip(*calls))
        self.seconds = self.inside
        """What counts: see `bounded` and `count_beside`."""
        self.cpu = cpu
        """Processor time of all that belongs to the side, from its being let go until it was stopped."""
        self.turn = turn
        """From its being let go until it was stopped, without what others had of the core."""
        self.others = median(others)
        """Part of a turn, in the middle, in which others are said to have had the core."""
        self.each = self.run
        """Seconds of each call by the clock outside, less what the base's request takes beside its call: no cap.
        Of calls shorter than these requests differ by: by the clock inside.
        """
        self.first, self.first_outside = first
        self.untimed = untimed
        self.slope = None
        """Of a test, seconds that each further call adds to a turn: inside, outside."""
        self.beside = 0.0
        """Seconds that a request lasts longer beside its call than the base's does, in the middle."""
        self._more = 0.0

    def bounded(self, base):
        """From now on calls count no less than the clock outside allows.

        What a request takes beside its call is read from the base's process. The clock inside is believed where it
        says more than what is left (it is finer). Disturbances make single requests longer: none counts more than
        what is typical outside.
        """
        around = [run - inside for run, inside in zip(base.run, base.inside)]
        spare = sorted(around)[int(AROUND * (len(around) - 1))]
        typical = median(self.run) - median(around)
        self.each = self.inside
        if spare - median(around) <= median(base.inside):  # else its own noise is all that it says of single calls
            self.each = [max(inside, run - median(around)) for inside, run in zip(self.inside, self.run)]
        self.seconds = [max(inside, min(run - spare, typical)) for inside, run in zip(self.inside, self.run)]
        self.first = max(self.first, self.first_outside - max(spare, base.first_outside - base.first))
        hidden = [run - seconds - usual for run, seconds, usual in zip(self.run, self.seconds, around)]
        rests = ([whole - run for whole, run in zip(one.whole, one.run)] for one in (self, base))
        later = [ours - theirs for ours, theirs in zip(*rests)]
        self.beside = hodges_lehmann(hidden) + hodges_lehmann(later)

    def count(self, more):
        """So many seconds are added to each call, instead of those that were added before."""
        self.seconds = [seconds + more - self._more for seconds in self.seconds]
        self.first += more - self._more
        self._more = more


def count_beside(pairs, nodes):
    """What the candidate does beside its calls, in pair after pair, counts as part of them.

    Processes of the same code differ by some 10 us in what a request takes beside its call: one pair says nothing
    of a candidate, and less than what the base and the expert's side differ by says nothing in any number of pairs.
    A single pair in which those were disturbed excuses nothing in the others.
    """
    for node in nodes:
        excess, usual = [], []
        for pair in pairs:
            others = [turns[node].beside for role, turns in pair.turns.items() if role != "cand"]
            excess.append(pair.turns["cand"][node].beside - median(others))
            usual += [abs(other - median(others)) for other in others]
        figures, spared = paired(excess), min(max(usual), UNUSUAL * median(usual))
        for pair in pairs:
            pair.turns["cand"][node].count(max(0.0, figures[0] - spared) if figures else 0.0)
            pair.forget()


class Pair(object):
    """The turns of one pair: `turns[role][node]`."""

    def __init__(self, order, seed):
        self.order = order
        self.seed = seed
        self.turns = {role: {} for role in order}
        self.load_cpu = {}
        self._logs = {}

    def log(self, slow, fast, node):
        """The log of how many times as fast a role is as another."""
        key = slow, fast, node
        if key not in self._logs:
            slower, faster = (self.turns[role][node].seconds for role in (slow, fast))
            self._logs[key] = hodges_lehmann([math.log(one / other) for one, other in zip(slower, faster)])
        return self._logs[key]

    def forget(self):
        """Calls count otherwise than before."""
        self._logs.clear()

    def gain(self, role, nodes):
        """Log of the harmonic mean of a role's speedups over the base."""
        return log_harmonic([1.0] * len(nodes), [math.exp(-self.log("base", role, node)) for node in nodes])

    def of_expert(self, nodes, more=None):
        """Log of the candidate's harmonic-mean speedup over the expert's, from turns of the two.

        `more`: by node, the log of how many times longer than in the middle its calls are on average, where that is
        more than the expert's.
        """
        more = more or {}
        expert = [math.exp(-self.log("base", "gold", node)) for node in nodes]
        cand = [
            part * math.exp(more.get(node, 0.0) - self.log("gold", "cand", node)) for part, node in zip(expert, nodes)
        ]
        return math.log(sum(expert) / sum(cand))

    def first_of(self, slow, fast, nodes):
        """Log of the harmonic mean of how many times as fast first calls of a role are as those of another."""
        one, other = (self.turns[role] for role in (slow, fast))
        return log_harmonic([one[node].first for node in nodes], [other[node].first for node in nodes])


class GradingSession(object):
    """The timings of one task on this machine.

    Args:
        task: what the grader is given.
        launcher: starts processes.
        twins: tests that must fail, by the tests whose twins they are.
    """

    def __init__(self, task, launcher, twins):
        self._task = task
        self._twins = twins
        self._launcher = launcher
        self._schedule = task["schedule"]
        self._scripts = {one["node"]: one["code"] for one in task["workloads"] if one["script"]}
        self._rounds = {}
        self._hash_seed = 0
        """Of the processes of the pair that was begun last."""
        self.nodes = [workload["node"] for workload in task["workloads"]]
        self.pairs = []
        self.stumbles = []
        """Of pairs that were begun anew, why."""
        self.results = Results(launcher, self._scripts, os.path.join(task["work"], "results"))
        launcher.core = quiet_core(task.get("cores"))
        self._drawn = self._drawable()

    def add(self, count):
        """Runs so many more pairs.

        Raises:
            Failed: the candidate fails a workload.
            Trouble: the base or the expert's side does, time and again.
        """
        for _ in range(count):
            for left in reversed(range(TRIES)):
                try:
                    self.pairs.append(self._pair(len(self.pairs)))
                    break
                except Stumbled as error:
                    self.stumbles.append("%s: %s" % (error.role, error))
                    node, drawn = error.asked or (self.nodes[0], ())
                    matters = not error.final and (error.raised or error.role == "cand")
                    possible = matters and self._can_be_done(("base", "gold"), node, drawn)
                    if error.raised and not possible:
                        self._drawn -= {node}  # the data that were drawn are none that the base can use
                    at_fault = possible and error.role == "cand" and (error.raised or self._fails_alone(node, drawn))
                    if error.final or not left or at_fault:
                        why = "%s fails: %s" % (error.role, error)
                        raise Failed("workload_fails", why) if error.role == "cand" else Trouble(why)
        count_beside(self.pairs, self.nodes)

    def _fails_alone(self, node, drawn):
        """Whether the candidate by itself fails it once more: what it does in some processes or for some data alone."""
        return not all(self._can_be_done(("cand",), node, drawn) for _ in range(ALONE))

    def _can_be_done(self, roles, node, drawn):
        """Whether these, without the other sides, do what a side has failed: a side beside them may hinder them."""
        try:
            with self._opened(roles, self._hash_seed, [node]) as partners:
                for number in drawn or (None,):
                    for partner in partners:
                        partner.go()
                        partner.call(node, Draw(0.0, [number]))
                        partner.stop()
        except Stumbled:
            return False
        return True

    def over_pairs(self, value):
        """(low, middle, high) of a figure of pairs at 95 %; None with too few of them."""
        return paired([value(pair) for pair in self.pairs])

    def again(self):
        """The same of base against base; with few pairs only their middle value, without ends."""
        logs = [pair.gain(AGAIN, self.nodes) for pair in self.pairs if AGAIN in pair.order]
        return paired(logs) or (logs and (-math.inf, median(logs), math.inf)) or None

    @property
    def fixed(self):
        """Workloads whose data are always the same: what they are asked is known before it is asked."""
        return [node for node in self.nodes if node not in self._drawn]

    @property
    def in_process(self):
        """Workloads of which nothing but the candidate's own process says what it did: unit tests."""
        return [node for node in self.nodes if node not in self._scripts]

    def _drawable(self):
        """Scripts whose data can be drawn: they take seeds, and the expert's results are the base's for other ones."""
        found, trial = set(), Results(self._launcher, self._scripts, os.path.join(self._task["work"], "trial"))
        for node in sorted(self._scripts):
            try:
                with self._opened(["base", "gold"], 0, [node]) as (base, gold):
                    for _ in range(SEEDS):
                        draw = Draw(0.0, [seed()])
                        for partner in (base, gold):
                            partner.go()
                            partner.call(node, draw)
                            partner.stop()
                    takes = base.seeds[node]
                    trial.take(base, gold, gold)
            except Stumbled:
                continue
            if takes and not trial.wrong():
                found.add(node)
        return frozenset(found)

    @contextlib.contextmanager
    def _opened(self, order, hash_seed, nodes):
        """Processes of these roles that have workloads loaded; in the end all are dead, and have been looked at."""
        scripts = {node: self._scripts[node] for node in nodes if node in self._scripts}
        wanted = {"scripts": scripts, "hash_seed": hash_seed, "store": bool(scripts), "keep": "last"}
        tests = [node for node in nodes if node not in scripts]
        wanted["arguments"] = tests + [self._twins[node] for node in tests if node in self._twins]
        partners, used = [], {}
        try:
            for role in order:
                partners.append(self._launcher.open(role, wanted))
                partners[-1].load()
            yield partners
        finally:
            used = self._launcher.end()
            for partner in partners:
                partner.close()
            self._launcher.end([partner.folder for partner in partners])
        for partner in partners:
            partner.check(used)

    def _pair(self, number):
        order = list(SIDES) + ([AGAIN] if number % AA_EVERY == 0 else [])
        _random.shuffle(order)
        self._hash_seed = _random.randrange(1, 2**32)
        pair = Pair(order, self._hash_seed)
        with self._opened(order, pair.seed, self.nodes) as partners:
            pair.load_cpu = {partner.role: partner.load_cpu for partner in partners}
            nodes = list(self.nodes)
            _random.shuffle(nodes)
            for node in nodes:
                self._turns(pair, node, partners)
        ours = set().union(*(one.cores for one in partners if one.role != "cand"))
        for partner in partners:
            if partner.cores - ours:
                raise Stumbled(partner.role, "it goes to other cores: %s" % sorted(partner.cores - ours), final=True)
        wrong = self.results.wrong()
        if wrong:
            raise Failed("wrong_result", wrong)
        return pair

    def _turns(self, pair, node, partners):
        """Warms one workload up, and takes its turns."""
        sides = [next(one for one in partners if one.role == role) for role in SIDES]
        drawn = [self._draw(node) for _ in range(2)]
        first = {partner.role: self._warm(partner, node, drawn) for partner in partners}
        self.results.take(*sides)
        if node not in self._rounds:  # of this the candidate says nothing
            ours = [first[role] for role in ("base", "gold")]
            shortest, slowest = min(one[2] for one in ours), max(one[3] for one in ours)
            schedule = self._schedule
            limits = schedule["turn_seconds"], schedule["fewest_turns"], schedule["most_turns"]
            self._rounds[node] = calls_of_pair(slowest, shortest, *limits), untimed_calls(slowest, shortest)
        rounds, untimed = self._rounds[node]
        for partner in partners:
            partner.cool()
        found, look = [[] for _ in partners], FIRST_LOOK
        for phase in phases(_random, rounds):
            draw = Draw(phase, [self._draw(node) for _ in range(1 + untimed)])
            for calls, more in zip(found, alternate(partners, node, untimed, [draw])):
                calls += more
            self.results.take(*sides)
            if len(found[0]) >= look:
                if self._agree(partners, found):
                    break
                look = 2 * len(found[0])
        for partner, asked in zip(partners, found):
            calls, turns, others = partner.turns(asked)
            pair.turns[partner.role][node] = SideTurns(
                calls, partner.cpu[:], turns, first[partner.role][:2], untimed, others
            )
            partner.on_one_core(node)
        for role in pair.order:
            pair.turns[role][node].bounded(pair.turns["base"][node])
        if node not in self._scripts:
            for role, slope in self._slopes(node, partners, min(SLOPES, rounds)).items():
                pair.turns[role][node].slope = slope
        if node in self._twins:
            for partner in partners:
                self._must_fail(partner, node)
        for partner in partners:
            partner.look()

    def _agree(self, partners, found):
        """Whether the turns of base and expert's side are enough; the candidate has no say in how many there are."""
        calls = {partner.role: [inside for inside, _, _ in one] for partner, one in zip(partners, found)}
        return agree([calls["base"], calls["gold"]], self._schedule["turn_error"])

    def _must_fail(self, partner, node):
        partner.go()
        try:
            said = partner.fails(self._twins[node])
        finally:
            partner.stop()
        if not said:
            message = "a test that must fail is not said to: a twin of %s" % node
            raise Stumbled(partner.role, message, final=partner.role == "cand")

    @staticmethod
    def _slopes(node, partners, rounds):
        """By role, what each further call of a test adds to a turn: turns of one call against turns of more."""
        found = {partner.role: [] for partner in partners}
        for phase in phases(_random, rounds):
            for partner in partners:
                partner.go()
                try:
                    one, more = (partner.calls(node, phase, count) for count in (1, SLOPE_CALLS))
                finally:
                    partner.stop()
                found[partner.role].append([(b - a) / (SLOPE_CALLS - 1) for a, b in zip(one, more)])
        return {role: [hodges_lehmann(values) for values in zip(*turns)] for role, turns in found.items()}

    def _draw(self, node):
        return seed() if node in self._drawn else None

    def _warm(self, partner, node, drawn):
        """Seconds of the first call inside and outside, of a warm one, and of that with its fixtures."""
        more = self._task["limits"]["warmups"] - 1
        partner.go()
        try:
            if node in self._scripts:  # of its first call, too, the clock outside sees `experiment` alone
                first, cold, busy = partner.call(node, Draw(0.0, drawn))
                last = first
            else:
                first, last, cold, busy = partner.warm(node, 1, ())
            if more > 0 and busy < SLOW:
                _, last, _, busy = partner.warm(node, more, drawn[1:] if node in self._scripts else ())
        finally:
            partner.stop()
        return first, cold, last, busy

    def kinds(self):
        """How each workload was graded: whose clock counts, and whether anybody could know its data before."""
        return {
            node: {
                "clock": "outside" if node in self._scripts else "in-process",
                "data": "drawn" if node in self._drawn else "fixed",
            }
            for node in self.nodes
        }

    def raw(self):
        """The values of each pair, for the report."""
        return [
            {
                "order": pair.order,
                "hash_seed": pair.seed,
                "load_cpu": {role: round(seconds, 4) for role, seconds in pair.load_cpu.items()},
                "workloads": {node: self._of_workload(pair, node) for node in self.nodes},
            }
            for pair in self.pairs
        ]

    @staticmethod
    def _of_workload(pair, node):
        found = {"turns": len(pair.turns["base"][node].inside)}
        for role, by_node in pair.turns.items():
            turns = by_node[node]
            names = ("seconds", "inside", "run", "whole", "turn", "cpu")
            found[role] = {name: float("%.4g" % median(getattr(turns, name))) for name in names}
            if turns.slope:
                found[role]["slope"] = [float("%.4g" % seconds) for seconds in turns.slope]
            found[role].update(
                first=float("%.4g" % turns.first), speedup=round(math.exp(pair.log("base", role, node)), 4)
            )
        return found


def seed():
    """A number that nobody could know before."""
    return _random.randrange(1, 2**31)


def quiet_core(allowed=None):
    """The least busy core this process may use; among equals the last."""
    mine = sorted(os.sched_getaffinity(0).intersection(allowed or range(4096))) or sorted(os.sched_getaffinity(0))
    before = _busy()
    time.sleep(OBSERVE_SECONDS)
    after = _busy()
    return min(mine, key=lambda core: (round((after.get(core, 0) - before.get(core, 0)) / 2), -core))


def _busy():
    """Ticks of each core that were not idle."""
    with open("/proc/stat") as file:
        rows = [line.split() for line in file if line.startswith("cpu") and line[3].isdigit()]
    return {int(row[0][3:]): sum(map(int, row[1:4] + row[6:9])) for row in rows}
