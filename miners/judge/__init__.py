"""Judges: which changes may improve performance, and how likely it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from data.errors import InputError
from data.records import Change, Stamp, Verdict
from data.settings import JudgeSettings
from miners.judge.heuristic import Heuristic

__all__ = ["JUDGES", "STAGE_VERSION", "Heuristic", "Judge", "make_judge"]

STAGE_VERSION = "1"
"""To be raised whenever equal changes may get other verdicts, new weights included."""


class Judge(Protocol):
    """Says of each change whether it improves performance."""

    @property
    def name(self) -> str:
        """Name of the judge: a part of its verdicts' keys."""

    def judge(self, change: Change) -> Verdict:
        """The verdict on one change."""

    def judge_all(self, changes: Iterable[Change]) -> Iterator[Verdict]:
        """One verdict a change, in the same order."""


JUDGES: dict[str, Callable[[JudgeSettings, Stamp], Judge]] = {Heuristic.name: Heuristic}


def make_judge(settings: JudgeSettings, stamp: Stamp) -> Judge:
    """The judge that the settings name.

    Raises:
        InputError: no judge has that name.
    """
    if settings.judge not in JUDGES:
        raise InputError(f"no judge is called {settings.judge!r}; known: {', '.join(sorted(JUDGES))}")
    return JUDGES[settings.judge](settings, stamp)
