"""`perfquarry judge --evaluate` and `--count-tokens`: any judge against labelled changes, and what it would cost."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import RenderableType

from perfquarry.curation.plots.repository import judge_plot
from perfquarry.data.errors import AnswersAwaited, InputError
from perfquarry.data.output import Listing, Report
from perfquarry.flows.judging import judging
from perfquarry.flows.options import Options
from perfquarry.flows.run import Run
from perfquarry.llm.prices import Prices, published
from perfquarry.llm.spec import ModelSpec
from perfquarry.miners.history import crawl
from perfquarry.miners.judge import ModelJudge, Questions, spec_of
from perfquarry.miners.judge.bills import Bill, TokenCount, bill_of, token_count
from perfquarry.miners.judge.labels import LabelRow, read_labels
from perfquarry.miners.judge.scores import Calibration, Judged, Scores, calibrate, score
from perfquarry.miners.pulls.joined import discussions


@dataclass
class _Found:
    """What came of the labels of all repositories."""

    name: str = ""
    rows: list[Judged] = field(default_factory=list)
    asked: list[Judged] = field(default_factory=list)
    """Those that a model judged."""
    tokens: int = 0
    usd: float | None = 0.0
    """Weighted as the labels, at the prices of the list, whatever came from a cache."""

    @property
    def usd_per_1000(self) -> float | None:
        return None if self.usd is None else 1000 * self.usd / sum(row.weight for row in self.rows)


def evaluation(options: Options, file: Path, plot: Path | None) -> Report:
    """Judges the labelled changes and says how good the judge is; nothing is written to the table of verdicts.

    Raises:
        InputError: the file is none of labels, or a commit is not in its repository.
        PerfquarryError: the model could not be asked to the end; what was answered is kept.
    """
    found = _judge(options, read_labels(file))
    if not found.rows:
        raise InputError(f"{file} has no label yes or no")
    scores = score(found.rows)
    settings = options.settings.judge
    fitted = calibrate(found.asked, settings.slope, settings.intercept)
    name = re.sub(r"[^\w.-]+", "-", found.name)
    plot = plot or Path(options.home) / "evaluations" / f"{file.stem}-{name}.svg"
    draw(scores, f"{found.name} on {file.name}", plot)
    facts = {"judge": found.name, **scores.model_dump(), "asked": len(found.asked), "tokens": found.tokens}
    facts |= {"usd_per_1000_changes": found.usd_per_1000, "plot": str(plot), "calibration": fitted}
    return Report(facts, _shown(found, scores, fitted, plot))


def draw(scores: Scores, title: str, path: Path) -> None:
    """Writes the plot of a judge as SVG."""
    text = judge_plot(scores, title)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write the plot {path}: {error}") from error


def _judge(options: Options, labels: list[LabelRow]) -> _Found:
    by_repo: dict[tuple[str, str | None], dict[str, LabelRow]] = defaultdict(dict)
    for label in labels:
        if label.label is not None:
            by_repo[label.repo, label.source][label.sha] = label
    found = _Found()
    awaited: AnswersAwaited | None = None
    for (repo, source), by_sha in by_repo.items():
        own = options.model_copy(update={"repo": repo, "source": source or options.source})
        try:
            _judge_repository(Run.open(own.model_dump_json()), by_sha, found)
        except AnswersAwaited as error:  # the other repositories' questions are to be written down, too
            awaited = awaited or error
    if awaited:
        raise awaited
    return found


def _judge_repository(run: Run, by_sha: dict[str, LabelRow], found: _Found) -> None:
    settings = run.options.settings
    changes = {
        change.change_id: change
        for change in crawl(run.clone, run.stamp("mine"), settings.mine, only=sorted(by_sha), places=run.places)
        if change.status == "kept"
    }
    prices = Prices(settings.llm.prices)
    with judging(run) as judge:
        found.name = judge.name
        for verdict in judge.judge_all(changes.values()):
            sha = changes[verdict.change_id].head_sha
            label = by_sha.get(sha) or next(one for start, one in by_sha.items() if sha.startswith(start))
            row = Judged(verdict, bool(label.label), label.weight)
            found.rows.append(row)
            if isinstance(judge, ModelJudge) and verdict.change_id in judge.usage:
                usage = judge.usage[verdict.change_id]
                found.asked.append(row)
                found.tokens += usage.input_tokens + usage.output_tokens
                usd = prices.cost(judge.name.partition(":")[2], usage, batch=settings.llm.batch)
                found.usd = None if usd is None or found.usd is None else found.usd + usd * label.weight


def _shown(found: _Found, scores: Scores, fitted: Calibration | None, plot: Path) -> Iterator[RenderableType]:
    yield f"{found.name}: {scores.labels} labels, {scores.improvements} improvements; a model judged {len(found.asked)}"
    choices = Listing(("", ">precision", ">recall", ">chosen", ">found", ">missed"))
    for name, one in (("goes on", scores.goes_on), ("called yes", scores.yes)):
        shares = ["–" if value is None else f"{100 * value:.1f} %" for value in (one.precision, one.recall)]
        choices.add(name, *shares, str(one.chosen), str(one.found), str(one.missed))
    bins = Listing((">probability", ">labels", ">mean", ">improvements"), "Reliability")
    for group in scores.bins:
        span, shares = (
            f"{group.low:.1f}–{group.high:.1f}",
            [f"{value:.3f}" for value in (group.probability, group.share)],
        )
        bins.add(span, str(group.labels), *shares)
    usd = "not known" if found.usd_per_1000 is None else f"{found.usd_per_1000:.2f}"
    yield from ("", choices, "", bins, "")
    yield f"Brier score {scores.brier:.4f}; USD per 1,000 changes {usd} ({found.tokens:,} tokens)"
    if fitted:
        yield f"Calibrated on these labels, the Brier score of unseen changes is {fitted.brier:.4f}: in the settings,"
        yield f"[judge]\nslope = {fitted.slope}\nintercept = {fitted.intercept}"
    yield f"Plot: {plot}"


def tokens(options: Options) -> Report:
    """Counts the tokens of the mined history, and prices them.

    Raises:
        InputError: nothing is mined, or no judge has that name.
    """
    run = Run.open(options.model_dump_json())
    spec = spec_of(options.settings.judge)
    if spec is None:
        raise InputError("the heuristic asks no model: add --judge cascade, or --judge openai:MODEL")
    settings = options.settings
    questions = Questions(settings.judge, run.stamp("judge"), run.clone, discussions(run, run.clone, settings.pulls))
    count, sizes = token_count(run, questions, settings.judge, run.asked_for())
    if not count.changes:
        raise InputError(f"nothing of {run.name} in {run.home.tables}: run `perfquarry mine {run.options.repo}` first")
    kind, rest = ModelSpec.parse(spec)
    models = [rest] if kind in ("openai", "anthropic") else sorted(published()[0])
    bills = [bill_of(model, sizes, count, settings.llm) for model in models]
    parts = _bills(count, bills, batch=settings.llm.batch)
    return Report({**count.model_dump(), "models": bills}, parts)


def _bills(count: TokenCount, bills: Sequence[Bill], *, batch: bool) -> Iterator[RenderableType]:
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
