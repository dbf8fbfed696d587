"""State-change hooks of scheduled flow runs: a failure is sent to the webhook of the run's settings."""

from __future__ import annotations

import logging
from typing import Any

from prefect.client.schemas.objects import FlowRun, State
from prefect.flows import Flow
from prefect.settings import PREFECT_UI_URL

from perfquarry.data.errors import PerfquarryError
from perfquarry.data.settings import NotifySettings
from perfquarry.flows.notify import failure_message, send
from perfquarry.flows.options import read_settings, settings_file
from perfquarry.flows.prefect_flows import WAITING_STATE

_log = logging.getLogger("perfquarry.hooks")


def tell_failure(flow: Flow[Any, Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Tells that a flow run failed or crashed. What only waits for answers or money does not alarm anybody."""
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
        _log.warning("the failure of flow run %s was not sent: %s", flow_run.id, error)
