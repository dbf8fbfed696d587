"""Grades the change of a solver: `python -E -s -S grade.py task.json`; standard library, Python 3.6 to 3.14.

Writes `reward.json` ({"reward": 0 or 1}) and `grading.json` (why) into the folder of logs. Where the
machine or we failed, no reward is written and the exit code is 1: nobody is graded by an accident.

1 when all of this holds:
- tests that pass on the base and on the expert's side pass, and workloads' results equal the base's;
- the change says nothing with which code tampers with what measures it (`guard`);
- over interleaved blocks, it is faster than the base at 95 %, and its harmonic-mean speedup is at least
  `threshold` (0.95) of the expert's, measured in the same blocks (GSO's Opt);
- first calls gain half of what the expert's first calls gain (log scale), where these gain: a memo does not;
- both hold for the hidden workloads alone, too, where there are any;
- processes save, seen from outside (wall or processor time), at least half of what the clock inside them says.
"""

import json
import math
import os
import platform
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from blocks import Failed, Session  # noqa: E402
from candidate import make_sides  # noqa: E402
from guard import new_suspects  # noqa: E402
from launch import Launcher, Trouble  # noqa: E402

SESSIONS = 3
"""Times that a measurement which finds the base faster than itself is begun."""
TRIES = 2
"""Times that a test may fail before it counts."""
AA_LIMIT = 0.02
"""Log ratio of base to base above which, where it is significant, a session is not believed."""
FIRST_GAIN = 0.02
PART = 0.5
WIDEST = 0.1
"""Widest interval (log) of candidate to expert with the threshold in it that a verdict is given on."""


def main(path):
    """Grades, and writes what came out; the exit code."""
    here = os.path.dirname(os.path.abspath(path))
    with open(path) as file:
        task = json.load(file)
    if os.environ.get("PERFQUARRY_CORES"):
        task["cores"] = [int(core) for core in os.environ["PERFQUARRY_CORES"].split(",")]
    logs = task["logs"]
    os.makedirs(logs, exist_ok=True)
    begin, facts = time.time(), {"machine": machine(), "python": platform.python_version()}
    try:
        reward, why = Grading(task, here, facts).verdict()
        facts.update(reward=reward, why=why)
    except Trouble as trouble:
        facts.update(reward=None, why="not graded: %s" % trouble)
    facts["seconds"] = round(time.time() - begin, 1)
    with open(os.path.join(logs, "grading.json"), "w") as file:
        json.dump(facts, file, indent=1)
    print("reward %s: %s" % (facts["reward"], facts["why"]))
    if facts["reward"] is None:
        return 1
    with open(os.path.join(logs, "reward.json"), "w") as file:
        json.dump({"reward": facts["reward"]}, file)
    return 0


