"""The class of a change by a model: it is shown the message and both sides' code, and nothing of what was timed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from perfquarry.data.records import Change
from perfquarry.data.records.intent import IntentClass
from perfquarry.llm.fences import Piece, fit, visible
from perfquarry.llm.prompts import Prompt
from perfquarry.llm.request import Request
from perfquarry.miners.intent.heuristic import IntentOpinion
from perfquarry.miners.judge.context import context_of
from perfquarry.miners.judge.opinion import looked_up

PROMPTS = Path(__file__).with_name("prompts")
STAGE = "screen"
_TOKENS, _TEST_TOKENS, _ANSWER_TOKENS = 16_000, 3_000, 4_000
_WHY = 600


class IntentAnswer(BaseModel):  # its name is part of the form, and so of the address of answers that were paid for
    """What a model answers of one change."""

    why: str = Field(description="One or two sentences.")
    noticed: list[str] = Field(default_factory=list, description="What callers may notice; empty when nothing.")
    evidence: list[str] = Field(default_factory=list, description="Quotes of lines that the diff adds or removes.")
    intent: IntentClass


def intent_request(clone: Path, change: Change, test_patch: str = "") -> Request[IntentAnswer]:
    """The question.

    Args:
        clone: where the change's files are read.
        change: what is asked about.
        test_patch: the part of its diff that touches tests.
    """
    context: Any = context_of(clone, change, _TOKENS)
    sections = test_patch.split("\ndiff --git ") if test_patch else []
    tests = fit([Piece(section, -float(at), "") for at, section in enumerate(sections)], _TEST_TOKENS)
    return Prompt(PROMPTS, "intent", "v1").request(
        IntentAnswer,
        STAGE,
        change.change_id,
        values={"context": context, "tests": tests},
        max_tokens=_ANSWER_TOKENS,
    )


def opinion_in(answer: IntentAnswer, patch: str) -> IntentOpinion | None:
    """The class and why; None where none of its quotes stands in the patch: it may be about something else."""
    verified, unverified = looked_up(answer.evidence, patch)
    if not verified:
        return None
    evidence = [answer.why, *answer.noticed, *(f"quote that is not in the diff: {one}" for one in unverified)]
    return IntentOpinion(answer.intent, [" ".join(visible(one).split())[:_WHY] for one in evidence if one.strip()])
