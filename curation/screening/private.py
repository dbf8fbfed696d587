"""Secrets and e-mail addresses in what a task would publish."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfquarry.curation.private import addresses_in, masked, secrets_in
from perfquarry.curation.screening.found import FoundProblem
from perfquarry.data.records import Problem, Severity, Task


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
