"""Interleaved blocks: in each, the base, the expert's side and the candidate run in fresh processes on one core.

A block's processes share their hash seed; their order is drawn for each block. Every third block runs
the base once more: base against base tells whether this machine can be believed at all.
"""

import os
import random
import time

from figures import log_harmonic, median, paired
from launch import Trouble

SIDES = ("base", "gold", "cand")
AGAIN = "again"
AA_EVERY = 3
OBSERVE_SECONDS = 0.2
LEAST_SECONDS = 0.005
"""No interpreter starts in less."""
_random = random.SystemRandom()


class Failed(Exception):
    """The candidate fails a workload."""


class Process(object):
    """What a block needs of one process."""

    def __init__(self, report, nodes, warmups):
        items = [report.items[node] for node in nodes]
        self.medians = [median(item["samples"]) for item in items]
        self.first = [item["seconds"] for item in items]
        # warm-ups but the first, which is told, take as long as what follows
        warm = [min(warmups, len(item["samples"])) for item in items]
        self.inside = sum(sum(item["samples"]) for item in items)
        self.inside += sum(item["seconds"] for item, count in zip(items, warm) if count)
        self.inside += sum(max(0, count - 1) * middle for count, middle in zip(warm, self.medians))
        self.wall, self.cpu = report.wall, report.cpu


class Session(object):
    """The timings of one task on this machine."""

    def __init__(self, task, launcher):
        self._task = task
        self._launcher = launcher
        self._nodes = [workload["node"] for workload in task["workloads"]]
        self._scripts = {one["node"]: one["code"] for one in task["workloads"] if one["script"]}
        self._calls = {}
        self.blocks = []
        self.stored = {}
        """Different results of the candidate by script: {name: set of sorted (file, contents)}."""

    def begin(self):
        """Chooses a core, and fixes the number of calls with a process of the base that is not kept."""
        self._launcher.core = quiet_core(self._task.get("cores"))
        self.blocks, self._calls = [], {}
        report = self._time("base", _random.randrange(1, 2**32))
        self._calls = {node: len(report.items[node]["samples"]) for node in self._nodes}

    def add(self, count):
        """Runs so many more blocks.

        Raises:
            Failed: the candidate fails a workload.
            Trouble: the base or the expert's side does.
        """
        for number in range(len(self.blocks), len(self.blocks) + count):
            roles = list(SIDES) + ([AGAIN] if number % AA_EVERY == 0 else [])
            _random.shuffle(roles)
            seed = _random.randrange(1, 2**32)
            block = {}
            for role in roles:
                report = self._time("base" if role == AGAIN else role, seed)
                block[role] = Process(report, self._nodes, self._task["limits"]["warmups"])
                if role == "cand":
                    for name, files in report.stored.items():
                        self.stored.setdefault(name, set()).add(tuple(sorted(files.items())))
            self.blocks.append(block)

    def _time(self, side, seed):
        wanted = {"scripts": self._scripts, "calls": self._calls, "hash_seed": seed, "store": True, "keep": "last"}
        wanted["arguments"] = [node for node in self._nodes if node not in self._scripts]
        report = self._launcher.run(side, "time", wanted)
        for node in self._nodes:
            item = report.items.get(node)
            if report.why or item is None or item["outcome"] != "passed" or not item["samples"]:
                said = report.why or (item or {}).get("message") or "it did not run"
                raise (Failed if side == "cand" else Trouble)("%s at %s: %s" % (node, side, said))
        return report

    def gain(self, role, nodes=None, first=False, than="base"):
        """(low, middle, high) of the log of the harmonic-mean speedup of a role over another; None: too few blocks."""
        logs = []
        for block in self.blocks:
            if role in block:
                slow, fast = (getattr(block[one], "first" if first else "medians") for one in (than, role))
                chosen = [i for i, node in enumerate(self._nodes) if nodes is None or node in nodes]
                logs.append(log_harmonic([slow[i] for i in chosen], [fast[i] for i in chosen]))
        return paired(logs)

    def ratio(self, nodes=None):
        """(low, middle, high) of the log of the candidate's harmonic-mean speedup over the expert's."""
        chosen = [i for i, node in enumerate(self._nodes) if nodes is None or node in nodes]
        logs = []
        for block in self.blocks:
            base = [block["base"].medians[i] for i in chosen]
            of = {role: log_harmonic(base, [block[role].medians[i] for i in chosen]) for role in ("cand", "gold")}
            logs.append(of["cand"] - of["gold"])
        return paired(logs)

    def saved(self, clock, part):
        """(low, middle, high) of what a process of the candidate saves of the base's, in seconds.

        Seen from outside (`clock`: wall or cpu), less a part of what the clock inside says. For processor time
        that part is scaled by how much of the wall time the base's process had the processor. None where the
        sandbox does not tell the processor time.
        """
        differences = []
        for block in self.blocks:
            base, cand = block["base"], block["cand"]
            spent = getattr(base, clock)
            scale = spent / base.wall
            differences.append(spent - getattr(cand, clock) - part * scale * (base.inside - cand.inside))
        known = median([getattr(block["base"], clock) for block in self.blocks]) > LEAST_SECONDS
        return paired(differences) if known else None

    def raw(self):
        """Block values for the report: {role: {node: [seconds]}}."""
        roles = SIDES + (AGAIN,)
        return {
            role: {
                node: [block[role].medians[i] for block in self.blocks if role in block]
                for i, node in enumerate(self._nodes)
            }
            for role in roles
        }


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
