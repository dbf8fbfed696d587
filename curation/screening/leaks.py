"""Whether what a solver sees, its visible workloads and its problem text, gives the answer away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfquarry.curation.problems.leaks import Fix
from perfquarry.curation.problems.texts import EXEMPT
from perfquarry.curation.screening.found import FoundProblem
from perfquarry.data.records import Problem, Task


def leaked(task: Task, fix: Fix, problems: Sequence[Problem] = ()) -> Iterator[FoundProblem]:
    """Findings: blocking in a visible script, informing in a hidden one and in a text that was rejected for it."""
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
