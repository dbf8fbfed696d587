"""All settings of a run: those of the rooms, of the machine and of messages."""

from __future__ import annotations

from pydantic import ByteSize, Field

from perfquarry.curation.settings import MakingSettings, NotifySettings, ScreenSettings
from perfquarry.data.records.row import Record
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
