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
