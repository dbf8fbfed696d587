"""The figures of the heuristic judge: recall at a budget, calibration, keywords, known improvements."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from perfquarry.miners.settings import JudgeSettings

BUDGETS = (0.01, 0.02, 0.05, 0.10, 0.20)
DRAWS = 20_000
GSO_KEYWORDS = re.compile(r"perf|performance|optimize|speed up|speedup|is slow|faster|overhead|latency", re.IGNORECASE)
"""The nine keywords of GSO's pre-filter, anywhere in a message."""
BINS = (0.0, 0.01, 0.03, 0.1, 0.3, 0.6, 1.0)
KNOWN = {
    "tornado": ["68e81b4a", "f4b3e960", "03198b55", "0acb0aad", "549edaf6", "61a535b2", "b555071b", "64de184a"],
    "sortedcontainers": ["6ee5d57", "b5395b5", "b96c9b8", "43a9643", "e9a2597", "a30aa20"],
}
"""Improvements known beforehand; looked at last, used for nothing else."""


@dataclass(frozen=True)
class Judged:
    """A labelled change of a held-out history."""

    repo: str
    improves: bool
    stratum: str
    weight: float
    """Changes of the history it stands for."""
    probability: float
    rank: float
    """Place in the ranking of the whole history, as a share of it."""
    message: str


@dataclass(frozen=True)
class History:
    """A held-out history, judged as a whole."""

    repo: str
    rows: list[Judged]
    probabilities: dict[str, float]
    rank: dict[str, float]
    milliseconds: float
    """CPU time a change with a source diff."""
    messages: dict[str, str]


def recall(rows: Iterable[Judged], found: Callable[[Judged], bool]) -> float:
    """Share of the improvements that are found, by inverse-probability weights; NaN without any."""
    yes = [row for row in rows if row.improves]
    total = sum(row.weight for row in yes)
    return sum(row.weight for row in yes if found(row)) / total if total else float("nan")


def interval(rows: Sequence[Judged], found: Callable[[Judged], bool]) -> tuple[float, float]:
    """95 % interval of `recall`, seeded.

    The shares of improvements among the changes found and among the others have Jeffreys posteriors,
    Beta(k + 1/2, n - k + 1/2), with Kish's effective sample size n; so that no miss among n labels
    does not pass for certainty, as it would with a bootstrap.
    """
    rng = np.random.default_rng(20261121)
    masses = []
    for inside in (True, False):
        members = [row for row in rows if found(row) == inside]
        weights = np.array([row.weight for row in members])
        if not weights.sum():
            masses.append(np.zeros(DRAWS))
            continue
        share = sum(row.weight for row in members if row.improves) / weights.sum()
        size = weights.sum() ** 2 / (weights**2).sum()
        masses.append(weights.sum() * rng.beta(share * size + 0.5, (1 - share) * size + 0.5, DRAWS))
    low, high = np.percentile(masses[0] / (masses[0] + masses[1]), [2.5, 97.5])
    return float(low), float(high)


def section(histories: list[History], fitted: dict[str, Any], settings: JudgeSettings, machine: str) -> str:
    """The Markdown of the section."""
    rows = [row for history in histories for row in history.rows]
    largest = len(max(histories, key=lambda h: len(h.rank)).rank)
    return "\n".join(
        [
            f"Fitted on {fitted['labels']} labelled changes ({fitted['improvements']} improvements) of "
            f"{', '.join(fitted['repositories'])}; log-loss {fitted['log_loss_left_out']} and AUC "
            f"{fitted['auc_left_out']} with each repository left out in turn. Evaluated on {len(rows)} labels of "
            f"histories it was not fitted on, "
            f"weighted to the whole histories (the largest has {largest} changes). Ranks are among all changes of a "
            f"history, merges and rejected ones included. {machine}.",
            "",
            *_recall_table(histories, rows),
            "",
            *_keywords(histories, rows),
            "",
            *_reliability(rows),
            "",
            *_histories(histories, settings),
            "",
            *_known(histories),
        ]
    )


