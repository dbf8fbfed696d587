"""Tests that execute a change, found by running the nearest test files on both sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from perfquarry.data.records import Reason, Side
from perfquarry.harness.contracts import ProbeItem, ProbeReport
from perfquarry.testgen.candidates import Candidate, need_of
from perfquarry.testgen.definitions import NodeId, definitions_of, docstring_of, has_examples
from perfquarry.testgen.pytest_config import Naming
from perfquarry.testgen.runs import Runner, missing_item
from perfquarry.testgen.traced import SIDES, Trace, content_of

WRITING = 0.1
"""Tests that write into their tree, by those that pass: with more of them, copies of the tree are worth a search."""
_FAILS: dict[Side, Reason] = {"base": Reason.FAILS_ON_BASE, "head": Reason.FAILS_ON_HEAD}


class Executing:
    """What the runs of test files saw so far.

    Each file runs once a side, traced. Without lines to trace (`trace` is empty: native
    code), it runs untraced and every test of it counts; so it does where native code changed, too, and no test executes
    a changed line of Python: that is often the twin for where nothing can be compiled.

    Args:
        runner: runs files of tests.
        trace: the lines.
        native: native code changed, too.
    """

    def __init__(self, runner: Runner, trace: Trace, *, native: bool = False) -> None:
        self._runner = runner
        self._trees = {side: built.tree for side, built in runner.sides.items()}
        self._naming = {side: Naming.of(tree) for side, tree in self._trees.items()}
        self._trace, self._native = trace, native
        self.files: list[str] = []
        self._items: dict[Side, dict[str, ProbeItem]] = {"base": {}, "head": {}}
        self._reports: dict[Side, list[ProbeReport]] = {"base": [], "head": []}
        self._not_begun: dict[str, int] = {}
        """Tests that were not begun, by file: running it took too long. Of the side that has more of them."""

    def run(self, files: Sequence[str]) -> None:
        """Runs test files, on the sides that have them: of those that ran before, the tests that were not begun."""
        present = {side: [path for path in files if (self._trees[side] / path).is_file()] for side in SIDES}
        include = {side: [target.path for target in self._trace.of(side)] for side in SIDES}
        again = set(self.files).intersection(files)
        begun = {side: [node for node in self._items[side] if NodeId.parse(node).path in again] for side in SIDES}
        reports = self._runner.files("coverage" if self._trace else "check", present, include, begun)
        self.files += [path for path in files if path not in again]
        for path in files:
            self._not_begun.pop(path, None)
        for side, report in reports.items():
            self._reports[side].append(report)
            self._items[side].update((item.node, item) for item in report.items)
            for path, count in report.not_begun.items():
                self._not_begun[path] = max(count, self._not_begun.get(path, 0))

    def unfinished(self, files: Sequence[str]) -> list[str]:
        """Those of which not all tests were begun: running them took too long."""
        return [path for path in files if path in self._not_begun]

    @property
    def seconds(self) -> float:
        """CPU seconds of all runs, of the slower side each."""
        pairs = zip(self._reports["base"], self._reports["head"], strict=True)
        return sum(max(base.cpu_seconds, head.cpu_seconds) for base, head in pairs)

    def candidates(self) -> list[Candidate]:
        """Tests that execute a changed line and are not skipped, with what speaks against each so far."""
        found = []
        for node in dict.fromkeys([*self._items["base"], *self._items["head"]]):
            first = {side: self._items[side][node] for side in SIDES if node in self._items[side]}
            hits = [hit for side, item in first.items() for hit in self._trace.hits(side, item.lines)]
            begun = len(first) == len(SIDES) or NodeId.parse(node).path not in self._not_begun
            if begun and all(item.outcome != "skipped" for item in first.values()):
                found.append(Candidate(node, hits, first))
        executing = [candidate for candidate in found if candidate.hits]
        if self._trace and (executing or not self._native):
            found = executing
        for candidate in found:
            self._judge(candidate)
        return found

    def missed(self, candidates: Iterable[Candidate]) -> frozenset[str]:
        """Changed functions that no usable test of these executes."""
        usable = (one.hits for one in candidates if one.reason is None)
        return self._trace.wanted.difference(*map(self._trace.executed, usable))

    def nothing(self) -> tuple[Reason, str]:
        """Why there is no candidate at all, with the words for it."""
        tried = f"{len(self.files)} test files tried: {', '.join(self.files)}"
        for side in SIDES:
            errors = {path: text for report in self._reports[side] for path, text in report.collect_errors.items()}
            other = {NodeId.parse(node).path for node in self._items["head" if side == "base" else "base"]}
            if errors and (not self._items[side] or errors.keys() & other):
                path, text = next(iter(errors.items()))
                return need_of(text) or _FAILS[side], f"{path} cannot be collected at the {side}: {text}\n{tried}"
        for side in SIDES:
            ended = next((report for report in self._reports[side] if report.outcome != "finished"), None)
            if ended is not None:  # the lines its tests executed are not known
                late = "timeout" in [ended.outcome, *(item.outcome for item in ended.items)]
                reason = Reason.TEST_TIMEOUT if late else need_of(ended.output) or _FAILS[side]
                return reason, f"the tests' process at the {side} {ended.outcome}: {ended.output}\n{tried}"
        for side in SIDES:
            fatal = next((item for item in self._items[side].values() if item.outcome == "crashed"), None)
            if fatal is not None:
                reason = need_of(fatal.message) or _FAILS[side]
                return reason, f"{fatal.node} ends its process at the {side}: {fatal.message}\n{tried}"
        count = len(self._items["base"].keys() | self._items["head"].keys())
        reason, missing = self._failing()
        missed = ", ".join(sorted(self.missed(())))
        slow = ""
        if self._not_begun:
            slow = f"{sum(self._not_begun.values())} more were not begun in slow files: {', '.join(self._not_begun)}"
            reason = Reason.TEST_TIMEOUT if reason == Reason.NO_TEST_EXECUTES_CHANGE else reason
        return reason, "; ".join(
            filter(None, [f"{count} tests ran", slow, missing, missed and f"not executed: {missed}", tried])
        )

    def _failing(self) -> tuple[Reason, str]:
        """What speaks of the tests that did not run to their end, with the words of the first of them.

        What is missing for most of those for which something is, more tests than pass, or a whole file that is more
        likely to execute the change than those of which a test passes. A folder to write into is what they can have:
        that a tenth looks for one is enough to say so. Else that they fail, where more fail than pass.
        What these would execute is not known. Examples in docstrings say nothing where there are other tests: many show
        what Python 2 printed.
        """
        tree, naming = self._trees["base"], self._naming["base"]
        written = {path for path in self.files if not has_examples(content_of(tree, path), naming)}
        items = self._items["base"]
        items = {node: item for node, item in items.items() if NodeId.parse(node).path in written} or items
        passing = [NodeId.parse(node).path for node, item in items.items() if item.outcome == "passed"]
        passed, rank = len(passing), {path: number for number, path in enumerate(self.files)}
        errors = {path: text for report in self._reports["base"] for path, text in report.collect_errors.items()}
        files = errors | {path: text for report in self._reports["base"] for path, text in report.collect_skips.items()}
        said = {node: item.message for node, item in items.items() if item.outcome != "passed"} | files
        if not said:
            return Reason.NO_TEST_EXECUTES_CHANGE, ""
        needs = {node: need for node, text in said.items() if (need := need_of(text))}
        best = min((rank[path] for path in passing if path in rank), default=len(rank))
        likelier = {path for path in files if rank.get(path, 0) < best}
        counts = Counter(needs.values())
        write = counts[Reason.NEEDS_TREE] > WRITING * passed
        if write or len(needs) > passed or likelier & needs.keys():
            reason = Reason.NEEDS_TREE if write else counts.most_common(1)[0][0]
            first = next(node for node, need in needs.items() if need == reason)
            what = f"{counts[reason]} of {len(said)} that failed or were skipped miss something"
            return reason, f"{what}, first {first}: {said[first]}"
        failed = [node for node, item in items.items() if item.outcome not in ("passed", "skipped")] + [*errors]
        fails = len(failed) > passed or not likelier.isdisjoint(errors)
        first = (failed or list(said))[0]
        reason = Reason.FAILS_ON_BASE if fails else Reason.NO_TEST_EXECUTES_CHANGE
        return reason, f"{len(said)} failed or were skipped, first {first}: {said[first]}"

    def _judge(self, candidate: Candidate) -> None:
        """Sets what the first run and the sources say against a test."""
        path = NodeId.parse(candidate.node).path
        same_file, untouched = self._compared(candidate.node)
        for side in SIDES:
            error = next((text for report in self._reports[side] if (text := report.collect_errors.get(path))), None)
            if error is not None and side not in candidate.first:
                candidate.reject(_FAILS[side], f"{path} cannot be collected at the {side}: {error}")
                candidate.breaks = side == "head" and same_file
                return
        if not untouched:
            candidate.reject(Reason.TEST_CHANGED, "the change modifies this test or what it uses in its file")
            return
        for side in SIDES:
            if side not in candidate.first:
                ended = [report for report in self._reports[side] if report.outcome != "finished"]
                candidate.first[side] = missing_item(candidate.node, (ended or self._reports[side])[-1])
        candidate.settle()

    def _compared(self, node: str) -> tuple[bool, bool]:
        """Whether the test's file, and whether all that the test consists of within it, is equal on both sides."""
        place = NodeId.parse(node)
        base, head = (content_of(self._trees[side], place.path) for side in SIDES)
        if base == head:
            return True, True
        if has_examples(base, self._naming["base"]):
            before, after = (docstring_of(content, node) for content in (base, head))
            return False, before is not None and before == after
        old, new = definitions_of(base), definitions_of(head)
        before = old.fingerprint(place.scopes, self._naming["base"]) if old else None
        after = new.fingerprint(place.scopes, self._naming["head"]) if new else None
        return False, before is not None and before == after
