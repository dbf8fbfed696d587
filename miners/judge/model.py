"""Judges by a model: of all changes, or of those that the heuristic leaves uncertain (the cascade)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

from perfquarry.data.errors import AnswersAwaited
from perfquarry.data.records import MEANING, Change, Reason, Signal, Stamp, Verdict
from perfquarry.llm.client import Client
from perfquarry.llm.fences import visible
from perfquarry.llm.prompts import Prompt
from perfquarry.llm.request import Answer, Request, Usage
from perfquarry.miners.judge.context import context_of
from perfquarry.miners.judge.heuristic import Heuristic
from perfquarry.miners.judge.opinion import Opinion, Vote, log_odds, most, probability_of
from perfquarry.miners.pulls.discussion import Discussions
from perfquarry.miners.settings import JudgeSettings

PROMPTS = Path(__file__).with_name("prompts")
VERSION, VERSION_WITH_DISCUSSION = "v1", "v2"
_WHY = 600
"""Characters of a model's words in a verdict."""
_QUOTE = 200


@cache
def _prompt(version: str) -> Prompt:
    return Prompt(PROMPTS, "judge", version)


@dataclass
class Question:
    """A change that a model is asked about, and its answers so far."""

    change: Change
    before: Verdict
    """The heuristic's."""
    request: Request[Opinion]
    """The first vote's."""
    diff: str
    """As the model is shown it."""
    by_number: dict[int, Answer[Opinion]] = field(default_factory=dict)
    """The answers by the number of their vote."""

    def vote(self, number: int) -> Request[Opinion]:
        """The request of the n-th vote, counted from 1."""
        return replace(self.request, seed=number)

    @property
    def answers(self) -> list[Answer[Opinion]]:
        """In the order of the votes, not of their coming."""
        return [self.by_number[number] for number in sorted(self.by_number)]

    @property
    def votes(self) -> list[Vote]:
        """The answers that can be read."""
        return [Vote.of(answer.value, self.diff) for answer in self.answers if answer.value is not None]


@dataclass(frozen=True)
class Questions:
    """Which changes a model is asked about, and how. Calls nothing."""

    settings: JudgeSettings
    """`judge` 'cascade' asks about those that the heuristic leaves uncertain, any other about all that no hard rule
    rejects."""
    stamp: Stamp
    """Of the verdicts."""
    clone: Path | None
    """Where functions and calls are read; None: the diff alone is shown."""
    discussions: Discussions | None = None
    """What was said of changes; None: nothing of it is shown."""

    @cached_property
    def _heuristic(self) -> Heuristic:
        return Heuristic(self.settings, self.stamp, self.discussions.results if self.discussions else None)

    def sort(self, change: Change) -> tuple[Verdict, bool]:
        """The heuristic's verdict, and whether a model is asked."""
        verdict = self._heuristic.judge(change)
        if verdict.reason not in (None, Reason.UNLIKELY):
            return verdict, False
        settings = self.settings
        uncertain = settings.ask_from <= verdict.probability < settings.ask_below
        return verdict, uncertain or settings.judge != "cascade"

    def about(self, change: Change, before: Verdict) -> Question:
        """What is asked about a change."""
        said = self.discussions.of(change) if self.discussions else None
        context = context_of(self.clone, change, self.settings.context_tokens, said)
        request = _prompt(VERSION_WITH_DISCUSSION if said else VERSION).request(
            Opinion,
            "judge",
            change.change_id,
            values={"context": context},
            max_tokens=self.settings.answer_tokens,
            seed=1,
        )
        return Question(change, before, request, context.diff)