class Grading(object):
    """One grading, from the trees to the verdict; `facts` gets what was seen."""

    def __init__(self, task, here, facts):
        self._task = task
        self._here = here
        self._work = task["work"]
        self._facts = facts
        self._hidden = {one["node"] for one in task["workloads"] if one["hidden"]}
        self._log = math.log(task["threshold"])

    def verdict(self):
        """(1, '') or (0, why)."""
        shutil.rmtree(self._work, ignore_errors=True)
        os.makedirs(self._work)
        os.chmod(self._work, 0o755)
        # pytest looks for its settings in all folders above a tree without its own: this one ends the search
        with open(os.path.join(self._work, "pytest.ini"), "w"):
            pass
        shutil.copytree(os.path.join(self._here, "probe"), os.path.join(self._work, "probe"))
        if not os.path.isdir(self._task["testbed"]):
            raise Trouble("there is no %s" % self._task["testbed"])
        try:
            changed, left_out = make_sides(self._task, self._here, self._work)
        except ValueError as error:
            return 0, str(error)
        self._facts.update(changed=changed, left_out=left_out)
        if not changed:
            return 0, "nothing that counts was changed"
        suspects = self._suspects(changed)
        if suspects:
            return 0, "the change looks at what measures it: %s" % suspects
        self._compile()
        self._launcher = Launcher(self._task, self._work)
        return self._correctness() or self._speed()

    def _suspects(self, changed):
        found = {}
        for path in changed:
            if path.endswith(".py"):
                before, after = (self._source(side, path) for side in ("base", "cand"))
                said = new_suspects(before, after)
                if said:
                    found[path] = said
        self._facts["suspects"] = found
        return "; ".join("%s: %s" % (path, ", ".join(said)) for path, said in sorted(found.items()))

    def _source(self, side, path):
        try:
            with open(os.path.join(self._work, side, path), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return b""

    def _compile(self):
        """Bytecode beforehand, since processes cannot write it."""
        for side in ("base", "gold", "cand"):
            command = [sys.executable, "-E", "-s", "-S", "-m", "compileall", "-q", os.path.join(self._work, side)]
            subprocess.call(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _correctness(self):
        """None, or (0, why): a test fails that passes on the base and on the expert's side."""
        if not self._task["tests"]:
            return None
        both = self._passing("base") & self._passing("gold")
        self._facts["tests"] = len(both)
        if not both:
            raise Trouble("no test passes on the base and on the expert's side")
        failed = both
        for _ in range(TRIES):  # a test that fails now and then is not the candidate's fault
            try:
                failed = sorted(set(failed) - self._passing("cand"))
            except Trouble as trouble:
                why = str(trouble)
            else:
                why = "%d of %d tests fail: %s" % (len(failed), len(both), ", ".join(failed[:5]))
            if not failed:
                return None
        return 0, why

    def _passing(self, side):
        """Tests that pass in a process of a side."""
        report = self._launcher.run(side, "check", {"arguments": self._task["tests"]})
        if report.why:
            raise Trouble("the tests of %s: %s" % (side, report.why))
        return {node for node, item in report.items.items() if item["outcome"] == "passed"}

    def _speed(self):
        schedule = self._task["schedule"]
        session = Session(self._task, self._launcher)
        try:
            for number in range(SESSIONS):
                session.begin()
                self._measure(session, schedule)
                aa = session.gain("again")
                if aa is None or aa[0] <= 0 <= aa[2] or abs(aa[1]) <= AA_LIMIT:
                    break
            else:
                raise Trouble("the base is %.3fx as fast as itself: this machine is too busy" % math.exp(aa[1]))
        except Failed as failed:
            return 0, str(failed)
        finally:
            self._facts.update(core=self._launcher.core, blocks=len(session.blocks))
            if session.blocks:
                self._facts["block_values"] = session.raw()
        why = self._shortfall(session) or self._differing(session)
        return (0, why) if why else (1, "faster than the base, and as fast as the expert's change")

    def _measure(self, session, schedule):
        """Blocks until they tell, or there are enough; never fewer than `blocks`.

        They tell when the threshold lies outside of the interval and, for a change that passes it, when
        the clocks outside bear it out or do not.
        """
        session.add(schedule["futility_blocks"])
        ratio = session.ratio()
        if ratio and ratio[2] < self._log:
            return
        session.add(schedule["blocks"] - schedule["futility_blocks"])
        while len(session.blocks) < schedule["most_blocks"]:
            low, _, high = session.ratio()
            if high <= self._log or (low >= self._log and not unclear(self._saved_outside(session))):
                return
            session.add(schedule["more_blocks"])
        low, _, high = session.ratio()
        if low < self._log < high and high - low > WIDEST:
            raise Trouble(
                "%d blocks do not tell whether it is as fast as the expert's: too much noise" % len(session.blocks)
            )

    def _shortfall(self, session):
        """Why the change is not fast enough; None when it is."""
        gold, cand, aa = (session.gain(role) for role in ("gold", "cand", "again"))
        self._facts.update(expert=told(gold), candidate=told(cand), base_again=told(aa) if aa else None)
        if gold[0] <= 0:
            raise Trouble("the expert's change is not faster here (%s)" % words(gold))
        if cand[0] <= 0:
            return "not faster than the base: %s" % words(cand)
        groups = [("", None)] + ([("hidden workloads: ", self._hidden)] if self._hidden else [])
        for name, nodes in groups:
            why = self._against_expert(session, nodes)
            if why:
                return name + why
        return self._outside(session)

    def _against_expert(self, session, nodes):
        """Why some of the workloads (None: all) fall short of the expert's; None when they do not."""
        ratio = session.ratio(nodes)
        gold, cand = (session.gain(role, nodes, first=True) for role in ("gold", "cand"))
        suffix = "_hidden" if nodes else ""
        seen = {"of_expert": ratio, "expert_first": gold, "candidate_first": cand}
        self._facts.update((name + suffix, told(figures)) for name, figures in seen.items())
        if ratio[1] < self._log:
            return "%s of the expert's speedup" % words(ratio)
        if gold[0] > FIRST_GAIN and cand[1] < PART * gold[1]:
            return "only later calls are faster: first calls %s, the expert's %s" % (words(cand), words(gold))
        return None

    def _outside(self, session):
        """Why the clock inside cannot be believed; None where one of those outside bears it out."""
        seen = self._facts["saved_outside"] = self._saved_outside(session)
        if unclear(seen):
            raise Trouble("from outside, nothing tells whether processes got faster at all: too much noise")
        if borne_out(seen):
            return None
        return "the clock inside says more than is seen from outside: wall %.3g s short" % -seen["wall"][1]

    @staticmethod
    def _saved_outside(session):
        """By clock, `Session.saved`."""
        return {clock: session.saved(clock, PART) for clock in ("wall", "cpu")}

    def _differing(self, session):
        """Why a result is not the base's; each that differs from the others is compared in a process of the base."""
        for name, results in sorted(session.stored.items()):
            for result in results:
                code = next(one["code"] for one in self._task["workloads"] if one["node"] == name)
                report = self._launcher.run("base", "check", {"scripts": {name: code}, "stored": {name: dict(result)}})
                item = report.items.get(name)
                if item is None or item["outcome"] != "passed":
                    said = (item or {}).get("message") or report.why or "it was not compared"
                    return "the result of %s is not the base's: %s" % (name, said[-300:])
        return None


def borne_out(saved):
    """Whether one of the clocks outside bears out what the one inside says."""
    return any(figures and figures[0] > 0 for figures in saved.values())


def unclear(saved):
    """Whether the clocks outside neither bear out nor contradict it."""
    return not borne_out(saved) and any(figures and figures[2] >= 0 for figures in saved.values())


def told(log_gain):
    """A gain as ratios, for the report."""
    return {name: round(math.exp(value), 4) for name, value in zip(("low", "ratio", "high"), log_gain)}


def words(log_gain):
    """'1.23x [1.20, 1.26]'."""
    low, middle, high = (math.exp(value) for value in log_gain)
    return "%.3gx [%.3g, %.3g]" % (middle, low, high)


def machine():
    """Facts of this machine."""
    model = ""
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return {"cpu": model, "cores": os.cpu_count(), "kernel": platform.release(), "load": os.getloadavg()[0]}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
