"""The nightly deployments: one per repository of the registry, as records, as `prefect.yaml`, and on a server.

Importing this does not import prefect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml
from pydantic import Field

from perfquarry.data.records import Record
from perfquarry.data.registry import load, names

POOL = "perfquarry"
"""Name of the work pool (process)."""
ENTRYPOINT = "perfquarry.flows.scheduled.nightly"
FIRST_HOUR, HOURS = 0, 6
"""The night, UTC: hour of the first start, and hours over which the starts are spread."""
_HEADER = """\
# One nightly deployment a repository of the registry (docs/schedules.md). Generated: do not edit.
# perfquarry schedule yaml > prefect.yaml
"""


class Nightly(Record):
    """One deployment."""

    repository: str
    codebase: str
    cron: str = Field(description="Minute and hour, UTC.")

    @property
    def tags(self) -> list[str]:
        """What its runs can be filtered by."""
        return ["perfquarry", f"repo:{self.repository}"]

    @property
    def description(self) -> str:
        """For the page."""
        return f"What is new in {self.codebase}, from history to verified tasks."


def nightlies() -> list[Nightly]:
    """A deployment for each repository of the registry, their starts spread evenly over the night."""
    every = names()
    found = []
    for number, name in enumerate(every):
        hour, minute = divmod(number * HOURS * 60 // len(every), 60)
        cron = f"{minute} {(FIRST_HOUR + hour) % 24} * * *"
        found.append(Nightly(repository=name, codebase=load(name).codebase, cron=cron))
    return found


def chosen(repositories: Sequence[str]) -> list[Nightly]:
    """The deployments of these names, all without names.

    Raises:
        UnknownRepository: a name is not in the registry.
    """
    wanted = {load(name).name for name in repositories}
    return [one for one in nightlies() if not wanted or one.repository in wanted]


def prefect_yaml() -> str:
    """The text of `prefect.yaml`."""
    deployments: list[dict[str, Any]] = [
        {
            "name": one.repository,
            "description": one.description,
            "entrypoint": ENTRYPOINT,
            "parameters": {"repo": one.repository},
            "tags": one.tags,
            "schedules": [{"cron": one.cron, "timezone": "UTC", "active": True}],
            "concurrency_limit": {"limit": 1, "collision_strategy": "CANCEL_NEW"},
            "work_pool": {"name": POOL},
            "pull": None,
        }
        for one in nightlies()
    ]
    return _HEADER + yaml.safe_dump({"name": "perfquarry", "deployments": deployments}, sort_keys=False, width=120)