@dataclass
class ModelJudge:
    """Judges by a model, and by hard rules (and, as a cascade, by the heuristic) where no question is needed."""

    name: str
    """Of the verdicts that the model gives: 'provider:model'. Others bear the heuristic's."""
    questions: Questions
    client: Client
    at_once: int | None = None
    """Questions made and asked together; None: all of them (batches and exchanged files)."""
    usage: dict[str, Usage] = field(default_factory=dict)
    """Tokens by change, those from a cache included."""

    def judge(self, change: Change) -> Verdict:
        """The verdict on one change; raises as `judge_all` does."""
        return next(iter(self.judge_all([change])))

    def judge_all(self, changes: Iterable[Change]) -> Iterator[Verdict]:
        """One verdict a change: first those that need no model, then as answers come.

        What was yielded before an error is final; the same call later asks nothing twice.

        Raises:
            BudgetExceeded, AnswersAwaited, AnswerMissing, ModelFailed: see `Client.ask_all`.
        """
        waiting: list[tuple[Change, Verdict]] = []
        for change in changes:
            verdict, asked = self.questions.sort(change)
            if asked:
                waiting.append((change, verdict))
            else:
                yield verdict
        waiting.sort(key=lambda pair: -pair[1].probability)  # what a budget ends is the least probable
        step = self.at_once or len(waiting) or 1
        for start in range(0, len(waiting), step):
            yield from self._ask([self.questions.about(*pair) for pair in waiting[start : start + step]])

    def _ask(self, questions: Sequence[Question]) -> Iterator[Verdict]:
        unsure: list[Question] = []
        awaited: list[AnswersAwaited] = []
        for one in self._answered(questions, [1] * len(questions), awaited):
            if self._needs_more(one):
                unsure.append(one)
            else:
                yield self._verdict(one)
        more = range(2, self.questions.settings.votes + 1)
        again = [one for one in unsure for _ in more]
        for one in self._answered(again, [number for _ in unsure for number in more], awaited):
            if len(one.by_number) == self.questions.settings.votes:
                yield self._verdict(one)
        if awaited:
            raise type(awaited[0])(" ".join(map(str, awaited)))

    def _answered(
        self, asked: Sequence[Question], numbers: Sequence[int], awaited: list[AnswersAwaited]
    ) -> Iterator[Question]:
        """Notes the answers as they come; notes instead of raising that some are awaited: more is to be asked."""
        requests = [one.vote(number) for one, number in zip(asked, numbers, strict=True)]
        try:
            for place, answer in self.client.ask_all(requests):
                asked[place].by_number[numbers[place]] = answer
                yield asked[place]
        except AnswersAwaited as error:
            awaited.append(error)

    def _needs_more(self, one: Question) -> bool:
        first = next(iter(one.votes), None)
        return (
            first is not None
            and self.questions.settings.votes > 1
            and first.confidence < self.questions.settings.sure_from
        )

    def _verdict(self, one: Question) -> Verdict:
        answers, votes, change = one.answers, one.votes, one.change
        usage = self.usage[change.change_id] = sum((answer.usage for answer in answers), Usage())
        costs = [answer.cost_usd for answer in answers]
        opinion = self._opinion(votes) if votes else _no_opinion(answers[0], one.before)
        return Verdict(
            **self.questions.stamp.fields(),
            **opinion,
            change_id=change.change_id,
            judge=self.name,
            tokens=usage.input_tokens + usage.output_tokens,
            cost_usd=None if None in costs else sum(cost or 0.0 for cost in costs),
            cached=all(answer.cached for answer in answers),
        )

    def _opinion(self, votes: Sequence[Vote]) -> dict[str, Any]:
        """What the votes come to, as columns of a verdict."""
        probability = probability_of(votes, self.questions.settings)
        rejected = self._reason(votes, probability)
        return {
            "status": "rejected" if rejected else "kept",
            "reason": rejected and rejected.value,
            "is_performance": self._class(probability, rejected),
            "probability": probability,
            "why": _why(votes, probability)[:_WHY],
            "apis": list(dict.fromkeys(api for vote in votes if vote.answer != "no" for api in vote.apis)),
            "signals": _signals(votes, probability),
        }

    def _reason(self, votes: Sequence[Vote], probability: float) -> Reason | None:
        if probability < self.questions.settings.model_keep_from:
            disguised = most(vote.opinion.disguise for vote in votes) != "none"
            return Reason.IN_DISGUISE if disguised else Reason.UNLIKELY
        return None if most(vote.opinion.testable_on_cpu for vote in votes) else Reason.NOT_ON_CPU

    def _class(self, probability: float, rejected: Reason | None) -> Literal["yes", "no", "unsure"]:
        if rejected in (Reason.UNLIKELY, Reason.IN_DISGUISE):
            return "no"
        return "yes" if probability >= self.questions.settings.yes_from else "unsure"


def _no_opinion(answer: Answer[Opinion], before: Verdict) -> dict[str, Any]:
    """What a bad answer comes to, as columns of a verdict."""
    reason = Reason.REFUSED if answer.status == "refused" else Reason.MALFORMED
    return {
        "status": "rejected",
        "reason": reason.value,
        "is_performance": "unsure",
        "probability": before.probability,
        "why": f"{MEANING[reason]}: {visible(answer.detail)}"[:_WHY],
    }


def _leading(votes: Sequence[Vote], probability: float) -> Vote:
    """The surest vote on the side that won."""
    side = 1 if probability >= 0.5 else -1
    return max(votes, key=lambda vote: side * vote.probability)


def _why(votes: Sequence[Vote], probability: float) -> str:
    why = " ".join(visible(_leading(votes, probability).opinion.why).split())
    if len(votes) == 1:
        return why
    return f"votes: {', '.join(vote.answer for vote in votes)}. {why}"


def _signals(votes: Sequence[Vote], probability: float) -> list[Signal]:
    """The kind of gain, which bears the log-odds, and the quotes of the leading vote."""
    leading = _leading(votes, probability)
    first = Signal(name=most(vote.opinion.kind for vote in votes), weight=round(log_odds(probability), 4))
    quotes = [("quote", quote) for quote in leading.verified]
    quotes += [("quote that is not in the diff", quote) for quote in leading.unverified]
    shown = [Signal(name=name, weight=0.0, evidence=visible(quote)[:_QUOTE]) for name, quote in quotes]
    return [first, *shown]
