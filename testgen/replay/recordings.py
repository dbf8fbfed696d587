"""Calls of the changed functions, recorded while the nearest unit tests run on the base."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from perfquarry.harness.contracts import Limits, ProbeRequest
from perfquarry.harness.probing.recording import Recorded, RecordRequest, Unrecorded
from perfquarry.testgen.case import Case
from perfquarry.testgen.pytest_config import python_files
from perfquarry.testgen.traced import candidate_files

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
    """Runs ever more test files until enough calls were recorded."""
    settings = case.settings.replay
    files = [test.path for test in candidate_files(case.change, case.sides, case.settings.max_test_files)]
    files = [path for path in files if (case.base.tree / path).is_file()]
    found, size = Recordings(), FIRST_FILES
    while files and sum(call.level == 0 for call in found.calls) < ENOUGH and found.may_go_on(settings.seconds):
        _run(case, files[:size], found)
        files, size = files[size:], 2 * size
    return found


def _run(case: Case, files: list[str], found: Recordings) -> None:
    settings = case.settings.replay
    request = ProbeRequest(
        mode="record",
        arguments=files,
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
    found.files += files
    found.wall += report.wall_seconds
    found.waited += report.waited_seconds
    found.late |= report.outcome == "timeout"
    found.calls += report.recorded
    found.missed += report.unrecorded
    found.troubles += [f"{path}: {text[-300:]}" for path, text in report.collect_errors.items()]
    if report.outcome != "finished":
        found.troubles.append(f"the tests' process {report.outcome}: {report.output[-300:]}")
