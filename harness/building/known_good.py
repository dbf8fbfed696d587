"""What made the neighbours of a change runnable."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from perfquarry.data.records import Amendment, Attempt, Change
from perfquarry.harness.building.repair import REMEMBERED

WINDOW = timedelta(days=365)
"""Changes farther apart than this are no neighbours."""


class KnownGood:
    """The amendments of one repository that were found where they were needed; none where none was.

    What was only taken over from a neighbour does not count: an upper bound would
    else be handed on from commit to commit for ever.
    """

    def __init__(self, attempts: Iterable[Attempt] = ()) -> None:
        self._attempts = [one for one in attempts if _counts(one)]

    def add(self, attempts: Iterable[Attempt]) -> None:
        """Remembers more; safe to call from several threads."""
        self._attempts += [one for one in attempts if _counts(one)]

    def nearest(self, change: Change) -> Amendment:
        """What served the change nearest in time; nothing when it has no neighbour.

        The order of adding does not matter, and the change's own attempts are passed over.
        """
        apart = [
            (abs(one.merged_at - change.merged_at), one.merged_at, one.change_id, one)
            for one in tuple(self._attempts)
            if one.change_id != change.change_id
        ]
        near = min((one for one in apart if one[0] <= WINDOW), key=lambda one: one[:3], default=None)
        return near[3].amendment if near else Amendment()


def _counts(attempt: Attempt) -> bool:
    return attempt.chosen and attempt.status == "kept" and attempt.side == "base" and attempt.rule != REMEMBERED
