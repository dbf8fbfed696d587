"""`perfquarry judge REPO --count-tokens`: what models would be asked and cost. Nothing is called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median_high

import pyarrow.compute as pc
from rich.console import RenderableType

from perfquarry.data.errors import InputError
from perfquarry.data.records import Change, Record
from perfquarry.flows.joining import discussions
from perfquarry.flows.options import Options
from perfquarry.flows.output import Listing, put
from perfquarry.flows.run import Run
from perfquarry.llm.prices import Prices, published
from perfquarry.llm.request import Usage
from perfquarry.llm.spec import ModelSpec
from perfquarry.llm.tokens import about_tokens
from perfquarry.miners.judge import Questions, spec_of

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


def report(options: Options, *, as_json: bool) -> None:
    """Counts the tokens of the mined history, and prices them.

    Raises:
        InputError: nothing is mined, or no judge has that name.
    """
    run = Run.open(options.model_dump_json())
    spec = spec_of(options.settings.judge)
    if spec is None:
        raise InputError("the heuristic asks no model: add --judge cascade, or --judge openai:MODEL")
    count, sizes = _count(run)
    kind, rest = ModelSpec.parse(spec)
    models = [rest] if kind in ("openai", "anthropic") else sorted(published()[0])
    bills = [_bill(model, sizes, count, options) for model in models]
    parts = _shown(count, bills, batch=options.settings.llm.batch)
    put({**count.model_dump(), "models": bills}, parts, as_json=as_json)


def _count(run: Run) -> tuple[TokenCount, list[int]]:
    """The sums, and the tokens of each question."""
    settings = run.options.settings.judge
    questions = Questions(settings, run.stamp("judge"), run.clone, discussions(run))
    wanted = run.asked_for()
    changes, sizes = 0, []
    for change in run.store.records(Change, run.name, where=pc.field("status") == "kept", **run.where("mine")):
        if change.change_id not in wanted:
            continue
        changes += 1
        verdict, asked = questions.sort(change)
        if asked:
            sizes.append(about_tokens(questions.about(change, verdict).request.text))
    if not changes:
        raise InputError(f"nothing of {run.name} in {run.home.tables}: run `perfquarry mine {run.options.repo}` first")
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


def _bill(model: str, sizes: Sequence[int], count: TokenCount, options: Options) -> Bill:
    settings = options.settings.llm
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


def _shown(count: TokenCount, bills: Sequence[Bill], *, batch: bool) -> Iterator[RenderableType]:
    share = 100 * count.asked / count.changes
    yield (
        f"{count.judge}: {count.asked} of {count.changes} changes are asked ({share:.1f} %), "
        f"{count.tokens:,} tokens in (median {count.median:,}); answers taken as {count.answer_tokens} tokens.\n"
        "Tokens are estimated, on the high side; thinking, and a provider's own cache of prompts, are not in it."
        + (" Batch prices." if batch else "")
    )
    votes = f">with {count.votes} votes each"
    table = Listing(("model", ">USD", votes, ">USD / 1,000 changes", votes))
    for bill in bills:
        figures = (bill.usd, bill.usd_all_votes, bill.usd_per_1000_changes, bill.usd_per_1000_changes_all_votes)
        table.add(bill.model, *("–" if figure is None else f"{figure:.2f}" for figure in figures))
    yield ""
    yield table
