"""What a curator can do and say."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, get_args

Action = Literal["accept", "reject", "more-tests", "measure-again", "note", "undo"]

SendBack = Literal["more-tests", "measure-again"]
SENT_BACK: frozenset[str] = frozenset(get_args(SendBack))
OPINIONS: frozenset[str] = frozenset({"accept", "reject"}) | SENT_BACK

Outcome = Literal["open", "waiting", "disputed", "sent-back", "accepted", "rejected"]
OUTCOMES: tuple[str, ...] = get_args(Outcome)


class RejectReason(StrEnum):
    """Why a curator rejects a candidate; the value is what the log and exports hold."""

    DUPLICATE = "duplicate"
    TRIVIAL = "trivial"
    LEAK = "answer_given_away"
    WEAK = "weak_workload"
    UNREALISTIC = "unrealistic_input"
    NOISE = "timings_do_not_convince"
    BEHAVIOUR = "behaviour_differs"
    LEGAL = "licence_or_privacy"
    OTHER = "other"


REASON_TEXT: dict[str, str] = {
    RejectReason.DUPLICATE: "the same improvement as another task",
    RejectReason.TRIVIAL: "a flag, a version or a dependency, not code",
    RejectReason.LEAK: "tests or text give the answer away",
    RejectReason.WEAK: "a cache or a shortcut would pass the workloads",
    RejectReason.UNREALISTIC: "only inputs that nobody has are faster",
    RejectReason.NOISE: "the timings do not convince",
    RejectReason.BEHAVIOUR: "the head does something else than the base",
    RejectReason.LEGAL: "licence, secrets or personal data",
    RejectReason.OTHER: "something else (say what in the note)",
}
"""In the order of the keys 1 to 9 of the page."""

INTENT_TEXT: dict[str, str] = {
    "intended": "intended",
    "side_effect": "side effect",
    "behaviour_changed": "behaviour changed",
}
"""Classes of a change that an acceptance can set (docs/intent.md)."""

OUTCOME_TEXT: dict[str, str] = {
    "open": "open",
    "waiting": "needs a second reviewer",
    "disputed": "reviewers disagree",
    "sent-back": "sent back",
    "accepted": "accepted",
    "rejected": "rejected",
}

TERMS: dict[str, str] = {
    "δ": "smallest gain that is still significant: the base, sped up by less than δ, would still be slower (0 to 1)",
    "q": "share of false gains to expect among all that are accepted with this q or less (Benjamini-Hochberg)",
    "A/A": "the base timed against itself: what the machine alone does to a ratio",
    "hold": "predicted probability that another look shows the gain",
    "margin": "effect over the spread of base against base; below 3, do not trust it on another machine",
}
"""Words of the figures, for tooltips and the help."""

FINDINGS: dict[str, tuple[str, str]] = {
    "near-duplicate": ("another task makes almost the same change", "reject one as a duplicate: r 1"),
    "same-functions": ("another task changes the same functions", "compare them; reject one as a duplicate: r 1"),
    "landed-again": ("the same change reached the branch twice", "reject one as a duplicate: r 1"),
    "problem-leak": ("the problem text reveals the fix", "reject: r 3"),
    "test-leak": ("the visible tests reveal the fix", "reject: r 3"),
    "memo-survives": ("remembered results pass the workload", "more tests: t; or reject as weak: r 4"),
    "memo-between-calls": (
        "remembered results pass from one call to the next",
        "more tests: t; or reject as weak: r 4",
    ),
    "mutation-survives": ("a wrong result passes the workload", "more tests: t; or reject as weak: r 4"),
    "single-workload": ("only one workload shows the gain", "more tests: t"),
    "too-short": ("a workload is so short that the clock sees little of it", "more tests: t"),
    "uneven-gain": ("nearly all of the gain is one workload's", "look at the others; more tests: t"),
    "sessions-disagree": ("the two sessions show different gains", "measure again: m; or reject: r 6"),
    "slower-elsewhere": ("other workloads are slower than before", "look at them; reject if they are usual: r 5"),
    "non-determinism": ("the workload gives other results each time", "more tests: t; or reject as weak: r 4"),
    "private-data": ("the patch or its texts may hold personal data or secrets", "reject: r 8"),
    "clock": ("wall time and instruction count disagree", "measure again: m; or reject: r 6"),
}
"""By check of the screening what it means, and the key to press if it is right."""
