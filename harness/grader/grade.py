"""Grades the change of a solver: `python -E -s -S grade.py task.json`; standard library, Python 3.6 to 3.14.

Writes `reward.json` ({"reward": 0 or 1}), `reward.txt` (0 or 1) and `grading.json` (why) into the folder of logs. Where
the machine or we failed, no reward is written and the exit code is 1: nobody is graded by an accident.

1 when all of this holds:
- tests that pass on the base and on the expert's side pass, and workloads' results equal the base's;
- in turns on one core (`pairs`), it is faster than the base at 95 %, and its harmonic-mean speedup is at least
  `threshold` (0.95) of the expert's, measured in the same pairs (GSO's Opt), and at least half of its gain;
- first calls gain half of what the expert's first calls gain (log scale), where these gain: a memo does not;
- both hold for the hidden workloads alone, too, where there are any;
- turns save, seen from outside, at least half of what the clock inside says (`outside`).

`code` in the report: not_graded; nothing_changed, tests_fail, workload_fails, wrong_result, not_faster, below_expert,
later_calls_only, contradicted (by the clocks outside); rewarded.

A verdict is given as soon as it is clear at 95 %, after six pairs at least. Where the most pairs leave it open, the
middle of the interval decides, and the report says so (`undecided_at_95`).
"""

import json
import os
import platform
import shutil
import sys
import time

_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [_HERE, os.path.join(os.path.dirname(_HERE), "alternation")]

from candidate import make_sides  # noqa: E402
from guard import reasons  # noqa: E402
from launch import FOLDERS, Launcher  # noqa: E402
from pairs import Failed, GradingSession  # noqa: E402
from twins import Twins  # noqa: E402
from users import Trouble, remove_folder  # noqa: E402
from verdict import RewardRules  # noqa: E402

TRIES = 2
"""Times that a test may fail before it counts."""


def main(path):
    """Grades, and writes what came out; the exit code."""
    here = os.path.dirname(os.path.abspath(path))
    with open(path) as file:
        task = json.load(file)
    if os.environ.get("PERFQUARRY_CORES"):
        task["cores"] = [int(core) for core in os.environ["PERFQUARRY_CORES"].split(",")]
    logs = task["logs"]
    os.makedirs(logs, exist_ok=True)
    for name in ("reward.json", "reward.txt"):  # what a solver left there would count where the grading fails
        if os.path.lexists(os.path.join(logs, name)):
            os.remove(os.path.join(logs, name))
    begin, facts = time.time(), {"machine": machine(), "python": platform.python_version()}
    try:
        reward, code, why = Grading(task, here, facts).verdict()
        facts.update(reward=reward, code=code, why=why)
    except Trouble as trouble:
        facts.update(reward=None, code="not_graded", why="not graded: %s" % trouble)
    facts["seconds"] = round(time.time() - begin, 1)
    with open(os.path.join(logs, "grading.json"), "w") as file:
        json.dump(facts, file, indent=1)
    if facts["reward"] is not None:
        with open(os.path.join(logs, "reward.json"), "w") as file:
            json.dump({"reward": facts["reward"]}, file)
        with open(os.path.join(logs, "reward.txt"), "w") as file:
            file.write("%d\n" % facts["reward"])
    said = "reward %s: %s" % (facts["reward"], facts["why"])
    print(said.encode("ascii", "backslashreplace").decode())  # words of a candidate may be none that can be printed
    return 1 if facts["reward"] is None else 0


