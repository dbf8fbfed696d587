"""What is missing for a test where it runs, by the text of its failure: a module, a file, a service."""

from __future__ import annotations

import re

from perfquarry.data.records import Reason

_NEEDS = (
    (
        Reason.MODULE_MISSING,
        r"No module named|ModuleNotFoundError|could not import '|fixture '\w+' not found"
        r"|cannot open shared object file",
    ),
    (
        Reason.NEEDS_SERVICE,
        r"Connection ?Refused|gaierror|Name or service not known|Temporary failure in name resolution"
        r"|Network is unreachable|NewConnectionError|Max retries exceeded|could not connect to server",
    ),
    (Reason.NEEDS_FILE, r"FileNotFoundError|No such file or directory"),
)
NEEDS = tuple(reason for reason, _ in _NEEDS)


def need_of(message: str) -> Reason | None:
    """The first of these that the text of a failure or of a skip speaks of."""
    return next((reason for reason, pattern in _NEEDS if re.search(pattern, message, re.I)), None)
