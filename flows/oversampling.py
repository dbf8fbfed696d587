"""What screening asks of the generator of workloads."""

from __future__ import annotations

from perfquarry.curation.in_force import newest_findings, newest_tasks
from perfquarry.curation.screening.demands import Demand, demands
from perfquarry.flows.run import Run


def demands_of(run: Run) -> list[Demand]:
    """Of the accepted tasks, as the newest screening sees them; none before the first."""
    tasks = [task for task in newest_tasks(run.store, run.name) if task.status == "kept"]
    findings = newest_findings(run.store, run.name)
    return demands(tasks, findings) if findings else []


def wishes_of(run: Run) -> dict[str, tuple[str, ...]]:
    """By change, what its workloads lack."""
    return {one.change_id: one.wishes for one in demands_of(run)}
