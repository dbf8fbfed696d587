"""What models would be asked about a history, and what that would cost. Nothing is called."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from statistics import median_high

import pyarrow.compute as pc

from perfquarry.data.own_rows import OwnRows
from perfquarry.data.records import Change, Record
from perfquarry.llm.prices import Prices
from perfquarry.llm.request import Usage
from perfquarry.llm.settings import LlmSettings
from perfquarry.llm.tokens import about_tokens
from perfquarry.miners.judge import Questions
from perfquarry.miners.settings import JudgeSettings

ANSWER = 300
"""Tokens of an answer without thinking, on the high side: its form leaves room for two sentences and four quotes."""


class TokenCount(Record):
    """What a history comes to."""

    judge: str
    changes: int
    asked: int
    tokens: int
    """Of all first questions (`about_tokens`: estimated, on the high side)."""
    median: int
    """Of a question."""
    answer_tokens: int
    votes: int


class Bill(Record):
    """USD for one model: with one answer a question, and with all votes."""

    model: str
    usd: float | None
    usd_all_votes: float | None
    usd_per_1000_changes: float | None
    usd_per_1000_changes_all_votes: float | None


def token_count(
    rows: OwnRows, questions: Questions, settings: JudgeSettings, wanted: Collection[str]
) -> tuple[TokenCount, list[int]]:
    """The sums over the mined changes of these ids, and the tokens of each question."""
    changes, sizes = 0, []
    for change in rows.store.records(Change, rows.name, where=pc.field("status") == "kept", **rows.where("mine")):
        if change.change_id not in wanted:
            continue
        changes += 1
        verdict, asked = questions.sort(change)
        if asked:
            sizes.append(about_tokens(questions.about(change, verdict).request.text))
    count = TokenCount(
        judge=settings.judge,
        changes=changes,
        asked=len(sizes),
        tokens=sum(sizes),
        median=median_high(sizes) if sizes else 0,
        answer_tokens=ANSWER,
        votes=settings.votes,
    )
    return count, sizes


def bill_of(model: str, sizes: Sequence[int], count: TokenCount, settings: LlmSettings) -> Bill:
    """What a model would cost that is asked so."""
    prices = Prices(settings.prices)
    costs = [prices.cost(model, Usage(input_tokens=size, output_tokens=ANSWER), batch=settings.batch) for size in sizes]
    usd = None if None in costs else sum(cost or 0.0 for cost in costs)
    every = None if usd is None else usd * count.votes
    return Bill(
        model=model,
        usd=usd,
        usd_all_votes=every,
        usd_per_1000_changes=_per_1000(usd, count.changes),
        usd_per_1000_changes_all_votes=_per_1000(every, count.changes),
    )


def _per_1000(usd: float | None, changes: int) -> float | None:
    return None if usd is None else 1000 * usd / changes
