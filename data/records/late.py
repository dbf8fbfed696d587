"""Rejections whose only reason is a time limit: the machine may have been busy, so later runs try them again.

A row says how often its stage has come to the same end (`tries`, of `Build` and `Workload`), so what really
does not end is tried `MOST_TRIES` times in all.
"""

from __future__ import annotations

import re
from typing import Final

from perfquarry.data.records.reasons import Reason

MOST_TRIES: Final = 3
"""Times in all that a stage tries what exceeds a time limit, each time in another run."""
LATE: Final = "timeout"
"""Details of what is too long because it was ended, not because it was timed, begin with it."""
_ENDED = re.compile(rf"([\w-]+: )?(run \d+: )?{LATE}\b")
_LIMITS = frozenset({Reason.TEST_TIMEOUT, Reason.BUILD_TIMEOUT, Reason.WORKLOAD_TIMEOUT})


def is_late(reason: str | None, detail: str = "") -> bool:
    """Whether only a time limit speaks against what a row is about.

    Args:
        reason: the row's.
        detail: of a workload; TOO_LONG is also the reason of scripts that were timed and take too long.
    """
    return reason in _LIMITS or (reason == Reason.TOO_LONG and _ENDED.match(detail) is not None)
