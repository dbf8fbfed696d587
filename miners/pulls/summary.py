"""What the table of pull requests holds, and how many of them each policy keeps."""

from __future__ import annotations

from collections import Counter

import pyarrow.compute as pc
from pydantic import Field

from perfquarry.data.own_rows import OwnRows
from perfquarry.data.records import Issue, Policy, Record
from perfquarry.miners.pulls.joined import plain_pulls
from perfquarry.miners.pulls.policies import COLUMNS, POLICIES, rejection


class Summary(Record):
    """What the table holds."""

    repository: str
    states: dict[str, int]
    origins: dict[str, int]
    issues: int = Field(description="Issues read.")
    with_results: int = Field(description="Pull requests in whose discussion a measurement is quoted.")
    policies: dict[str, dict[str, int]] = Field(description="By policy: 'kept', and the others by reason.")


def summary(rows: OwnRows, labels: str, places: tuple[str, ...]) -> Summary:
    """Counts over the newest row of each pull request: GitHub's before git's."""
    states: Counter[str] = Counter()
    origins: Counter[str] = Counter()
    policies: dict[Policy, Counter[str]] = {policy: Counter() for policy in POLICIES if policy not in ("off", "all")}
    measured = 0
    for row in plain_pulls(rows, (*COLUMNS, "origin", "results")):
        states[row["state"]] += 1
        origins[row["origin"]] += 1
        measured += bool(row["results"])
        for policy, counts in policies.items():
            counts[str(rejection(row, policy, labels, places) or "kept")] += 1
    return Summary(
        repository=rows.name,
        states=dict(states.most_common()),
        origins=dict(origins),
        issues=rows.store.count(Issue, rows.name, where=pc.field("status") == "kept", **rows.where("pulls")),
        with_results=measured,
        policies={policy: dict(counts.most_common()) for policy, counts in policies.items()},
    )
