"""Nightly deployments on the server of PREFECT_API_URL. Import this only when it is set."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from uuid import UUID

import httpx
from prefect import get_client
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterTags, FlowRunFilter
from prefect.client.schemas.filters import FlowRunFilterDeploymentId as OfDeployment
from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy
from prefect.client.schemas.responses import DeploymentResponse
from prefect.client.schemas.schedules import CronSchedule
from prefect.client.schemas.sorting import FlowRunSort
from prefect.deployments.runner import RunnerDeployment
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound, PrefectException
from prefect.states import Crashed
from prefect.types.entrypoint import EntrypointType

from perfquarry.data.errors import InputError, ServerUnavailable
from perfquarry.data.home import Home
from perfquarry.data.records import Record
from perfquarry.data.runs import runs_of
from perfquarry.flows.deployments import POOL, Nightly

_log = logging.getLogger("perfquarry.scheduled")


class Deployed(Record):
    """A deployment as the server knows it."""

    repository: str
    cron: str
    active: bool
    next_run: datetime | None = None
    last_run: datetime | None = None
    last_state: str = ""


@contextmanager
def _client(doing: str) -> Iterator[SyncPrefectClient]:
    try:
        with get_client(sync_client=True) as client:
            yield client
    except (PrefectException, httpx.HTTPError) as error:
        raise ServerUnavailable(f"the Prefect server failed while {doing}: {error}") from error


def _ours(client: SyncPrefectClient) -> list[DeploymentResponse]:
    """The deployments of ours on the server."""
    tagged = DeploymentFilter(tags=DeploymentFilterTags(all_=["perfquarry"]))
    return client.read_deployments(deployment_filter=tagged, limit=200)


def apply(wanted: Sequence[Nightly]) -> None:
    """Creates or updates the deployments, and the work pool where there is none.

    Raises:
        ServerUnavailable: the server did not do it.
    """
    from perfquarry.flows.scheduled import nightly

    once = ConcurrencyLimitConfig(limit=1, collision_strategy=ConcurrencyLimitStrategy.CANCEL_NEW)
    with _client("deployments were created") as client:
        with suppress(ObjectAlreadyExists):
            client.create_work_pool(WorkPoolCreate(name=POOL, type="process"))
        for one in wanted:
            RunnerDeployment.from_flow(
                nightly,
                name=one.repository,
                schedules=[CronSchedule(cron=one.cron, timezone="UTC")],
                parameters={"repo": one.repository},
                description=one.description,
                tags=one.tags,
                concurrency_limit=once,
                entrypoint_type=EntrypointType.MODULE_PATH,
                work_pool_name=POOL,
            ).apply()


def listed() -> list[Deployed]:
    """The deployments of ours, by repository.

    Raises:
        ServerUnavailable: the server did not answer.
    """
    found = []
    with _client("deployments were listed") as client:
        for one in _ours(client):
            runs = client.read_flow_runs(
                flow_run_filter=FlowRunFilter(deployment_id=OfDeployment(any_=[one.id])),
                sort=FlowRunSort.EXPECTED_START_TIME_DESC,
                limit=50,
            )
            coming = [run.expected_start_time for run in runs if run.state and run.state.is_scheduled()]
            past = [run for run in runs if run.start_time]
            schedule = one.schedules[0] if one.schedules else None
            found.append(
                Deployed(
                    repository=one.name,
                    cron=getattr(schedule.schedule, "cron", "") if schedule else "",
                    active=bool(schedule and schedule.active and not one.paused),
                    next_run=min(filter(None, coming), default=None),
                    last_run=past[0].start_time if past else None,
                    last_state=past[0].state_name or "" if past else "",
                )
            )
    return sorted(found, key=lambda one: one.repository)


def remove(repositories: Sequence[str]) -> list[str]:
    """Deletes the deployments of these repositories, all of ours without names; returns those that were there.

    Raises:
        ServerUnavailable: the server did not do it.
    """
    gone = []
    with _client("deployments were removed") as client:
        for one in _ours(client):
            if not repositories or one.name in repositories:
                client.delete_deployment(one.id)
                gone.append(one.name)
    return sorted(gone)


def start(repositories: Sequence[str]) -> list[str]:
    """Makes a run of each deployment, to be begun by a worker at once; returns the names of the runs.

    Raises:
        InputError: one of the repositories has no deployment.
        ServerUnavailable: the server did not do it.
    """
    with _client("runs were started") as client:
        known = {one.name: one.id for one in _ours(client)}
        if missing := [name for name in repositories if name not in known]:
            raise InputError(f"{missing[0]} has no deployment: perfquarry schedule apply {missing[0]}")
        return [client.create_flow_run_from_deployment(known[name]).name for name in repositories]


def settle_ended(home: Home, names: Sequence[str]) -> int:
    """Marks scheduled runs of repositories that the server takes for running as crashed where their process has ended.

    A machine that lost power, or a server that ended before its runs, leaves such: the deployment's one place would
    stay taken, and every later run be cancelled. Returns how many there were; a server that does not answer costs a
    warning.
    """
    crashed = 0
    ended = [one for name in names for one in runs_of(home, name) if one.outcome != "running"]
    try:
        with get_client(sync_client=True) as client:
            for record in ended:
                if not record.flow_run or record.outcome == "done":
                    continue
                with suppress(ObjectNotFound):
                    old = client.read_flow_run(UUID(record.flow_run))
                    if old.state and not old.state.is_final():
                        message = f"The process has ended ({record.outcome})."
                        client.set_flow_run_state(old.id, Crashed(message=message), force=True)
                        crashed += 1
    except (PrefectException, httpx.HTTPError) as error:
        _log.warning("ended runs could not be marked as crashed: %s", error)
    return crashed
