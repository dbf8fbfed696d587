"""The heuristic judge: signals, weighted by a logistic regression fitted on our own labels (docs/judge.md)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

from perfquarry.data.records import MEANING as REASONS
from perfquarry.data.records import Change, QuotedResult, Reason, Signal, Stamp, Verdict
from perfquarry.miners.judge import code, rules, shape, words
from perfquarry.miners.judge.diff import JudgedDiff, parse
from perfquarry.miners.judge.finding import JudgeFinding
from perfquarry.miners.judge.forms import PYTHON
from perfquarry.miners.judge.native import NATIVE
from perfquarry.miners.pulls.results import gains
from perfquarry.miners.settings import JudgeSettings

NAME = "heuristic"
WEIGHTS = Path(__file__).with_name("weights.json")
_SHOWN = 0.05
"""Signals that move the log-odds by less are left out of the verdict."""
_MOST = 16
MEANING: dict[str, str] = {form.name: form.says for form in PYTHON + NATIVE} | {
    "title_speed": "the title speaks of speed",
    "body_speed": "the message speaks of speed",
    "comment_speed": "added comments speak of speed",
    "title_saving": "the title speaks of saved work",
    "body_saving": "the message speaks of saved work",
    "title_hint": "the title has words that often go with savings",
    "measured": "the message gives measurements",
    "perf_prefix": "the title is marked as performance",
    "slowdown": "the title says that it becomes slower",
    "speed_elsewhere": "the speed is that of tests, builds or documents",
    "sync": "a branch is only brought up to date",
    "title_fix": "the title speaks of a fix",
    "title_chore": "the title speaks of upkeep",
    "title_feature": "the title speaks of something new",
    "source_files": "many source files",
    "lines": "many lines",
    "tiny": "only a few lines",
    "balance": "about as many lines added as deleted",
    "functions": "functions touched",
    "benchmark_files": "benchmarks are touched",
    "release_notes": "the release notes are touched",
    "tests_added": "tests are added",
    "docs_changed": "documents are changed",
    "new_source_file": "a source file is new",
    "build_files": "build files are touched",
    "merge": "a merge",
    "compiled_source": "compiled code is touched",
    "new_public_names": "new public names",
    "new_definitions": "new definitions",
    "new_errors": "new errors, warnings or checks",
    "type_hints": "type hints",
    "imports": "more imports",
    "strings": "more text output or version checks",
    "only_additions": "nothing is removed",
    "only_deletions": "nothing is added",
    "out_of_loop": "work is moved out of a loop",
    "computed_once": "an expression is computed once",
    "module_constant": "something is computed once, at import",
    "lazy_import": "an import is delayed",
    "loop_removed": "fewer loops",
    "early_exit": "an early exit",
    "fewer_calls": "fewer calls",
    "fast_name": "names speak of a faster way",
}
"""What each signal means, for people: the words of `Verdict.why`."""


class Weights(NamedTuple):
    """The fitted model: log-odds = intercept + Σ weight · value."""

    intercept: float
    by_signal: dict[str, float]


@cache
def weights() -> Weights:
    """The weights in the package (`benchmarks/judge.py` writes them)."""
    stored = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    return Weights(float(stored["intercept"]), {name: float(value) for name, value in stored["weights"].items()})


def observe(change: Change, diff: JudgedDiff) -> list[JudgeFinding]:
    """Everything the judge sees in a change, each signal at most once; depends on nothing else."""
    found = (
        *words.find(change.title, change.message, diff.comments),
        *code.find(diff),
        *shape.find(change, diff),
    )
    return [finding for finding in found if finding.value > 0]


@dataclass(frozen=True)
class Heuristic:
    """Judges by words, kinds of code change and shape; needs neither network nor a clone."""

    name: ClassVar[str] = NAME
    settings: JudgeSettings
    stamp: Stamp
    quoted: Callable[[Change], Sequence[QuotedResult]] | None = None
    """Measurements that were quoted when a change was discussed, where discussions are known. A gain among them is
    the signal that figures in the message are, and weighs as much: it is the same evidence."""

    def judge_all(self, changes: Iterable[Change]) -> Iterator[Verdict]:
        """One verdict a change, in the same order."""
        return map(self.judge, changes)

    def judge(self, change: Change) -> Verdict:
        """The verdict on one change; equal changes get equal verdicts."""
        diff = parse(change.patch)
        reason = rules.rejection(change, diff)
        if reason is not None:
            return self._verdict(change, 0.0, [], reason)
        intercept, by_signal = weights()
        signals = [
            Signal(name=n, weight=round(by_signal.get(n, 0.0) * v, 4), evidence=e)
            for n, v, e in self._observe(change, diff)
        ]
        probability = 1 / (1 + math.exp(-max(min(intercept + sum(s.weight for s in signals), 30.0), -30.0)))
        shown = sorted((s for s in signals if abs(s.weight) >= _SHOWN), key=lambda s: (-abs(s.weight), s.name))[:_MOST]
        return self._verdict(
            change, probability, shown, None if probability >= self.settings.keep_from else Reason.UNLIKELY
        )

    def _observe(self, change: Change, diff: JudgedDiff) -> list[JudgeFinding]:
        found = observe(change, diff)
        gained = gains(self.quoted(change)) if self.quoted else []
        if not gained:
            return found
        measured = JudgeFinding("measured", 1.0, gained[0].line[:80])
        return [*(finding for finding in found if finding.name != "measured"), measured]

    def _verdict(self, change: Change, probability: float, signals: list[Signal], reason: Reason | None) -> Verdict:
        answer: Literal["yes", "no", "unsure"] = "yes" if probability >= self.settings.yes_from else "unsure"
        return Verdict(
            **self.stamp.fields(),
            status="kept" if reason is None else "rejected",
            reason=reason and reason.value,
            change_id=change.change_id,
            judge=NAME,
            is_performance=answer if reason is None else "no",
            probability=probability,
            why=_why(signals, reason),
            signals=signals,
        )


def _why(signals: list[Signal], reason: Reason | None) -> str:
    if reason is not None and reason is not Reason.UNLIKELY:
        return REASONS[reason]
    parts = []
    for word, chosen in (
        ("for", [s for s in signals if s.weight > 0]),
        ("against", [s for s in signals if s.weight < 0]),
    ):
        if chosen:
            parts.append(f"{word}: " + "; ".join(_says(signal) for signal in chosen[:4]))
    return " · ".join(parts) or "nothing speaks for a gain"


def _says(signal: Signal) -> str:
    return f"{MEANING[signal.name]} ({signal.evidence})" if signal.evidence else MEANING[signal.name]
