"""`perfquarry judge REPO --count-tokens`: what models would be asked and cost. Nothing is called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType

from perfquarry.data.errors import InputError
from perfquarry.flows.joining import discussions
from perfquarry.flows.options import Options
from perfquarry.flows.output import Listing, put
from perfquarry.flows.run import Run
from perfquarry.llm.prices import published
from perfquarry.llm.spec import ModelSpec
from perfquarry.miners.judge import Questions, spec_of
from perfquarry.miners.judge.bills import Bill, TokenCount, bill_of, token_count


def report(options: Options, *, as_json: bool) -> None:
    """Counts the tokens of the mined history, and prices them.

    Raises:
        InputError: nothing is mined, or no judge has that name.
    """
    run = Run.open(options.model_dump_json())
    spec = spec_of(options.settings.judge)
    if spec is None:
        raise InputError("the heuristic asks no model: add --judge cascade, or --judge openai:MODEL")
    settings = options.settings
    questions = Questions(settings.judge, run.stamp("judge"), run.clone, discussions(run))
    count, sizes = token_count(run, questions, settings.judge, run.asked_for())
    if not count.changes:
        raise InputError(f"nothing of {run.name} in {run.home.tables}: run `perfquarry mine {run.options.repo}` first")
    kind, rest = ModelSpec.parse(spec)
    models = [rest] if kind in ("openai", "anthropic") else sorted(published()[0])
    bills = [bill_of(model, sizes, count, settings.llm) for model in models]
    parts = _shown(count, bills, batch=settings.llm.batch)
    put({**count.model_dump(), "models": bills}, parts, as_json=as_json)


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
