"""Unit tests as workloads: those that execute a change, pass on both sides, and are not part of it.

A test must execute a changed line on at least one side (coverage, one process a side), pass
`repeats` times on both sides in fresh processes with other hash seeds, and be defined equally on
both. A test the change left alone that passes at the base and fails at the head, every time,
shows that the change alters behaviour: then no workload of the change is kept, because what
it saves may be work it no longer does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Final

from perfquarry.data.records import Reason, Side, Source, Workload
from perfquarry.harness.contracts import BuiltSide
from perfquarry.testgen.candidates import (
    LONG_SECONDS,
    NEEDS,
    Candidate,
    best,
    choose,
    choose_dense,
    without_slow,
    without_twins,
)
from perfquarry.testgen.case import Case
from perfquarry.testgen.definitions import NodeId
from perfquarry.testgen.executing import Executing
from perfquarry.testgen.reach import TestFile, unparsable_tests
from perfquarry.testgen.runs import Results, Runner
from perfquarry.testgen.settings import GenerateSettings
from perfquarry.testgen.targets import targets_of
from perfquarry.testgen.traced import candidate_files, content_of

SOURCE: Final = "unit-test"
FIRST_FILES = 3
"""Test files of the first coverage run; each further run takes twice as many."""
NEAR_FROM, FAR_FROM = 6, 3
"""Usable tests with which no further test file is tried: equally near ones, and farther ones."""
FURTHER = 5
"""Times `max_test_files` that are tried where nothing executes the change yet, in a quarter of the search's time."""
TRACED = 5.0
"""Times that a test takes longer while it is traced, about."""
PROFILED = 64
"""Most candidates profiled."""
PROFILE_SEED, CHECK_SEED = 2, 3
"""Hash seeds: each process of a side has its own, the coverage run 1, further checks the next ones."""
SPARE = 6
"""Candidates checked besides the workloads wanted."""
MAX_REJECTED = 50
# The first of them that any executing test shows says most about a change.
_INFORMATIVE = (
    Reason.FAILS_ON_HEAD,
    Reason.FLAKY,
    Reason.TEST_TIMEOUT,
    Reason.FAILS_ON_BASE,
    *NEEDS,
    Reason.TEST_CHANGED,
)


class UnitTests:
    """Unit tests as a source of workloads."""

    name: Source = SOURCE

    def workloads(self, case: Case) -> list[Workload]:
        """Workloads of a change: kept ones best first, then at most 50 rejected ones, each with its reason.

        A change without any kept workload has one more rejected row, the first, with an empty
        `code` and the most informative reason. May be called from several threads.

        Raises:
            SandboxUnavailable: the sandbox itself could not start.
        """
        settings, rows = case.settings, _Rows(case)
        if not case.changes_code:
            return [rows.none(Reason.NO_TEST_EXECUTES_CHANGE, case.why_unchanged)]
        files = candidate_files(case.change, case.sides, settings.max_test_files, FURTHER)
        if not files:
            return [rows.none(Reason.NO_TESTS, _why_no_tests(case.sides["base"]))]
        with ThreadPoolExecutor(max_workers=case.jobs) as pool:
            runner = Runner(case.prober, case.sides, case.tools, settings, pool)
            executing = Executing(runner, case.trace, native=case.changes_native)
            candidates = _search(executing, files, settings)
            if executed := [one for one in candidates if one.hits]:
                case.seen.files[:] = executing.files
                case.seen.nodes[:] = [one.node for one in sorted(executed, key=_most_lines) if _passes_at_base(one)]
            if not candidates:
                return [rows.none(*executing.nothing())]
            _check(candidates, runner, case.trace.functions)
        return rows.all(candidates)


