"""Judges: which changes may improve performance, and how likely it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from perfquarry.data.errors import InputError
from perfquarry.data.records import Change, Stamp, Verdict
from perfquarry.llm.client import Client
from perfquarry.llm.spec import ModelSpec
from perfquarry.miners.judge.heuristic import Heuristic
from perfquarry.miners.judge.model import ModelJudge, Questions
from perfquarry.miners.pulls.discussion import Discussions
from perfquarry.miners.settings import JudgeSettings

__all__ = ["CASCADE", "Heuristic", "Judge", "ModelJudge", "Questions", "make_judge", "spec_of"]

CASCADE = "cascade"


class Judge(Protocol):
    """Says of each change whether it improves performance."""

    @property
    def name(self) -> str:
        """Name of the judge: a part of its verdicts' keys."""

    def judge(self, change: Change) -> Verdict:
        """The verdict on one change."""

    def judge_all(self, changes: Iterable[Change]) -> Iterator[Verdict]:
        """One verdict a change, as they come."""


def spec_of(settings: JudgeSettings) -> str | None:
    """Who answers (`llm.spec.ModelSpec`); None for the heuristic.

    Raises:
        InputError: no judge has that name, or the cascade has no model.
    """
    if settings.judge == Heuristic.name:
        return None
    if settings.judge == CASCADE and not settings.model:
        raise InputError("the cascade needs a model: add --llm SPEC, or model under judge in the settings")
    spec = settings.model if settings.judge == CASCADE else settings.judge
    try:
        return str(ModelSpec.parse(spec))
    except InputError as error:
        if settings.judge == CASCADE:
            raise
        known = f"{Heuristic.name}, {CASCADE}, or a model"
        raise InputError(f"no judge is called {settings.judge!r}; known: {known}: {error}") from error


def make_judge(
    settings: JudgeSettings,
    stamp: Stamp,
    client: Client | None = None,
    clone: Path | None = None,
    at_once: int | None = None,
    discussions: Discussions | None = None,
) -> Judge:
    """The judge that the settings name; those that ask a model need its `client` (see `ModelJudge`).

    Raises:
        InputError: no judge has that name, or the cascade has no model.
    """
    spec = spec_of(settings)
    if spec is None:
        return Heuristic(settings, stamp, discussions.results if discussions else None)
    if client is None:
        raise InputError(f"the judge {settings.judge} needs a client of {spec}")
    name = f"{ModelSpec.parse(spec).kind}:{client.model}"
    return ModelJudge(name, Questions(settings, stamp, clone, discussions), client, at_once)
