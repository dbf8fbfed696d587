"""Pairs: base, expert's side and candidate alive together on one core, in strictly alternating short turns.

Each pair has fresh processes and a hash seed of its own; which side has the first turn is drawn. In every second
pair the base runs once more, from a second copy of its tree: base against base tells what this machine adds.
The figure of a workload in a pair is the Hodges-Lehmann estimate of the log ratios of its turns; a verdict is
given over pairs, whose turns are not independent of each other.
"""

import math
import os
import random
import time

from figures import hodges_lehmann, log_harmonic, median, paired
from launch import read_stored
from partner import Stumbled
from turns import alternate, phases, rounds_of, untimed_calls
from users import Trouble

SIDES = ("base", "gold", "cand")
AGAIN = "again"
AA_EVERY = 2
OBSERVE_SECONDS = 0.2
SLOW = 0.3
"""Seconds of a call after which it is warmed up no further."""
TRIES = 3
"""Times that a pair is begun in which a side fails."""
_random = random.SystemRandom()


class Failed(Exception):
    """The candidate fails a workload."""


class Turns(object):
    """What the turns of one workload in one pair took on one side, in seconds, one value a turn."""

    def __init__(self, calls, cpu, first, untimed):
        self.inside, self.run, self.whole = (list(values) for values in zip(*calls))
        self.cpu = cpu
        """Processor time of all that belongs to the side, from its being let go until it was stopped."""
        self.first, self.first_outside = first
        self.untimed = untimed


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
            slower, faster = (self.turns[role][node].inside for role in (slow, fast))
            self._logs[key] = hodges_lehmann([math.log(one / other) for one, other in zip(slower, faster)])
        return self._logs[key]

    def gain(self, role, nodes):
        """Log of the harmonic mean of a role's speedups over the base."""
        return log_harmonic([1.0] * len(nodes), [math.exp(-self.log("base", role, node)) for node in nodes])

    def of_expert(self, nodes):
        """Log of the candidate's harmonic-mean speedup over the expert's, from turns of the two."""
        expert = [math.exp(-self.log("base", "gold", node)) for node in nodes]
        cand = [part * math.exp(-self.log("gold", "cand", node)) for part, node in zip(expert, nodes)]
        return math.log(sum(expert) / sum(cand))

    def first_gain(self, role, nodes):
        """The same of first calls over the base's."""
        base, other = (self.turns[one] for one in ("base", role))
        return log_harmonic([base[node].first for node in nodes], [other[node].first for node in nodes])


class Session(object):
    """The timings of one task on this machine."""

    def __init__(self, task, launcher):
        self._task = task
        self._launcher = launcher
        self._schedule = task["schedule"]
        self._scripts = {one["node"]: one["code"] for one in task["workloads"] if one["script"]}
        self._rounds = {}
        self.nodes = [workload["node"] for workload in task["workloads"]]
        self.pairs = []
        self.stumbles = []
        """Of pairs that were begun anew, why."""
        self.stored = {}
        """Different results of the candidate by script: {name: set of sorted (file, contents)}."""
        launcher.core = quiet_core(task.get("cores"))

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
                    if error.final or not left:
                        raise (Failed if error.role == "cand" else Trouble)("%s fails: %s" % (error.role, error))

    def over_pairs(self, value):
        """(low, middle, high) of a figure of pairs at 95 %; None with too few of them."""
        return paired([value(pair) for pair in self.pairs])

    def again(self):
        """The same of base against base; with few pairs only their middle value, without ends."""
        logs = [pair.gain(AGAIN, self.nodes) for pair in self.pairs if AGAIN in pair.order]
        return paired(logs) or (logs and (-math.inf, median(logs), math.inf)) or None

    def _pair(self, number):
        order = list(SIDES) + ([AGAIN] if number % AA_EVERY == 0 else [])
        _random.shuffle(order)
        pair, partners, used = Pair(order, _random.randrange(1, 2**32)), [], {}
        wanted = {"scripts": self._scripts, "hash_seed": pair.seed, "store": bool(self._scripts), "keep": "last"}
        wanted["arguments"] = [node for node in self.nodes if node not in self._scripts]
        try:
            for role in order:
                partners.append(self._launcher.open(role, wanted))
                partners[-1].load()
                pair.load_cpu[role] = partners[-1].load_cpu
            nodes = list(self.nodes)
            _random.shuffle(nodes)
            for node in nodes:
                self._turns(pair, node, partners)
            stored = self._stored([one for one in partners if one.role == "cand"][0])
        finally:
            used = self._launcher.end()
            for partner in partners:
                partner.close()
            self._launcher.end([partner.folder for partner in partners])
        for partner in partners:
            partner.check(used)
        ours = set().union(*(one.cores for one in partners if one.role != "cand"))
        for partner in partners:
            if partner.cores - ours:
                raise Stumbled(partner.role, "it goes to other cores: %s" % sorted(partner.cores - ours), final=True)
        for name, files in stored.items():
            self.stored.setdefault(name, set()).add(tuple(sorted(files.items())))
        return pair

    def _stored(self, partner):
        """The results that a process has stored last, by script."""
        try:
            return read_stored(partner.store, self._scripts)
        except (OSError, ValueError) as error:
            raise Stumbled(partner.role, "its results cannot be read: %s" % error, final=True)

    def _turns(self, pair, node, partners):
        """Warms one workload up, and takes its turns."""
        first = {partner.role: self._warm(partner, node) for partner in partners}
        if node not in self._rounds:  # of this the candidate says nothing
            ours = [first[role] for role in ("base", "gold")]
            shortest, slowest = min(one[2] for one in ours), max(one[3] for one in ours)
            schedule = self._schedule
            limits = schedule["turn_seconds"], schedule["fewest_turns"], schedule["most_turns"]
            self._rounds[node] = rounds_of(slowest, shortest, *limits), untimed_calls(shortest)
        rounds, untimed = self._rounds[node]
        drawn = phases(_random, rounds)
        for partner in partners:
            partner.look()
            del partner.cpu[:]
        found = alternate(partners, node, untimed, drawn)
        for partner in partners:
            partner.look()
        for partner, calls in zip(partners, found):
            pair.turns[partner.role][node] = Turns(calls, partner.cpu[:], first[partner.role][:2], untimed)

    def _warm(self, partner, node):
        """Seconds of the first call inside and outside, of a warm one, and of that with its fixtures."""
        more = self._task["limits"]["warmups"] - 1
        partner.go()
        try:
            first, last, cold, busy = partner.warm(node, 1)
            if more > 0 and busy < SLOW:
                _, last, _, busy = partner.warm(node, more)
        finally:
            partner.stop()
        return first, cold, last, busy

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
            names = ("inside", "run", "whole", "cpu")
            found[role] = {name: float("%.4g" % median(getattr(turns, name))) for name in names}
            found[role].update(
                first=float("%.4g" % turns.first), speedup=round(math.exp(pair.log("base", role, node)), 4)
            )
        return found


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
