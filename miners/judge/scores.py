"""How good a judge is on labelled changes: precision, recall, calibration. All figures are weighted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its submodules are imported when first used
from numpy.typing import NDArray

from perfquarry.data.records import Record, Verdict

Floats = NDArray[np.float64]
BINS = tuple(number / 10 for number in range(11))
FOLDS = 5
MOST_THRESHOLDS = 60
_CLIP = 1e-4


@dataclass(frozen=True)
class Judged:
    """A labelled change and its verdict."""

    verdict: Verdict
    improves: bool
    weight: float = 1.0
    """Changes of the history that the label stands for."""


class Choice(Record):
    """How well one way of choosing changes finds the improvements."""

    chosen: int
    found: int
    missed: int
    precision: float | None
    recall: float | None


class Bin(Record):
    """Changes whose probabilities lie from `low` to below `high`."""

    low: float
    high: float
    labels: int
    probability: float
    """Mean."""
    share: float
    """Of improvements."""
    share_low: float
    """95 % interval of `share` (Wilson 1927; of weighted labels with Kish's number of equal ones)."""
    share_high: float


class Threshold(Record):
    """Changes whose probability is `probability` or more, taken as improvements."""

    probability: float
    precision: float
    precision_low: float
    """95 % interval, as of `Bin.share_low`."""
    precision_high: float
    recall: float
    recall_low: float
    recall_high: float


class Calibration(Record):
    """Platt's line through the log-odds, fitted on these labels: to be put into the settings."""

    slope: float
    intercept: float
    brier: float
    """Of changes that the fit did not see (`FOLDS` folds)."""


class Scores(Record):
    """The figures of a judge."""

    labels: int
    improvements: int
    goes_on: Choice
    """What the stage keeps."""
    yes: Choice
    """What is called a yes."""
    brier: float
    """Mean squared distance of probability and truth: 0 is perfect, 0.25 a coin toss."""
    bins: list[Bin]
    curve: list[Threshold]
    """By falling probability: each that a verdict has, at most `MOST_THRESHOLDS`."""
    rejected: dict[str, int]
    """Changes by reason."""


def score(rows: Sequence[Judged]) -> Scores:
    """The figures; `rows` must not be empty."""
    probabilities, truth, weights = _arrays(rows)
    reasons = [row.verdict.reason for row in rows if row.verdict.reason]
    return Scores(
        labels=len(rows),
        improvements=int(truth.sum()),
        goes_on=_choice(rows, lambda verdict: verdict.status == "kept"),
        yes=_choice(rows, lambda verdict: verdict.is_performance == "yes"),
        brier=_brier(probabilities, truth, weights),
        bins=_bins(probabilities, truth, weights),
        curve=_curve(probabilities, truth, weights),
        rejected={reason: reasons.count(reason) for reason in sorted(set(reasons))},
    )


def calibrate(rows: Sequence[Judged], slope: float, intercept: float) -> Calibration | None:
    """Fits anew what turns mean log-odds of votes into probabilities; None without labels of both kinds.

    Args:
        rows: verdicts of a model, made with `slope` and `intercept`.
    """
    if len({row.improves for row in rows}) < 2 or len(rows) < 2 * FOLDS:
        return None
    probabilities, truth, weights = _arrays(rows)
    scores = (scipy.special.logit(np.clip(probabilities, _CLIP, 1 - _CLIP)) - intercept) / slope
    fold = np.random.default_rng(20261121).permutation(len(rows)) % FOLDS
    unseen = np.zeros(len(rows))
    for one in range(FOLDS):
        here = fold == one
        a, b = _platt(scores[~here], truth[~here], weights[~here])
        unseen[here] = scipy.special.expit(a * scores[here] + b)
    a, b = _platt(scores, truth, weights)
    return Calibration(slope=round(a, 4), intercept=round(b, 4), brier=_brier(unseen, truth, weights))


def _arrays(rows: Sequence[Judged]) -> tuple[Floats, Floats, Floats]:
    columns = zip(*((row.verdict.probability, float(row.improves), row.weight) for row in rows), strict=True)
    probabilities, truth, weights = (np.array(column, dtype=np.float64) for column in columns)
    return probabilities, truth, weights


def _platt(scores: Floats, truth: Floats, weights: Floats) -> tuple[float, float]:
    """Slope and intercept (Platt 1999), with his softened targets so that few labels give no certainty."""
    yes = float(truth.sum())
    targets = np.where(truth == 1, (yes + 1) / (yes + 2), 1 / (len(truth) - yes + 2))
    weights = weights / weights.mean()

    def loss(theta: Floats) -> float:
        line = theta[0] * scores + theta[1]
        return float(np.sum(weights * (np.logaddexp(0.0, line) - targets * line)))

    slope, intercept = scipy.optimize.minimize(
        loss, np.array([1.0, 0.0]), method="L-BFGS-B", bounds=[(0.05, 5.0), (None, None)]
    ).x
    return float(slope), float(intercept)


def _brier(probabilities: Floats, truth: Floats, weights: Floats) -> float:
    return float(np.average((probabilities - truth) ** 2, weights=weights))


def _choice(rows: Sequence[Judged], chosen: Callable[[Verdict], bool]) -> Choice:
    inside = [row for row in rows if chosen(row.verdict)]
    found = [row for row in inside if row.improves]
    improvements = [row for row in rows if row.improves]
    return Choice(
        chosen=len(inside),
        found=len(found),
        missed=len(improvements) - len(found),
        precision=_weight(found) / _weight(inside) if inside else None,
        recall=_weight(found) / _weight(improvements) if improvements else None,
    )


def _weight(rows: Sequence[Judged]) -> float:
    return sum(row.weight for row in rows)


def _bins(probabilities: Floats, truth: Floats, weights: Floats) -> list[Bin]:
    bins = []
    place = np.clip(np.digitize(probabilities, BINS) - 1, 0, len(BINS) - 2)
    for at in range(len(BINS) - 1):
        here = place == at
        if here.any():
            mean = float(np.average(probabilities[here], weights=weights[here]))
            share = float(np.average(truth[here], weights=weights[here]))
            low, high = BINS[at], BINS[at + 1]
            ends = _wilson(share, weights[here])
            facts = {"labels": int(here.sum()), "probability": mean, "share": share}
            bins.append(Bin(low=low, high=high, **facts, share_low=ends[0], share_high=ends[1]))
    return bins


def _curve(probabilities: Floats, truth: Floats, weights: Floats) -> list[Threshold]:
    """Empty without improvements."""
    improvements = truth > 0
    levels = np.unique(probabilities)[::-1]
    if len(levels) > MOST_THRESHOLDS:
        levels = levels[np.linspace(0, len(levels) - 1, MOST_THRESHOLDS).astype(int)]
    curve = []
    for level in levels if improvements.any() else ():
        chosen = probabilities >= level
        precision = float(np.average(truth[chosen], weights=weights[chosen]))
        recall = float(np.average(chosen[improvements], weights=weights[improvements]))
        low, high = _wilson(precision, weights[chosen])
        least, most = _wilson(recall, weights[improvements])
        curve.append(
            Threshold(
                probability=float(level),
                precision=precision,
                precision_low=low,
                precision_high=high,
                recall=recall,
                recall_low=least,
                recall_high=most,
            )
        )
    return curve


def _wilson(share: float, weights: Floats) -> tuple[float, float]:
    """95 % interval of a weighted share."""
    n = float(weights.sum() ** 2 / (weights**2).sum())
    z = 1.959964
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * float(np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)))
    return max(0.0, middle - half), min(1.0, middle + half)