def any_passes(case: Case, nodes: Sequence[str]) -> bool:
    """Whether one of these tests passes at the base, in one process.

    Raises:
        SandboxUnavailable: the sandbox itself could not start.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        runner = Runner(case.prober, case.sides, case.tools, case.settings, pool)
        return any(
            item.outcome == "passed" for item in runner.start("base", "check", nodes, CHECK_SEED).result().values()
        )


def _most_lines(candidate: Candidate) -> int:
    return -len(candidate.lines)


def _passes_at_base(candidate: Candidate) -> bool:
    item = candidate.first.get("base")
    return item is not None and item.outcome == "passed"


def _why_no_tests(base: BuiltSide) -> str:
    unparsable = unparsable_tests(base.tree, base.test_paths)
    if unparsable:
        more = f" and {len(unparsable) - 1} more" if len(unparsable) > 1 else ""
        return f"test files are not of Python 3: {unparsable[0]}{more}; no other one imports the changed modules"
    return "no test file imports the changed modules"


def _search(executing: Executing, files: Sequence[TestFile], settings: GenerateSettings) -> list[Candidate]:
    """Runs ever more test files until enough tests execute the change, and each changed function is executed.

    Fewer tests are enough before going farther, and one after `settings.search_seconds`. Beyond
    `settings.max_test_files` a test must be missing altogether, and time be left.
    """
    most = min(settings.max_test_files, len(files))
    nearest = min(test.distance for test in files)
    near = max(index for index, test in enumerate(files) if test.distance == nearest) + 1
    start, size = 0, FIRST_FILES
    candidates: list[Candidate] = []

    def is_enough(wanted: int) -> bool:
        usable = sum(one.reason is None for one in candidates)
        if usable and executing.seconds > settings.search_seconds:
            return True
        return usable >= min(settings.max_workloads, wanted) and not executing.missed(candidates)

    def goes_on() -> bool:
        if start < most:
            return not (start and is_enough(FAR_FROM if start >= near else NEAR_FROM))
        return start < len(files) and not candidates and executing.seconds < settings.search_seconds / 4

    while goes_on():
        end = min(start + size, near if start < near else len(files), most if start < most else len(files))
        paths = [test.path for test in files[start:end]]
        executing.run(paths)
        candidates = executing.candidates()
        if (slow := executing.unfinished(paths)) and not is_enough(NEAR_FROM):
            executing.run(slow)
            candidates = executing.candidates()
        start, size = end, 2 * size
    return candidates


def _check(candidates: Sequence[Candidate], runner: Runner, functions: frozenset[str]) -> None:
    """Profiles the usable candidates, and runs the best of them until each passed often enough.

    A pass while lines were traced counts as one of the repeats. A failure then may be the
    tracer's, so such tests start anew: those that fail only at the head always, the
    others where usable tests are few.
    """
    wanted = runner.settings.max_workloads
    passing = [one for one in candidates if one.reason is None]
    passing = passing if functions else without_twins(passing)
    usable = choose_dense(without_slow(passing, TRACED * LONG_SECONDS), PROFILED)
    doubtful = choose_dense((one for one in candidates if one.may_be_better(len(usable) < wanted)), wanted)
    for candidate in doubtful:
        candidate.restart()
    profiling = runner.start("base", "profile", [one.node for one in [*usable, *doubtful]], PROFILE_SEED)
    few = len(usable) <= wanted + SPARE  # all of them are checked, whatever the profile says
    started = _start_checks(runner, "head", [*usable, *doubtful]) if few else []
    profiled = profiling.result()
    for candidate in [*usable, *doubtful]:
        candidate.take_profile(profiled[candidate.node], functions)
    chosen = usable if few else choose(usable, wanted + SPARE)
    started += _start_checks(runner, "base", [*chosen, *doubtful])
    started += [] if few else _start_checks(runner, "head", [*chosen, *doubtful])
    for side, running in started:
        items = running.result()
        for candidate in [*chosen, *doubtful]:
            candidate.runs[side] += [items[candidate.node]] if candidate.node in items else []
    for candidate in [*chosen, *doubtful]:
        candidate.settle()
        candidate.breaks = candidate.reason == Reason.FAILS_ON_HEAD


def _start_checks(runner: Runner, side: Side, candidates: Sequence[Candidate]) -> list[tuple[Side, Results]]:
    """Starts as many runs as the candidates still have to pass on a side, at least one without tracer or profiler."""
    needed = {one.node: max(1, runner.settings.repeats - one.passes(side)) for one in candidates}
    rounds = [[node for node in needed if needed[node] > number] for number in range(runner.settings.repeats)]
    return [(side, runner.start(side, "check", nodes, CHECK_SEED + at)) for at, nodes in enumerate(rounds) if nodes]


def _calls(candidate: Candidate, tree: Path) -> list[str]:
    """Realistic targets of one test."""
    place = NodeId.parse(candidate.node)
    content = content_of(tree, place.path)
    return targets_of(candidate.profile, content, place.scopes, tree) if candidate.profile else []


class _Rows:
    """Makes the rows of one change."""

    def __init__(self, case: Case) -> None:
        self._case = case
        fixtures = [file.path for file in case.change.files if PurePosixPath(file.path).name == "conftest.py"]
        self._note = f"the change modifies {', '.join(fixtures)}; " if fixtures else ""

    def all(self, candidates: Sequence[Candidate]) -> list[Workload]:
        """Rows of all candidates that were checked or rejected."""
        rejected = [one for one in candidates if one.reason is not None]
        rejected.sort(key=lambda one: (-len(one.lines), one.node))
        broken = any(one.breaks for one in candidates)
        limit = self._case.settings.max_workloads
        kept = [] if broken else best([one for one in candidates if one.is_checked], limit)
        found = [self.kept(one, _calls(one, self._case.base.tree)) for one in kept]
        return (found or [self.summary(rejected)]) + [self.rejected(one) for one in rejected[:MAX_REJECTED]]

    def none(self, reason: Reason, detail: str) -> Workload:
        """The row of a change without workloads."""
        return self._case.row(SOURCE, reason=reason, detail=detail)

    def kept(self, candidate: Candidate, calls: list[str]) -> Workload:
        """The row of a test that is a workload."""
        what = "of the change is executed, whose other half is native" if self._case.trace else "changed"
        why = "" if candidate.hits else f"no Python line {what}: chosen by imports, without coverage"
        share = max(candidate.shares.values(), default=None)
        figures = {"hits": candidate.hits, "seconds": candidate.seconds, "share": share, "calls": calls}
        return self._case.row(SOURCE, candidate.node, **figures, detail=self._note + why)

    def rejected(self, candidate: Candidate) -> Workload:
        """The row of a test that executes the change and is no workload."""
        detail = self._note + candidate.detail
        return self._case.row(SOURCE, candidate.node, hits=candidate.hits, reason=candidate.reason, detail=detail)

    def summary(self, rejected: Sequence[Candidate]) -> Workload:
        """The row of a change all of whose executing tests were rejected, with the most informative reason."""
        reason = next(reason for reason in _INFORMATIVE if any(one.reason == reason for one in rejected))
        count = Counter(one.reason for one in rejected)
        tallies = ", ".join(f"{number} {name}" for name, number in count.most_common())
        first = next(one for one in rejected if one.reason == reason)
        return self.none(reason, f"{tallies}; {first.node}: {first.detail}")
