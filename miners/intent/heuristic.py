"""The class of a change without a model: by what callers may notice, and by the words of its message."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from perfquarry.data.records import Effect
from perfquarry.data.records.intent import IntentClass
from perfquarry.miners.judge import words

_BODY_SPEED = ("body_speed", "measured")
_TITLE_SPEED = ("perf_prefix", "title_speed")
_MOST = 12
_LINE = 120
_ISSUE = re.compile(r"\b(?:fix(?:e[sd])?|close[sd]?|resolve[sd]?)\s+#\d+", re.I)


class IntentOpinion(NamedTuple):
    """A class, and why."""

    intent: IntentClass
    evidence: list[str]
    """In words, the strongest first."""


def opinion_of(title: str, message: str, effects: Iterable[Effect]) -> IntentOpinion:
    """The class of a change.

    Args:
        title: first line of its message.
        message: all of it.
        effects: what callers may notice (`effects_of`), and what execution showed.
    """
    found = sorted(effects, key=lambda one: -one.weight)
    meant, why = _purpose(title, message)
    texts = [one.text for one in found[:_MOST]]
    if sum(one.weight for one in found) >= 1:
        return IntentOpinion("behaviour_changed", [*texts, why])
    return IntentOpinion("intended" if meant else "side_effect", [why, *texts])


def _purpose(title: str, message: str) -> tuple[bool, str]:
    """Whether the words speak of an improvement, and which do."""
    said = {one.name: one.evidence for one in words.find(title, message, "")}
    headline = " ".join(title.split())[:_LINE]
    said |= {name: headline for name in said if name.startswith("title_")}
    for name in (*_TITLE_SPEED, *_BODY_SPEED):
        if name in said and not (name in _BODY_SPEED and "speed_elsewhere" in said):
            return True, f"the message speaks of speed: {said[name]}"
    other = [name for name in ("title_fix", "title_feature", "title_chore") if name in said]
    if "title_saving" in said and not other and not _ISSUE.search(message):
        return True, f"the message speaks of less work: {headline}"
    if other:
        return False, f"the message speaks of something else: {headline}"
    return False, "the message does not speak of speed"
