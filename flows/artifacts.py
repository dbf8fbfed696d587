"""What a run leaves on Prefect's page: the funnel, the accepted tasks and their timings. Only within a flow run."""

from __future__ import annotations

import base64
import logging
import re

import httpx
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.exceptions import PrefectException

from perfquarry.curation.in_force import newest_tasks
from perfquarry.data.funnel import Funnel
from perfquarry.flows.plots import timing_plot
from perfquarry.flows.reports import times
from perfquarry.flows.run import Run

_log = logging.getLogger("perfquarry.artifacts")


def publish(run: Run, counts: Funnel) -> None:
    """Creates the artifacts `funnel-REPO`, `tasks-REPO` and, with timings, `timings-REPO`.

    A server that refuses them costs a warning: the tables have it all.
    """
    tasks = newest_tasks(run.store, run.name)
    accepted = sorted((task for task in tasks if task.status == "kept"), key=lambda task: -(task.speedup or 0))
    suffix = re.sub(r"[^a-z0-9]+", "-", run.name.lower()).strip("-")
    try:
        create_table_artifact(key=f"funnel-{suffix}", table=funnel_rows(counts), description=f"Funnel of {run.name}")
        create_table_artifact(
            key=f"tasks-{suffix}",
            table=[
                {
                    "task": task.task_id,
                    "title": task.title,
                    "speedup": times(task.speedup),
                    "interval": f"[{times(task.low)}, {times(task.high)}]",
                    "δ": round(task.delta or 0, 3),
                    "workloads": len(task.workloads),
                }
                for task in accepted
            ],
            description=f"{len(accepted)} accepted task(s) of {run.name}",
        )
        if plot := timing_plot(run.name, tasks):
            image = base64.b64encode(plot.encode()).decode()
            create_markdown_artifact(
                key=f"timings-{suffix}",
                markdown=f"![Timings of base and head](data:image/svg+xml;base64,{image})",
                description=f"The fastest tasks of {run.name}: of each the workload with the largest gain (shown), "
                "beside the task's speedup",
            )
    except (PrefectException, httpx.HTTPError) as error:
        _log.warning("the artifacts of %s could not be stored: %s", run.name, error)


def funnel_rows(counts: Funnel) -> list[dict[str, str | int]]:
    """The funnel as a table, a stage a row."""
    return [
        {
            "stage": stage.stage,
            "in": stage.entered,
            "kept": stage.kept,
            "rejected": sum(stage.rejected.values()),
            "to do": stage.pending,
            "why": ", ".join(f"{reason} {count}" for reason, count in stage.rejected.items()),
        }
        for stage in counts.stages
    ]
