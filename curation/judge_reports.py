"""`perfquarry judge --evaluate` and `--count-tokens`: any judge against labelled changes, and what it would cost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import RenderableType

from perfquarry.curation.plots.repository import judge_plot
from perfquarry.data.errors import InputError
from perfquarry.data.home import Home
from perfquarry.data.output import Listing, Report
from perfquarry.data.records import Change
from perfquarry.llm.prices import Prices, published
from perfquarry.llm.settings import LlmSettings
from perfquarry.llm.spec import ModelSpec
from perfquarry.miners.judge import Judge, ModelJudge
from perfquarry.miners.judge.bills import TokenCount, bill_of
from perfquarry.miners.judge.labels import LabelRow
from perfquarry.miners.judge.scores import Calibration, Judged, Scores, calibrate, score
from perfquarry.miners.settings import JudgeSettings


@dataclass
class JudgedLabels:
    """What came of the labels of all repositories."""

    name: str = ""
    """Of the judge."""
    rows: list[Judged] = field(default_factory=list)
    asked: list[Judged] = field(default_factory=list)
    """Those that a model judged."""
    tokens: int = 0
    usd: float | None = 0.0
    """Weighted as the labels, at the prices of the list, whatever came from a cache."""

    @property
    def usd_per_1000(self) -> float | None:
        """USD per 1,000 changes of the history."""
        return None if self.usd is None else 1000 * self.usd / sum(row.weight for row in self.rows)

    def add(self, judge: Judge, mined: Iterable[Change], by_sha: Mapping[str, LabelRow], settings: LlmSettings) -> None:
        """Has labelled changes judged; nothing is written to the table of verdicts.

        Raises:
            PerfquarryError: the model could not be asked to the end; what was answered is kept.
        """
        changes = {change.change_id: change for change in mined if change.status == "kept"}
        price = Prices(settings.prices)
        self.name = judge.name
        for verdict in judge.judge_all(changes.values()):
            sha = changes[verdict.change_id].head_sha
            label = by_sha.get(sha) or next(one for start, one in by_sha.items() if sha.startswith(start))
            row = Judged(verdict, bool(label.label), label.weight)
            self.rows.append(row)
            if isinstance(judge, ModelJudge) and verdict.change_id in judge.usage:
                usage = judge.usage[verdict.change_id]
                self.asked.append(row)
                self.tokens += usage.input_tokens + usage.output_tokens
                usd = price.cost(judge.name.partition(":")[2], usage, batch=settings.batch)
                self.usd = None if usd is None or self.usd is None else self.usd + usd * label.weight


def evaluation(found: JudgedLabels, file: Path, plot: Path | None, home: Home, settings: JudgeSettings) -> Report:
    """How good a judge is by what it said of the labels in a file; without a place for it, the plot is in the home.

    Raises:
        InputError: no label says yes or no, or the plot cannot be written.
    """
    if not found.rows:
        raise InputError(f"{file} has no label yes or no")
    scores = score(found.rows)
    fitted = calibrate(found.asked, settings.slope, settings.intercept)
    name = re.sub(r"[^\w.-]+", "-", found.name)
    plot = plot or home.root / "evaluations" / f"{file.stem}-{name}.svg"
    try:
        plot.parent.mkdir(parents=True, exist_ok=True)
        plot.write_text(judge_plot(scores, f"{found.name} on {file.name}"), encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write the plot {plot}: {error}") from error
    facts = {"judge": found.name, **scores.model_dump(), "asked": len(found.asked), "tokens": found.tokens}
    facts |= {"usd_per_1000_changes": found.usd_per_1000, "plot": str(plot), "calibration": fitted}
    return Report(facts, _shown(found, scores, fitted, plot))


def _shown(found: JudgedLabels, scores: Scores, fitted: Calibration | None, plot: Path) -> Iterator[RenderableType]:
    yield f"{found.name}: {scores.labels} labels, {scores.improvements} improvements; a model judged {len(found.asked)}"
    choices = Listing(("", ">precision", ">recall", ">chosen", ">found", ">missed"))
    for name, one in (("goes on", scores.goes_on), ("called yes", scores.yes)):
        shares = ["–" if value is None else f"{100 * value:.1f} %" for value in (one.precision, one.recall)]
        choices.add(name, *shares, str(one.chosen), str(one.found), str(one.missed))
    bins = Listing((">probability", ">labels", ">mean", ">improvements"), "Reliability")
    for group in scores.bins:
        span = f"{group.low:.1f}–{group.high:.1f}"
        bins.add(span, str(group.labels), f"{group.probability:.3f}", f"{group.share:.3f}")
    usd = "not known" if found.usd_per_1000 is None else f"{found.usd_per_1000:.2f}"
    yield from ("", choices, "", bins, "")
    yield f"Brier score {scores.brier:.4f}; USD per 1,000 changes {usd} ({found.tokens:,} tokens)"
    if fitted:
        yield f"Calibrated on these labels, the Brier score of unseen changes is {fitted.brier:.4f}: in the settings,"
        yield f"[judge]\nslope = {fitted.slope}\nintercept = {fitted.intercept}"
    yield f"Plot: {plot}"


def prices(count: TokenCount, sizes: Sequence[int], spec: str, llm: LlmSettings) -> Report:
    """What the questions about a history (see `token_count`) cost: the model of a spec, or all that have a price."""
    kind, rest = ModelSpec.parse(spec)
    models = [rest] if kind in ("openai", "anthropic") else sorted(published()[0])
    bills = [bill_of(model, sizes, count, llm) for model in models]
    share = 100 * count.asked / count.changes
    said = (
        f"{count.judge}: {count.asked} of {count.changes} changes are asked ({share:.1f} %), "
        f"{count.tokens:,} tokens in (median {count.median:,}); answers taken as {count.answer_tokens} tokens.\n"
        "Tokens are estimated, on the high side; thinking, and a provider's own cache of prompts, are not in it."
        + (" Batch prices." if llm.batch else "")
    )
    votes = f">with {count.votes} votes each"
    table = Listing(("model", ">USD", votes, ">USD / 1,000 changes", votes))
    for bill in bills:
        figures = (bill.usd, bill.usd_all_votes, bill.usd_per_1000_changes, bill.usd_per_1000_changes_all_votes)
        table.add(bill.model, *("–" if figure is None else f"{figure:.2f}" for figure in figures))
    return Report({**count.model_dump(), "models": bills}, [said, "", table])
