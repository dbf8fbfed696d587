"""The flow of the nightly deployments. Import this only where PREFECT_API_URL names a server (a worker's process)."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from prefect import flow
from prefect.client.schemas.objects import FlowRun, State
from prefect.flows import Flow
from prefect.runtime import flow_run
from prefect.settings import PREFECT_UI_URL
from prefect.states import Completed
from rich.console import Console

from perfquarry.curation.notices import failure_message, send
from perfquarry.curation.rows_of_run import provenance
from perfquarry.curation.settings import NotifySettings
from perfquarry.data.errors import PerfquarryError, RunFailed
from perfquarry.data.funnel import funnel
from perfquarry.flows.commands.shared import options_of
from perfquarry.flows.options import read_settings, settings_file
from perfquarry.flows.prefect_deployments import settle_ended
from perfquarry.flows.prefect_flows import WAITING_STATE, do_stages, error_of, outcome_of, publish
from perfquarry.flows.run import Run
from perfquarry.flows.stages import STAGES
from perfquarry.flows.work import perform

_log = logging.getLogger("perfquarry.scheduled")


def report_failure(flow: Flow[Any, Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Reports that a flow run failed or crashed. What only waits for answers or money does not alarm anybody."""
    if state.name == WAITING_STATE:
        return
    parameters = flow_run.parameters
    try:
        settings = NotifySettings.model_validate(
            read_settings(settings_file(parameters.get("settings"))).get("notify", {})
        )
        page = PREFECT_UI_URL.value()
        link = f"{page}/runs/flow-run/{flow_run.id}" if page else ""
        message = failure_message(str(parameters.get("repo")), state.name or "Failed", state.message or "", link)
        send(settings, message, f"{flow_run.id}-{state.type}")
    except (PerfquarryError, ValueError) as error:  # a hook that fails would hide the failure it is about
        _log.warning("the failure of flow run %s was not reported: %s", flow_run.id, error)


@flow(
    name="nightly",
    flow_run_name="nightly-{repo}",
    persist_result=False,
    on_failure=[report_failure],
    on_crashed=[report_failure],
)
def nightly(
    repo: str,
    source: str | None = None,
    changes: str = "",
    limit: int | None = None,
    judge: str = "heuristic",
    workloads: str | None = None,
    llm: str | None = None,
    budget_usd: float | None = None,
    settings: str | None = None,
) -> State[None]:
    """All stages of one repository in the worker's home; costs what is new since the last run.

    Args:
        repo: name in the registry, git URL, or local path.
        source: clone from this path or URL instead of the registry's.
        changes: only these head commits, with commas.
        limit: only the N most probable changes are built and timed.
        judge: who judges (docs/judge.md).
        workloads: sources of workloads, with commas.
        llm: whom the cascade asks and who writes workloads.
        budget_usd: most USD that calls of models may come to.
        settings: TOML file on the worker's machine; without one, the worker's.
    """
    options = options_of(
        repo,
        source=source,
        changes=changes.strip(", ") or None,
        limit=limit,
        judge=judge,
        workloads=workloads,
        llm=llm,
        budget_usd=budget_usd,
        settings=settings_file(settings),
    )
    run = Run.open(options.model_dump_json())
    settle_ended(run.home, [run.name])
    state: State[None] = Completed(message="nothing new")

    def execute(run: Run, stages: Sequence[str]) -> None:
        nonlocal state
        state = do_stages(run, stages)
        if error := error_of(state):
            raise error

    names = [stage.name for stage in STAGES]
    try:
        counts = perform(run, names, nullcontext(execute), Console(file=sys.stderr), flow_run=str(flow_run.id))
    except RunFailed as error:
        counts, state = funnel(run.store, run.name, provenance(run)), outcome_of(error)
    publish(run, counts)
    return state