def _recall_table(histories: list[History], rows: list[Judged]) -> list[str]:
    lines = [
        "Recall of true improvements within the top of the ranking (95 % interval):",
        "",
        "| repository | changes | improvements labelled | " + " | ".join(f"top {100 * b:g} %" for b in BUDGETS) + " |",
        "|---|---|---|" + "---|" * len(BUDGETS),
    ]
    groups = [(h.repo, str(len(h.rank)), h.rows) for h in histories]
    for name, changes, members in [*groups, ("all", "", rows)]:
        cells = []
        for budget in BUDGETS:
            value = recall(members, lambda row, b=budget: row.rank <= b)  # type: ignore[misc]
            low, high = interval(members, lambda row, b=budget: row.rank <= b)  # type: ignore[misc]
            cells.append(f"{100 * value:.0f} % ({100 * low:.0f}–{100 * high:.0f})")
        lines.append(f"| {name} | {changes} | {sum(r.improves for r in members)} | " + " | ".join(cells) + " |")
    return lines


def _keywords(histories: list[History], rows: list[Judged]) -> list[str]:
    def found(row: Judged) -> bool:
        return GSO_KEYWORDS.search(row.message) is not None

    shares = [np.mean([bool(GSO_KEYWORDS.search(m)) for m in h.messages.values()]) for h in histories]
    value, (low, high) = recall(rows, found), interval(rows, found)
    silent = [row for row in rows if not found(row)]
    inside, (inside_low, inside_high) = recall(silent, _top_tenth), interval(silent, _top_tenth)
    return [
        f"GSO's nine keywords on the same labels find {100 * value:.0f} % ({100 * low:.0f}–{100 * high:.0f}) and flag "
        f"{100 * min(shares):.1f}–{100 * max(shares):.1f} % of a history. Of the improvements without any of these "
        f"words, {100 * inside:.0f} % ({100 * inside_low:.0f}–{100 * inside_high:.0f}) are within the top 10 %.",
    ]


def _top_tenth(row: Judged) -> bool:
    return row.rank <= 0.10


def _reliability(rows: list[Judged]) -> list[str]:
    lines = [
        "Reliability (weighted):",
        "",
        "| probability | labels | mean probability | share of improvements |",
        "|---|---|---|---|",
    ]
    for low, high in pairwise(BINS):
        members = [row for row in rows if low <= row.probability < high or (high == 1.0 and row.probability == 1.0)]
        total = sum(row.weight for row in members)
        if total:
            mean = sum(row.weight * row.probability for row in members) / total
            share = sum(row.weight for row in members if row.improves) / total
            lines.append(f"| {low:g}–{high:g} | {len(members)} | {mean:.3f} | {share:.3f} |")
    return lines


def _histories(histories: list[History], settings: JudgeSettings) -> list[str]:
    lines = [
        f"What goes on with `keep_from` = {settings.keep_from:g}:",
        "",
        "| repository | kept | called yes | of the improvements are kept | CPU ms a change with a source diff |",
        "|---|---|---|---|---|",
    ]
    for history in histories:
        values = np.array(list(history.probabilities.values()))
        kept = recall(history.rows, lambda row: row.probability >= settings.keep_from)
        lines.append(
            f"| {history.repo} | {100 * np.mean(values >= settings.keep_from):.1f} % | "
            f"{100 * np.mean(values >= settings.yes_from):.1f} % | {100 * kept:.0f} % | {history.milliseconds:.2f} |"
        )
    return lines


def _known(histories: list[History]) -> list[str]:
    lines = ["Improvements known beforehand (not used in fitting): rank as a share of the history, probability.", ""]
    for history in histories:
        for known in KNOWN.get(history.repo, []):
            sha = next((s for s in history.rank if s.startswith(known)), None)
            if sha is not None:
                lines.append(
                    f"- {history.repo} {known}: {100 * history.rank[sha]:.1f} %, {history.probabilities[sha]:.3f}"
                )
    return lines
