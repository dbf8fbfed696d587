"""The results of scripts' calls: each of the candidate's is compared, where its bytes are not the base's.

The comparison is the script's own, in a process of the base that computes the result for the same data itself. A
result that is not the expert's either is nobody's fault.
"""

import os
import shutil

from stored import keep


class Results(object):
    """The candidate's results that are not the base's byte by byte, until they are compared.

    Args:
        launcher: starts the processes that compare.
        scripts: texts by name.
        folder: a folder of ours that does not exist yet.
    """

    def __init__(self, launcher, scripts, folder):
        self._launcher = launcher
        self._scripts = scripts
        self._folder = folder
        self._cases = []
        self._known = set()
        self.calls = 0
        """Results of the candidate that were looked at."""
        self.compared = 0
        """Of these, those that a process of the base had to compare."""

    def take(self, base, gold, cand):
        """What partners have taken from their processes: the same calls with the same data, in the same order."""
        for (node, drawn, ours), (_, _, expert), (_, _, theirs) in zip(base.results, gold.results, cand.results):
            self.calls += 1
            known = node, drawn, hash(tuple(sorted(theirs.items())))
            if theirs != ours and known not in self._known:
                self._known.add(known)
                place = os.path.join(self._folder, str(len(self._cases)))
                same = expert == ours
                self._cases.append((node, drawn, keep(place, theirs), "" if same else keep(place + "-gold", expert)))
        for partner in (base, gold, cand):
            del partner.results[:]

    def wrong(self):
        """Why a result that was taken is not the base's; None where all are. All other processes must be dead."""
        cases, self._cases = self._cases, []
        self.compared += len(cases)
        try:
            said = self._compare([(node, drawn, theirs) for node, drawn, theirs, _ in cases])
            failed = [(case, why) for case, why in zip(cases, said) if why]
            excused = self._compare([(node, drawn, expert or theirs) for (node, drawn, theirs, expert), _ in failed])
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
        for ((node, _, _, expert), why), again in zip(failed, excused):
            if not (expert and again):
                return "a result of %s is not the base's: %s" % (node, why[-300:])
        return None

    def _compare(self, cases):
        """Of each (script, number drawn, folder) why it is not what the base computes; None where it is."""
        if not cases:
            return []
        names = ["case-%d" % number for number in range(len(cases))]
        wanted = {
            "both_ways": True,
            "scripts": {name: self._scripts[node] for name, (node, _, _) in zip(names, cases)},
            "draws": {name: drawn for name, (_, drawn, _) in zip(names, cases) if drawn is not None},
            "stored": {name: folder for name, (_, _, folder) in zip(names, cases)},
        }
        report = self._launcher.run("base", wanted)
        found = []
        for name in names:
            item = report.items.get(name) or {}
            passed = item.get("outcome") == "passed"
            found.append(None if passed else item.get("message") or report.why or "it was not compared")
        return found
