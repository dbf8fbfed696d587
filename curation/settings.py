"""Settings of acceptance and of screening, and which of all settings decide how a task is made again."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from perfquarry.data.errors import InputError
from perfquarry.data.records.row import Record, content_id
from perfquarry.data.settings import StageSettings
from perfquarry.harness.settings import BuildSettings, MeasureSettings, SandboxSettings
from perfquarry.testgen.settings import GenerateSettings


class SelectSettings(StageSettings):
    """Thresholds of acceptance (docs/statistics.md)."""

    min_gain: float = Field(default=0.03, gt=0, lt=1, description="Smallest relative gain worth a task.")
    min_hold: float = Field(
        default=0.95, gt=0, lt=1, description="Smallest predicted probability that a second look shows the gain."
    )
    occasion: float = Field(
        default=0.005, ge=0, description="What a look differs by (standard deviation, log) that no pair of it shows."
    )
    relative_occasion: float = Field(
        default=0.03,
        ge=0,
        description="As much again for each unit of the effect (log): a gain depends on how fast the machine runs.",
    )
    precision: float = Field(
        default=0.0125, gt=0, description="Half of the interval (log) at which a workload needs no more pairs."
    )
    relative_precision: float = Field(
        default=0.1, ge=0, description="The same as a share of the effect (log), where that is more."
    )
    min_pairs: int = Field(default=6, ge=6, description="Fewest pairs of processes a session needs to decide.")
    max_q: float = Field(default=0.05, description="Largest q-value (Benjamini-Hochberg).")
    alpha: float = Field(default=0.1, description="Level of the test in δ (SWE-Perf).")
    max_aa_delta: float = Field(default=0.02, description="A/A δ above it rejects the workload as unstable.")
    aa_alpha: float = Field(default=0.005, description="Level of the test in A/A δ: its few pairs are tested often.")
    cold_alpha: float = Field(default=0.01, description="Level in the first calls' δ: no second session confirms it.")
    cold_gain: float = Field(default=0.05, description="Smallest δ of first calls that is noted.")


class ScreenSettings(StageSettings):
    """What screening notes of a task (docs/screening.md)."""

    near_patch: float = Field(default=0.8, description="Share of changed lines two patches have in common: near-dup.")
    window_days: float = Field(default=60.0, description="Tasks on the same functions within so many days are noted.")
    same_functions: float = Field(default=0.5, description="Share of functions (Jaccard) that counts as the same.")
    short_seconds: float = Field(default=1e-4, description="Calls shorter than that are noted as too short.")
    dominant_share: float = Field(default=0.8, description="Share of the whole log gain that one workload may have.")
    rounds: int = Field(default=3, ge=1, description="Pairs of processes, plain and altered, of a timed check.")
    calls: int = Field(default=5, ge=2, description="Timed calls a process of such a pair.")
    memo_gain: float = Field(default=1.2, gt=1, description="Speedup by a mere memo, in every round, that is noted.")
    functions: int = Field(default=6, ge=1, description="Targets broken one by one, those called most often first.")
    process_seconds: float = Field(default=120.0, description="Wall limit of one process.")
    memory_bytes: int = Field(default=4 * 1024**3, description="Memory of one process, bytes.")


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


class MakingSettings(Record):
    """Of a run's settings those by which published tasks are made and timed again."""

    build: BuildSettings = BuildSettings()
    generate: GenerateSettings = GenerateSettings()
    measure: MeasureSettings = MeasureSettings()
    select: SelectSettings = SelectSettings()
    sandbox: SandboxSettings = SandboxSettings()
