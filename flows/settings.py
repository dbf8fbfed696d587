"""All settings of a run: those of the rooms, of the machine and of messages."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from pydantic import ByteSize, Field, field_validator

from perfquarry.curation.settings import MakingSettings, ScreenSettings
from perfquarry.data.errors import InputError
from perfquarry.data.records.row import Record, content_id
from perfquarry.harness.settings import CountSettings
from perfquarry.llm.settings import LlmSettings
from perfquarry.miners.settings import JudgeSettings, MineSettings, PullSettings


class ResourceSettings(Record):
    """What a run may use of this machine: no row depends on it, so no hash has it."""

    disk: ByteSize | None = Field(
        default=None,
        description="Disk of environments, trees, artifacts and build folders together, such as '30GiB'; what was used "
        "longest ago goes first. None: PERFQUARRY_DISK_BUDGET, else 20 GiB or half of what the disk offers.",
    )
    lease_seconds: float = Field(
        default=60.0,
        gt=0,
        description="After so long without a sign, a worker's claims go to others (docs/workers.md).",
    )


_ADDRESSES: dict[str, str] = {}
"""Addresses of webhooks as the settings gave them, by what stands for them: in this process only."""


class NotifySettings(Record):
    """To whom a run reports newly accepted tasks and its failure. It decides no row, so it is in no hash.

    An address is a secret: what stands for it in this record may be written down, it itself may not.
    """

    webhook: str = Field(
        default="", description="Environment variable that holds the webhook's address, or the address. Empty: nobody."
    )
    page: str = Field(default="", description="Address of the review page, for links in messages.")

    @field_validator("webhook")
    @classmethod
    def _hidden(cls, webhook: str) -> str:
        if "://" not in webhook:
            return webhook
        hidden = f"address:{content_id(webhook)}"
        _ADDRESSES[hidden] = webhook
        return hidden

    def address(self) -> str | None:
        """The webhook's address, never to be shown or written; None: nobody is notified.

        Raises:
            InputError: the variable is not set, or holds no http address.
        """
        if not self.webhook:
            return None
        found = _ADDRESSES.get(self.webhook) or os.environ.get(self.webhook, "")
        if not found:
            raise InputError(f"[notify] webhook names the environment variable {self.webhook}, which is not set")
        if urlsplit(found).scheme not in ("http", "https"):
            raise InputError("[notify] webhook holds no http or https address")
        return found


class Settings(MakingSettings):
    """All stages' settings of one run, and where they run code."""

    mine: MineSettings = MineSettings()
    pulls: PullSettings = PullSettings()
    judge: JudgeSettings = JudgeSettings()
    screen: ScreenSettings = ScreenSettings()
    count: CountSettings = CountSettings()
    resources: ResourceSettings = ResourceSettings()
    llm: LlmSettings = LlmSettings()
    notify: NotifySettings = NotifySettings()
