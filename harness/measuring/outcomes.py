"""How each workload ended in a process of the probe."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from perfquarry.harness.contracts import ProbeItem, ProbeReport

Outcome = Literal["passed", "failed", "timeout", "crashed"]


def outcomes_of(report: ProbeReport, nodes: Iterable[str]) -> dict[str, Outcome]:
    """How each workload ended in a process; those of which nothing is known, since another one ended it, are left out.

    When the report names no test that was running as the process ended, none can be cleared.
    """
    items = {item.node: item for item in report.items}
    unknown: Outcome = "timeout" if report.outcome == "timeout" else "crashed"
    culprit = any(item.outcome in ("timeout", "crashed") for item in report.items)
    found: dict[str, Outcome] = {}
    for node in nodes:
        item = items.get(node)
        if item is not None:
            found[node] = _outcome(item)
        elif report.outcome == "finished":
            found[node] = "failed"
        elif not culprit:
            found[node] = unknown
    return found


def _outcome(item: ProbeItem) -> Outcome:
    if item.outcome == "timeout" or item.outcome == "crashed":
        return item.outcome
    return "passed" if item.outcome == "passed" and item.samples else "failed"
