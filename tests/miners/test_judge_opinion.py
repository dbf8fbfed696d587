"""Quotes are looked up, votes weighed, probabilities calibrated and scored."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from perfquarry.data.records import Verdict
from perfquarry.miners.judge.opinion import Opinion, Vote, probability_of
from perfquarry.miners.judge.scores import Judged, calibrate, score
from perfquarry.miners.settings import JudgeSettings

DIFF = """--- lib/core.py
@@ -1,4 +1,4 @@ def f(xs):
     total = 0
-    for x in list(xs):
+    for  x in xs:  # \u202efast
         total += x
+    y"""


def opinion(*evidence: str, **values: Any) -> Opinion:
    defaults: dict[str, Any] = {
        "why": "", "kind": "memory", "apis": [], "disguise": "none", "testable_on_cpu": True, "answer": "yes",
        "confidence": 0.9,
    }  # fmt: skip
    return Opinion(**{**defaults, **values}, evidence=list(evidence))


@pytest.mark.parametrize(
    ("quote", "there"),
    [
        ("for x in list(xs):", True),
        ("-    for x in list(xs):", True),
        ("for x in xs:", True),
        ("for x in list(xs):\nfor x in xs:", True),
        ("+ for x in xs:  # \\u{202e}fast", True),
        ("+ for x in xs:  # \u202efast", True),
        ("list(xs)", True),
        ("total += x", False),
        ("total = 0\nfor x in xs:", True),
        ("for x in tuple(xs):", False),
        ("for x in list(xs): total", False),
        ("y", False),
        ("lib/core.py", False),
        ("@@ -1,4 +1,4 @@ def f(xs):", False),
        ("", False),
        ("\n", False),
        ("[left out: 1 of 4 parts, 10 lines: a.py]", False),
    ],
    ids=str,
)
def test_a_quote_is_a_line_that_the_diff_adds_or_removes(quote: str, there: bool) -> None:
    vote = Vote.of(opinion(quote), DIFF)
    assert (vote.verified == [quote]) is there and (vote.unverified == [quote]) is not there


def test_quotes_that_are_not_there_take_their_share_of_the_confidence() -> None:
    good, bad = "for x in xs:", "for x in tuple(xs):"
    votes = [Vote.of(opinion(*quotes), DIFF) for quotes in ([good], [good, bad], [good, bad, bad, bad], [bad], [])]
    assert [(vote.answer, round(vote.confidence, 3)) for vote in votes] == [
        ("yes", 0.9), ("yes", 0.7), ("yes", 0.6), ("unsure", 0.5), ("unsure", 0.5),
    ]  # fmt: skip
    no = Vote.of(opinion(good, answer="no", confidence=0.8), DIFF)
    assert (no.answer, round(no.probability, 3)) == ("no", 0.2)
    assert Vote.of(opinion(good, confidence=0.1), DIFF).probability == 0.5, "less than a toss of a coin is none"
    assert Vote.of(opinion(good, answer="unsure", confidence=1.0), DIFF).probability == 0.5


def test_names_of_apis_are_names() -> None:
    apis = ["np.add", "np.add", "see docs", "rm -rf /", "", "a.b(c)", "A.b_c", "x" * 3, "y", "z", "w"]
    assert Vote.of(opinion(apis=apis), DIFF).apis == ["np.add", "A.b_c", "xxx", "y", "z"]


def test_votes_are_averaged_in_log_odds_and_calibrated() -> None:
    good = "for x in xs:"
    votes = [Vote.of(opinion(good, answer=answer, confidence=c), DIFF) for answer, c in (("yes", 0.9), ("no", 0.6))]
    mean = (math.log(9) + math.log(0.4 / 0.6)) / 2
    assert probability_of(votes, JudgeSettings()) == pytest.approx(1 / (1 + math.exp(-mean)))
    calibrated = JudgeSettings(slope=0.5, intercept=-1.0)
    assert probability_of(votes, calibrated) == pytest.approx(1 / (1 + math.exp(-(0.5 * mean - 1))))
    certain = [Vote.of(opinion(good, confidence=1.0), DIFF)] + [Vote.of(opinion(good, answer="no"), DIFF)] * 3
    assert probability_of(certain, JudgeSettings()) < 0.5, "no single vote outvotes the others"


def judged(probability: float, improves: bool, weight: float = 1.0, keep: float = 0.3) -> Judged:
    verdict = Verdict(
        repo="r", stage_version="1", config_hash="0", change_id="c", judge="openai:m", probability=probability,
        status="kept" if probability >= keep else "rejected", reason=None if probability >= keep else "unlikely",
        is_performance="yes" if probability >= 0.5 else "no",
    )  # fmt: skip
    return Judged(verdict, improves, weight)


def test_scores_are_weighted() -> None:
    rows = [judged(0.9, True), judged(0.8, False, 3.0), judged(0.4, True), judged(0.1, False, 5.0), judged(0.2, True)]
    scores = score(rows)
    assert (scores.labels, scores.improvements, scores.rejected) == (5, 3, {"unlikely": 2})
    assert scores.yes.precision == pytest.approx(1 / 4) and scores.yes.recall == pytest.approx(1 / 3)
    assert scores.goes_on.precision == pytest.approx(2 / 5) and scores.goes_on.recall == pytest.approx(2 / 3)
    assert (scores.goes_on.chosen, scores.goes_on.found, scores.goes_on.missed) == (3, 2, 1)
    squares = 0.01 + 3 * 0.64 + 0.36 + 5 * 0.01 + 0.64
    assert scores.brier == pytest.approx(squares / 11)
    assert [(one.low, one.labels) for one in scores.bins] == [(0.1, 1), (0.2, 1), (0.4, 1), (0.8, 1), (0.9, 1)]
    assert score([judged(0.1, False)]).yes.precision is None


def test_a_boastful_judge_is_calibrated() -> None:
    """Log-odds three times too large: the fitted slope takes that back, and unseen changes profit."""
    rng = np.random.default_rng(1)
    true = rng.normal(0, 1.2, 2000)
    rows = [
        judged(1 / (1 + math.exp(-(3 * one))), bool(rng.random() < 1 / (1 + math.exp(-(one - 0.5))))) for one in true
    ]
    fitted = calibrate(rows, 1.0, 0.0)
    assert fitted is not None and fitted.brier < score(rows).brier - 0.02
    assert fitted.slope == pytest.approx(1 / 3, abs=0.05) and fitted.intercept == pytest.approx(-0.5, abs=0.15)
    again = calibrate(rows, 2.0, 1.0)
    assert again is not None and again.slope == pytest.approx(2 * fitted.slope, rel=0.01), "of the votes' own log-odds"
    assert calibrate([judged(0.9, True)] * 20, 1.0, 0.0) is None
