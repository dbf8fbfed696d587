"""Calls of the changed functions, recorded while the nearest unit tests run on the base."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from perfquarry.harness.contracts import Limits, ProbeRequest
from perfquarry.harness.probing.recording import Recorded, RecordRequest, Unrecorded
from perfquarry.testgen.case import Case
from perfquarry.testgen.definitions import NodeId
from perfquarry.testgen.pytest_config import python_files
from perfquarry.testgen.traced import candidate_files

TESTS = 60
"""Tests of one run."""
FIRST_FILES = 2
"""Test files of the first run; each further run takes twice as many."""
LONGEST = 4.0
"""Times the seconds of recording that it may take by the wall clock."""
ENOUGH = 12
"""Calls of the nearest functions with which no further test file is tried."""
SEED = 1


@dataclass
class Recordings:
    """What the runs recorded, and what they could not."""

    calls: list[Recorded] = field(default_factory=list)
    missed: list[Unrecorded] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    """Processes that did not end well, and files that cannot be collected."""
    late: bool = False
    """Whether a time limit ended one of the processes."""
    wall: float = 0.0
    """Seconds that the runs took."""
    waited: float = 0.0
    """Seconds of these for which they had no processor."""

    def may_go_on(self, seconds: float) -> bool:
        """Whether less than these seconds have passed, those not counted for which the runs had no processor."""
        return self.wall - self.waited < seconds and self.wall < LONGEST * seconds

    def reasons(self) -> str:
        """Why calls were not recorded, most frequent first."""
        counts: Counter[tuple[str, str]] = Counter()
        for one in self.missed:
            counts[one.function, one.reason] += one.count
        lines = [f"{name or 'tests'}: {why} ({count})" for (name, why), count in counts.most_common(10)]
        return "; ".join([*lines, *self.troubles[:3]])


def record(case: Case) -> Recordings:
    """Runs the tests that are known to execute the change, then test files that did not run yet, until enough calls
    were recorded.
    """
    found = Recordings()
    for arguments in _arguments(case):
        if sum(call.level == 0 for call in found.calls) >= ENOUGH or not found.may_go_on(case.settings.replay.seconds):
            break
        _run(case, arguments, found)
    return found


def _arguments(case: Case) -> Iterator[list[str]]:
    """Of one run after the other: tests, then files."""
    yield from (case.seen.nodes[at : at + TESTS] for at in range(0, len(case.seen.nodes), TESTS))
    files = [test.path for test in candidate_files(case.change, case.sides, case.settings.max_test_files)]
    files = [path for path in files if path not in case.seen.files and (case.base.tree / path).is_file()]
    size = FIRST_FILES
    while files:
        yield files[:size]
        files, size = files[size:], 2 * size


def _run(case: Case, arguments: list[str], found: Recordings) -> None:
    settings = case.settings.replay
    request = ProbeRequest(
        mode="record",
        arguments=arguments,
        test_timeout=case.settings.test_timeout,
        files_seconds=settings.seconds / 2,  # of CPU: of waiting, twice as many
        record=RecordRequest(
            functions=sorted(case.trace.functions),
            lines={target.path: sorted(frozenset().union(*target.spans.values())) for target in case.trace.base},
            test_files=list(python_files(case.base.tree)),
            calls=settings.calls,
            test_calls=settings.test_calls,
            values=settings.values,
            bytes=settings.call_bytes,
            seconds=settings.seconds,
            test_seconds=settings.test_seconds,
        ),
    )
    limits = Limits(wall_seconds=case.settings.timeout, memory_bytes=case.settings.memory_bytes)
    report = case.prober.run(case.base, request, limits=limits, hash_seed=SEED)
    paths = [NodeId.parse(one).path for one in arguments]
    found.files += [path for path in dict.fromkeys(paths) if path not in found.files]
    found.wall += report.wall_seconds
    found.waited += report.waited_seconds
    found.late |= report.outcome == "timeout"
    found.calls += report.recorded
    found.missed += report.unrecorded
    found.troubles += [f"{path}: {text[-300:]}" for path, text in report.collect_errors.items()]
    if report.outcome != "finished":
        found.troubles.append(f"the tests' process {report.outcome}: {report.output[-300:]}")
