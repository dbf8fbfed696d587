"""What a model answers about a change, what its quotes are worth, and how several answers become one probability."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from pydantic import BaseModel, Field

from perfquarry.llm.fences import visible
from perfquarry.miners.settings import JudgeSettings

Kind = Literal[
    "algorithm", "data structure", "caching", "vectorisation", "native code", "I/O", "memory", "concurrency", "none"
]
Disguise = Literal["none", "bug fix", "feature", "refactoring"]
T = TypeVar("T")

_CLIP = 0.02
"""No single answer is taken for surer than this of its opposite: the logarithm would let it outvote all others."""
_QUOTES = 8
"""Most quotes of an answer that are looked up."""
_SHORTEST = 4
"""Characters of a line of a quote, white space aside: shorter ones stand in every diff."""
_API = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*){0,7}")
_APIS = 5


class Opinion(BaseModel):
    """The answer's form."""

    why: str = Field(description="One or two sentences: what the code did before, and what it does now.")
    evidence: list[str] = Field(description="One to four exact quotes of lines that the diff adds or removes.")
    kind: Kind = Field(description="The main means of the gain.")
    apis: list[str] = Field(description="Up to five public names, dotted, whose calls show the gain.")
    disguise: Disguise = Field(description="What it really is when it only speaks of performance.")
    testable_on_cpu: bool
    answer: Literal["yes", "no", "unsure"]
    confidence: float = Field(ge=0, le=1, description="Probability that the answer is right, 0.5 to 1.")


@dataclass(frozen=True)
class Vote:
    """One answer with its quotes looked up."""

    opinion: Opinion
    verified: list[str]
    unverified: list[str]

    @classmethod
    def of(cls, opinion: Opinion, diff: str) -> Vote:
        """Looks the quotes up in the diff as the model was shown it."""
        verified, unverified = looked_up(opinion.evidence, diff)
        return cls(opinion, verified, unverified)

    @property
    def answer(self) -> Literal["yes", "no", "unsure"]:
        """The answer; unsure when none of its quotes stands in the diff."""
        return self.opinion.answer if self.verified else "unsure"

    @property
    def confidence(self) -> float:
        """From 0.5, a coin toss, to 1: each quote that is not in the diff takes its share of what is above 0.5."""
        if self.answer == "unsure":
            return 0.5
        share = len(self.verified) / (len(self.verified) + len(self.unverified))
        return 0.5 + max(self.opinion.confidence - 0.5, 0.0) * share

    @property
    def probability(self) -> float:
        """That the change improves performance, as this answer has it."""
        return 1 - self.confidence if self.answer == "no" else self.confidence

    @property
    def apis(self) -> list[str]:
        """The names that are names."""
        return [api for api in dict.fromkeys(self.opinion.apis) if _API.fullmatch(api)][:_APIS]


def probability_of(votes: Sequence[Vote], settings: JudgeSettings) -> float:
    """The mean of the votes' log-odds, calibrated (Platt): sigmoid(slope · mean + intercept)."""
    mean = sum(log_odds(vote.probability) for vote in votes) / len(votes)
    return 1 / (1 + math.exp(-(settings.slope * mean + settings.intercept)))


def log_odds(probability: float) -> float:
    """Of a probability, kept away from 0 and 1."""
    inside = min(max(probability, _CLIP), 1 - _CLIP)
    return math.log(inside / (1 - inside))


def looked_up(quotes: Sequence[str], diff: str) -> tuple[list[str], list[str]]:
    """Quotes that stand in the diff as the model was shown it, and those that do not; only the first few count."""
    lines = _lines(visible(diff))
    verified: list[str] = []
    unverified: list[str] = []
    for quote in quotes[:_QUOTES]:
        (verified if _stands_in(visible(quote), lines) else unverified).append(quote)
    return verified, unverified


def most(values: Iterable[T]) -> T:
    """The most frequent value, the first of equals."""
    return Counter(values).most_common(1)[0][0]


def _lines(diff: str) -> dict[str, bool]:
    """Lines of a diff without sign, white space joined, and whether one of them is added or removed."""
    lines: dict[str, bool] = {}
    for line in diff.split("\n"):
        if line[:1] in ("+", "-", " ") and not line.startswith("--- "):
            joined = _joined(line[1:])
            lines[joined] = lines.get(joined, False) or line[0] != " "
    return lines


def _joined(line: str) -> str:
    return " ".join(line.split())


def _stands_in(quote: str, lines: dict[str, bool]) -> bool:
    """Whether each line of a quote is (a part of) a line of the diff, one of them an added or removed one."""
    changed = False
    wanted = [line for line in quote.split("\n") if line.strip()]
    for line in wanted:
        forms = {_joined(line), _joined(line.strip().removeprefix("+").removeprefix("-"))}
        held = [text for text in lines if any(form in text for form in forms if len(form) >= _SHORTEST)]
        if not held:
            return False
        changed = changed or any(lines[text] for text in held)
    return changed