class Grading(object):
    """One grading, from the trees to the verdict; `facts` gets what was seen."""

    def __init__(self, task, here, facts):
        self._task = task
        self._here = here
        self._work = task["work"]
        self._facts = facts
        self._hidden = {one["node"] for one in task["workloads"] if one["hidden"]}
        self._launcher = self._twins = None
        self._fail = set()

    def verdict(self):
        """(reward, code, why): the code is for programs; why is for people."""
        remove_folder(self._work)
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
            return 0, "nothing_changed", str(error)
        self._facts.update(changed=changed, left_out=left_out)
        if not changed:
            return 0, "nothing_changed", "nothing that counts was changed"
        self._facts["reasons_to_look"] = self._reasons(changed)
        self._launcher = Launcher(self._task, self._work)
        self._twins = Twins(
            self._launcher.tree("base"), [one["node"] for one in self._task["workloads"] if not one["script"]]
        )
        for role in FOLDERS:
            self._twins.put(self._launcher.tree(role))
        try:
            return self._correctness() or self._speed()
        finally:
            self._launcher.close()

    def _reasons(self, changed):
        """Reasons to look at the change, by file: for a judge or a person, nothing is decided by them."""
        found = {path: reasons(path, self._source("base", path), self._source("cand", path)) for path in changed}
        return {path: why for path, why in found.items() if why}

    def _source(self, side, path):
        try:
            with open(os.path.join(self._work, side, path), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return b""

    def _correctness(self):
        """None, or (0, code, why): a test fails that passes on the base and on the expert's side."""
        if not self._task["tests"]:
            return None
        base, gold = self._expected("base"), self._expected("gold")
        both = passed(base) & passed(gold)
        self._fail = {node for node, twin in self._twins.nodes.items() if failed(base, twin) and failed(gold, twin)}
        self._facts.update(tests=len(both), twins=len(self._fail))
        if not both:
            if not self._scripts_decide():
                raise Trouble("no test passes on the base and on the expert's side")
            return None  # what scripts return is compared with the base: the tests were only chosen by their names
        self._leave_out_unless(both)
        left = both
        for _ in range(TRIES):  # a test that fails now and then is not the candidate's fault
            try:
                found = self._outcomes("cand")
            except Trouble as trouble:
                why = str(trouble)
                continue
            left = sorted(set(left) - passed(found))
            forged = sorted(node for node in self._fail if not failed(found, self._twins.nodes[node]))
            if left:
                why = "%d of %d tests fail: %s" % (len(left), len(both), ", ".join(left[:5]))
            elif forged:
                why = "a test that must fail is not said to: a twin of %s" % forged[0]
            else:
                return None
        return 0, "tests_fail", why

    def _leave_out_unless(self, both):
        """Times no test that does not pass on the base and on the expert's side: it asks for what only one of them has.

        Raises:
            Trouble: no workload is left.
        """
        workloads = self._task["workloads"]
        left = [one for one in workloads if one["script"] or one["node"] in both]
        if not left:
            raise Trouble("none of the timed tests passes on the base and on the expert's side")
        if len(left) < len(workloads):
            self._facts["not_timed"] = sorted(one["node"] for one in workloads if one not in left)
            self._task = dict(self._task, workloads=left)

    def _scripts_decide(self):
        """Whether what workloads return says whether a candidate is right, whatever tests do."""
        return all(one["script"] for one in self._task["workloads"])

    def _expected(self, side):
        """Outcomes on a side of ours; none where its tests never run and scripts decide.

        A package that pytest itself imports can keep pytest from starting, on every side of the task.
        """
        for _ in range(TRIES):
            try:
                return self._outcomes(side)
            except Trouble as trouble:
                seen = trouble
        if not self._scripts_decide():
            raise seen
        self._facts.setdefault("tests_do_not_run", {})[side] = str(seen)
        return {}

    def _outcomes(self, side):
        """Outcomes of tests and twins by node, in a process of a side."""
        wanted = self._task["tests"] + sorted(self._twins.nodes.values())
        report = self._launcher.run(side, {"arguments": wanted})
        if report.why:
            raise Trouble("the tests of %s: %s" % (side, report.why))
        return {node: item["outcome"] for node, item in report.items.items()}

    def _speed(self):
        schedule = self._task["schedule"]
        session = GradingSession(self._task, self._launcher, {node: self._twins.nodes[node] for node in self._fail})
        verdict = RewardRules(session, self._hidden, self._task["threshold"], self._facts)
        try:
            session.add(schedule["pairs"])
            while len(session.pairs) < schedule["most_pairs"] and not verdict.is_clear():
                session.add(1)
        except Failed as failed:
            return 0, failed.code, str(failed)
        finally:
            self._facts.update(core=self._launcher.core, pairs=len(session.pairs), begun_anew=session.stumbles)
            self._facts.update(results=session.results.calls, results_compared=session.results.compared)
            self._facts["workloads"] = session.kinds()
            self._facts["pair_values"] = session.raw()
        short = verdict.shortfall()
        return (0,) + short if short else (1, "rewarded", "faster than the base, and as fast as the expert's change")


def passed(outcomes):
    """Nodes that passed."""
    return {node for node, outcome in outcomes.items() if outcome == "passed"}


def failed(outcomes, node):
    """Whether a node ran and failed."""
    return outcomes.get(node) == "failed"


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
    asked = os.path.abspath(sys.argv[1])
    os.chdir("/")  # it may be started in the solver's folder
    sys.exit(main(asked))
