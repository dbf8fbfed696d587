"""Which pull requests go on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from perfquarry.data.records import RESOLVING, Policy, Reason
from perfquarry.miners.roles import role_of

POLICIES: tuple[Policy, ...] = get_args(Policy)
COLUMNS = ("number", "state", "labels", "files", "issues")
"""Columns of `pulls` that `rejection` looks at."""


def rejection(pull: Mapping[str, Any], policy: Policy, labels: str, places: tuple[str, ...] = ()) -> Reason | None:
    """Why a pull request does not go on, or None.

    'sweperf': merged, resolves an issue, changes source files; tests are not asked for (SWE-Perf §3.2, phase 1:
    "the second criterion is not adopted"). 'swebench': and changes test files (SWE-bench's two criteria).

    Args:
        pull: `COLUMNS` of its row, as plain values.
        policy: see `PullSettings.policy`.
        labels: expression that a label must match for 'labelled', in any case.
        places: folders and modules that are the package (`miners.roles`).
    """
    if policy in ("off", "all"):
        return None
    if pull["state"] != "merged":
        return Reason.NOT_MERGED
    if policy == "labelled":
        found = any(re.search(labels, label, re.I) for label in pull["labels"])
        return None if found else Reason.NO_LABEL
    if policy == "merged":
        return None
    return _of_benchmarks(pull["issues"], {role_of(path, places) for path in pull["files"]}, policy)


def _of_benchmarks(issues: Iterable[Mapping[str, Any]], roles: set[str], policy: Policy) -> Reason | None:
    if not any(link["kind"] in RESOLVING for link in issues):
        return Reason.NO_ISSUE
    if "source" not in roles:
        return Reason.NO_PATCH
    return Reason.NO_TEST_PATCH if policy == "swebench" and "test" not in roles else None


def linked(issues: Sequence[Mapping[str, Any]]) -> list[int]:
    """Numbers of the repository's own issues of which the text is worth reading: those resolved, those that refer."""
    wanted = (*RESOLVING, "cross_reference")
    return [link["number"] for link in issues if link["kind"] in wanted and not link["codebase"]]
