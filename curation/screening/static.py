"""All checks that run no code, on all tasks of a repository together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from perfquarry.curation.problems.leaks import Fix
from perfquarry.curation.screening.duplicates import Landing, relations
from perfquarry.curation.screening.found import FoundProblem, screened
from perfquarry.curation.screening.leaks import leaked
from perfquarry.curation.screening.licences import licence_of
from perfquarry.curation.screening.private import private_of
from perfquarry.curation.screening.trivial import trivial
from perfquarry.curation.screening.weak import nondeterministic, weak
from perfquarry.data.records import Evidence, Problem, Task
from perfquarry.data.settings import ScreenSettings

CHECKS = ("duplicates", "leaks", "weak-workloads", "trivial", "non-determinism", "licence", "private-data")


@dataclass(frozen=True)
class Subject:
    """A task with what the checks look at besides."""

    task: Task
    fix: Fix
    evidence: Sequence[Evidence] = ()
    """Of all workloads of its change, accepted or not."""
    problems: Sequence[Problem] = ()
    tests: Mapping[str, str] = field(default_factory=dict)
    """Source of its unit tests at the base, by node."""


def look(
    subjects: Sequence[Subject], history: Iterable[Landing], settings: ScreenSettings
) -> dict[str, list[FoundProblem]]:
    """Findings by task id, the row that it was screened last. No code runs."""
    found: dict[str, list[FoundProblem]] = relations([one.task for one in subjects], history, settings)
    for one in subjects:
        task = one.task
        found[task.task_id] += [
            *leaked(task, one.fix, one.problems),
            *weak(task, one.evidence, settings),
            *trivial(task),
            *nondeterministic(task, one.evidence, one.tests),
            *licence_of(task),
            *private_of(task, one.problems),
            screened("static", CHECKS),
        ]
    return found
