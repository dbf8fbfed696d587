"""What a run was asked to do: small enough to be the parameter of a Prefect flow."""

from __future__ import annotations

import math
import os
import tomllib
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, field_validator

from perfquarry.data.errors import InputError
from perfquarry.data.home import Home
from perfquarry.data.records import Record
from perfquarry.data.registry import plain_address
from perfquarry.flows.settings import Settings
from perfquarry.llm.spec import ModelSpec
from perfquarry.testgen.settings import GenerateSettings

WORKER_SETTINGS = "PERFQUARRY_SETTINGS"
"""Environment variable of a worker: the settings file of runs that name none."""
_GIVEN: dict[str, str] = {}
"""Addresses as they were given, by their form without secrets: in this process only."""


class Options(Record):
    """The command line's options, resolved; equal options mean the same run on any worker that shares the home.

    They are written down (Prefect's database): addresses lose their secrets here, and get them back from
    `as_given`. A worker in another process needs git's own credential helpers.
    """

    repo: str = Field(description="Registry name, git URL or local path.")
    source: str | None = Field(default=None, description="Clone from here instead of the registry's URL.")
    since: datetime | None = Field(default=None, description="Changes that reached the branch at or after it.")
    until: datetime | None = Field(default=None, description="Changes that reached the branch before it.")
    changes: tuple[str, ...] = Field(default=(), description="Only these heads (hashes or unique prefixes).")
    limit: int | None = Field(
        default=None, ge=1, description="Only the N most probable changes that are not finished go to the build."
    )
    home: str = Field(description="Folder with all state.")
    jobs: int = Field(ge=1, description="Changes that are worked on at once; each core times one at a time.")
    seconds: float | None = Field(default=None, gt=0, description="No further change is begun after so many seconds.")
    tasks: int | None = Field(
        default=None, ge=1, description="No further change is begun once so many tasks are accepted."
    )
    settings: Settings = Settings()

    @property
    def place(self) -> Home:
        """The home."""
        return Home(Path(self.home))

    @field_validator("repo", "source")
    @classmethod
    def _without_secrets(cls, address: str | None) -> str | None:
        if address is None or "://" not in address:
            return address
        clean = plain_address(address)
        if clean != address:
            _GIVEN[clean] = address
        return clean


def as_given(address: str) -> str:
    """An address of `Options` with the secrets it was given with; never to be shown or written."""
    return _GIVEN.get(address, address)


def settings_from(
    path: Path | None,
    judge: str = "heuristic",
    workloads: str | None = None,
    budget_usd: float | None = None,
    llm: str | None = None,
) -> Settings:
    """Default settings, changed by a TOML file (`resources`, one table a stage) and by the command line's options.

    Sources of workloads that are named are those that are asked, all of them. Where none is named, a model that is
    named writes workloads for changes of which nothing else may show a gain.

    Raises:
        InputError: the file cannot be read, or names an unknown setting.
    """
    if budget_usd is not None and not math.isfinite(budget_usd):
        raise InputError(f"--budget-usd {budget_usd} is no amount: give one such as 2.50, or leave it out for no limit")
    tables = read_settings(path)
    tables.setdefault("judge", {})["judge"] = judge
    generate = tables.setdefault("generate", {})
    if workloads is not None:
        generate |= {"source": workloads, "then": ""}
    elif llm is not None:
        generate.setdefault("then", f"{GenerateSettings().then},generated")
    asked = f"{generate.get('source', '')},{generate.get('then', '')}"
    if llm is not None:
        spec = str(ModelSpec.parse(llm))
        if spec.startswith("exchange:") and Path(spec.removeprefix("exchange:")).is_file():
            raise InputError(f"--llm {llm}: that is a file; name a folder, such as exchange:answers")
        if judge == "cascade":
            tables["judge"]["model"] = spec
        if "generated" in map(str.strip, asked.split(",")):
            generate.setdefault("generated", {})["model"] = spec
    if budget_usd is not None:
        tables.setdefault("llm", {})["budget_usd"] = budget_usd
    try:
        return Settings.model_validate(tables)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{path or 'settings'}: {place}: {first['msg']}") from error


def settings_file(named: str | None) -> Path | None:
    """The settings file of a scheduled run: the one it names, else the worker's; None without either."""
    name = named or os.environ.get(WORKER_SETTINGS)
    return Path(name) if name else None


def read_settings(path: Path | None) -> dict[str, dict[str, Any]]:
    """The tables of a settings file, not yet checked; none without a file.

    Raises:
        InputError: the file cannot be read, or is no TOML.
    """
    if path is None:
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"cannot read the settings {path}: {error}") from error
