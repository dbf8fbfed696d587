"""All checks that run no code, on all tasks of a repository together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from perfquarry.curation.patch import files_of
from perfquarry.curation.private import addresses_in, masked, secrets_in
from perfquarry.curation.problems.leaks import Fix
from perfquarry.curation.problems.texts import EXEMPT
from perfquarry.curation.screening.duplicates import Landing, relations
from perfquarry.curation.screening.found import FoundProblem, screened
from perfquarry.curation.screening.trivial import trivial
from perfquarry.curation.screening.weak import nondeterministic, weak
from perfquarry.curation.settings import ScreenSettings
from perfquarry.data.records import Evidence, Problem, Severity, Task

CHECKS = ("duplicates", "leaks", "weak-workloads", "trivial", "non-determinism", "licence", "private-data")
PERMISSIVE = re.compile(
    r"0BSD|Apache-2\.0|BSD-[234]-Clause|BSL-1\.0|CC0-1\.0|HPND|ISC|MIT(?:-0|-CMU)?|NCSA|PostgreSQL|PSF-2\.0|Python-2\.0"
    r"|Unlicense|Zlib|ZPL-2\.1"
)
COPYLEFT = re.compile(r"(?:A?GPL|LGPL|MPL|EPL|EUPL|CDDL)-[\d.]+(?:-only|-or-later|\+)?")
_CLOSED = re.compile(r"(?i)\b(?:proprietary(?: and confidential)?|strictly confidential|do not (?:re)?distribute)\b")
_OPERATORS = re.compile(r"\s+(?:AND|OR|WITH)\s+|[()]")


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


def leaked(task: Task, fix: Fix, problems: Sequence[Problem] = ()) -> Iterator[FoundProblem]:
    """Whether what a solver sees gives the answer away; hidden workloads and rejected texts only inform."""
    for one in task.workloads:
        if leaks := fix.leaks_in(one.code, EXEMPT):
            visible = one.role == "visible"
            text = f"the {one.role} workload contains {'; '.join(leaks[:8])}"
            yield FoundProblem("test-leak", text, one.node, "blocking" if visible else "info", {"leaks": leaks})
    for problem in problems:
        if problem.setting != "plan" and problem.leaks:
            kept = problem.status == "kept"
            text = f"the {problem.setting} text by {problem.author} contains {'; '.join(problem.leaks[:8])}"
            text += "" if kept else "; it was rejected and is not shown"
            subject = f"{problem.setting} ({problem.author})"
            yield FoundProblem("problem-leak", text, subject, "blocking" if kept else "info", {"leaks": problem.leaks})


def licence_of(task: Task) -> Iterator[FoundProblem]:
    """Findings on the licence (an SPDX expression) and on the patch's own words about it."""
    parts = [part.strip() for part in _OPERATORS.split(task.licence) if part.strip()]
    details = {"licence": task.licence}
    if not parts:
        text = "neither the tree nor the registry names a licence: it may not be given to others"
        yield FoundProblem("licence", text, "", "blocking", details)
    elif unknown := [part for part in parts if not (PERMISSIVE.fullmatch(part) or COPYLEFT.fullmatch(part))]:
        text = f"{', '.join(unknown)} is not known to allow that the code is given to others"
        yield FoundProblem("licence", text, "", "blocking", details)
    elif bound := [part for part in parts if COPYLEFT.fullmatch(part)]:
        text = f"{', '.join(bound)}: who passes it on is bound by its terms; say so in the release"
        yield FoundProblem("licence", text, "", "warning", details)
    for file in files_of(task.patch):
        for line in file.added + file.removed:
            if closed := _CLOSED.search(line):
                text = f"a changed line speaks of its licence ({closed[0]}): {line.strip()[:200]}"
                yield FoundProblem("licence", text, file.path, "warning")


def private_of(task: Task, problems: Sequence[Problem] = ()) -> Iterator[FoundProblem]:
    """Findings of everything a task would publish: patches, message, workloads, problem texts."""
    texts = {
        "patch": task.patch,
        "test_patch": task.test_patch,
        "message": f"{task.title}\n{task.message}",
        **{f"workload {one.node}": one.code for one in task.workloads if one.source != "unit-test"},
        **{f"problem {one.setting} ({one.author})": one.text for one in problems},
    }
    for place, text in texts.items():
        addresses = [f"e-mail address {masked(one)}" for one in addresses_in(text)]
        secrets = [f"{one.kind} {masked(one.text)}" for one in secrets_in(text)]
        outcomes: tuple[tuple[list[str], str, Severity], ...] = (
            (secrets, "secret", "blocking"),
            (addresses, "e-mail", "warning"),
        )
        for some, check, severity in outcomes:
            if some:
                names = "; ".join(some[:10])
                more = f"; {len(some) - 10} more" if len(some) > 10 else ""
                yield FoundProblem(check, f"in the {place}: {names}{more}", place, severity, {"count": len(some)})
