"""What a run leaves on Prefect's page: the funnel and the accepted tasks, with plots. Only within a flow run."""

from __future__ import annotations

import base64
import logging
import re

import httpx
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.exceptions import PrefectException

from perfquarry.curation.in_force import newest_tasks
from perfquarry.data.funnel import Funnel
from perfquarry.flows.plots import repository_plots
from perfquarry.flows.reports import times
from perfquarry.flows.run import Run

PLOTS = {
    "funnel": "Share of the changes that each stage keeps, with the reasons for the others",
    "history": "Tasks by speedup, and the other candidates, by the day of the merge",
    "speedups": "Speedups of the accepted tasks with their 95 % intervals",
    "noise": "Noise of the machine over the run",
}
"""By name of a plot what it shows."""
_log = logging.getLogger("perfquarry.artifacts")


def publish(run: Run, counts: Funnel) -> None:
    """Creates the artifacts `funnel-REPO`, `tasks-REPO` and of each plot `NAME-plot-REPO`.

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
                    "speedup, kept workloads": f"{times(task.speedup)} [{times(task.low)}, {times(task.high)}]",
                    "speedup, all decided": f"{times(task.overall_speedup)} [{times(task.overall_low)}, "
                    f"{times(task.overall_high)}]",
                    "δ": round(task.delta or 0, 3),
                    "workloads": len(task.workloads),
                }
                for task in accepted
            ],
            description=f"{len(accepted)} accepted task(s) of {run.name}",
        )
        for name, plot in repository_plots(run.store, run.name, counts, tasks).items():
            image = base64.b64encode(plot.encode()).decode()
            create_markdown_artifact(
                key=f"{name}-plot-{suffix}",
                markdown=f"![{PLOTS[name]}](data:image/svg+xml;base64,{image})",
                description=f"{PLOTS[name]}, {run.name}",
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
