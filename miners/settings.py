"""Settings of mining, of pull requests and of the judge."""

from __future__ import annotations

import re
from typing import ClassVar
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from perfquarry.data.records.pull import Policy
from perfquarry.data.records.row import content_id
from perfquarry.data.settings import StageSettings


class MineSettings(StageSettings):
    """What the crawl keeps of a diff."""

    patch_limit: int = Field(default=64 * 1024, description="Bytes of source diff kept per change.")
    diff_limit: int = Field(default=16 * 1024 * 1024, description="Bytes of one diff read before it is passed over.")


class PullSettings(StageSettings):
    """Pull requests: how they are crawled, and which of them go on (docs/pulls.md)."""

    policy: Policy = Field(
        default="off",
        description="What `mine` makes of them: 'off' nothing; 'all' one change a pull request, and other commits; "
        "only pull requests that are 'merged', 'labelled' as performance, resolve an issue ('sweperf'), and have tests "
        "too ('swebench').",
    )
    labels: str = Field(
        default=r"perf|optimi[sz]|speed|slow|efficien|\bbenchmark",
        description="Expression found in labels of 'labelled'.",
    )
    base_url: str = Field(default="", description="Of the REST API; empty: that of the repository's host.")
    codebase: str = Field(default="", description="'owner/name'; empty: the registry's or the URL's.")
    page_size: int = Field(default=50, ge=1, le=100, description="Pull requests asked for at once.")
    most: int = Field(default=1000, ge=1, description="Commits, files, comments, … read of one pull request or issue.")
    timeout: int = Field(default=60, ge=1, description="Seconds of one call.")
    retries: int = Field(default=8, ge=0, description="Of one call, after 5xx, broken answers and lost connections.")
    backoff: float = Field(
        default=0.5, gt=0, description="Seconds before the first retry; doubled with each, up to 60."
    )
    secondary_wait: float = Field(
        default=60.0,
        gt=0,
        description="Seconds after a secondary limit that names no time; doubled with each in a row.",
    )
    longest_wait: float = Field(default=3900.0, gt=0, description="Seconds a rate limit is waited for at most.")
    UNHASHED: ClassVar[frozenset[str]] = frozenset(
        {"policy", "labels", "page_size", "timeout", "retries", "backoff", "secondary_wait", "longest_wait"}
    )

    @field_validator("labels")
    @classmethod
    def _compiles(cls, labels: str) -> str:
        try:
            re.compile(labels)
        except re.error as error:
            raise ValueError(f"{labels!r} is no regular expression: {error}") from error
        return labels

    @field_validator("base_url")
    @classmethod
    def _plain_address(cls, address: str) -> str:
        parts = urlsplit(address)
        if address and (parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc):
            raise ValueError("not an http(s) address without credentials: set GITHUB_TOKEN for these")
        return address.rstrip("/")

    def selection(self) -> tuple[str, ...]:
        """What of it decides the rows of `mine` and `judge`; nothing while the policy is off."""
        if self.policy == "off":
            return ()
        return (content_id("pulls", self.policy, self.labels if self.policy == "labelled" else ""),)


class JudgeSettings(StageSettings):
    """Which judge, and from which probability on a change goes on."""

    judge: str = Field(default="heuristic", description="Who judges; `--judge` sets it.")
    keep_from: float = Field(default=0.03, description="Smallest probability of the heuristic that goes on (unsure).")
    yes_from: float = Field(default=0.5, description="Smallest probability that is called yes.")
    model: str = Field(default="", description="Who answers for the cascade: 'openai:MODEL', 'exchange:DIR', …")
    ask_from: float = Field(default=0.03, description="Cascade: smallest probability of the heuristic that is asked.")
    ask_below: float = Field(default=0.9, description="Cascade: from this probability on a change goes on unasked.")
    model_keep_from: float = Field(default=0.3, description="Smallest probability by a model that goes on.")
    votes: int = Field(default=3, ge=1, description="Answers taken where the first is unsure.")
    sure_from: float = Field(
        default=0.75, description="Smallest confidence of a first answer that needs no more votes."
    )
    context_tokens: int = Field(default=8000, ge=500, description="Most tokens of a change that a model is shown.")
    answer_tokens: int = Field(default=4000, ge=100, description="Most tokens of an answer, thinking included.")
    slope: float = Field(default=1.0, description="Of the calibration of a model's log-odds (`judge --evaluate`).")
    intercept: float = Field(default=0.0, description="Of the same.")
    ADDED: ClassVar[frozenset[str]] = frozenset(
        {
            "model", "ask_from", "ask_below", "model_keep_from", "votes", "sure_from", "context_tokens",
            "answer_tokens", "slope", "intercept",
        }
    )  # fmt: skip
