"""How far reviewers agree: Cohen's κ."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations

from sqlalchemy import Engine, func, select

from perfquarry.curation.review.database import opinions
from perfquarry.data.records import Record


class Agreement(Record):
    """Two reviewers over the candidates that both accepted or rejected."""

    first: str
    second: str
    both: int
    equal: int
    kappa: float | None


def kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Cohen's κ of two raters (Cohen 1960): (p_o - p_e) / (1 - p_e).

    None without pairs, and where both always gave one and the same answer (p_e = 1: κ is not defined).
    """
    if not pairs:
        return None
    observed = sum(a == b for a, b in pairs) / len(pairs)
    first, second = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    expected = sum(first[answer] * second[answer] for answer in first) / len(pairs) ** 2
    return None if expected == 1 else (observed - expected) / (1 - expected)


def agreements(rows: Iterable[tuple[str, str, str]]) -> list[Agreement]:
    """Of all pairs of reviewers with a candidate in common.

    A row is task_id, reviewer, 'accept' or 'reject'.
    """
    by_task: dict[str, dict[str, str]] = defaultdict(dict)
    for task_id, reviewer, action in rows:
        by_task[task_id][reviewer] = action
    answers: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for given in by_task.values():
        for one, other in combinations(sorted(given), 2):
            answers[one, other].append((given[one], given[other]))
    return [
        Agreement(first=one, second=other, both=len(pairs), equal=sum(a == b for a, b in pairs), kappa=kappa(pairs))
        for (one, other), pairs in sorted(answers.items())
    ]


def agreements_in(engine: Engine) -> list[Agreement]:
    """`agreements` of the opinions that stand."""
    query = select(opinions.c.task_id, opinions.c.reviewer, opinions.c.action)
    with engine.connect() as connection:
        rows = connection.execute(query.where(opinions.c.action.in_(["accept", "reject"])))
        return agreements((task_id, reviewer, action) for task_id, reviewer, action in rows)


def progress_in(engine: Engine) -> dict[str, int]:
    """By reviewer the candidates that they accepted or rejected, the busiest first."""
    query = select(opinions.c.reviewer, func.count()).where(opinions.c.action.in_(["accept", "reject"]))
    with engine.connect() as connection:
        rows = connection.execute(
            query.group_by(opinions.c.reviewer).order_by(func.count().desc(), opinions.c.reviewer)
        )
        return {reviewer: number for reviewer, number in rows}  # noqa: C416 - rows are no pairs for mypy
