"""Hard rules: changes that are no performance improvement whatever their message says."""

from __future__ import annotations

import re

from perfquarry.data.records import Change, Reason
from perfquarry.miners.judge.diff import READ_LIMIT, JudgedDiff

_REVERT = re.compile(r'\s*(?:revert(?:ed|ing|s)?\b[:\s]*(?:of\s)?["\'“]?\s*)', re.IGNORECASE)
_REVERTS = re.compile(r"\s*This reverts commit\b", re.IGNORECASE)
_TITLE_LIMIT = 300


def rejection(change: Change, diff: JudgedDiff) -> Reason | None:
    """The rule that a change falls under, or None."""
    source = [f for f in change.files if f.role == "source" and f.status != "submodule"]
    if not source:
        return Reason.NO_SOURCE_CHANGE
    edited = [f for f in source if f.added or f.deleted or (f.binary and f.status not in ("renamed", "copied"))]
    if not edited:
        moved = any(f.status in ("renamed", "copied") for f in source)
        return Reason.RENAME_ONLY if moved else Reason.NO_SOURCE_CHANGE
    if is_revert(change):
        return Reason.REVERT
    whole = not change.patch_truncated and len(change.patch) <= READ_LIMIT
    seen = change.patch.startswith("diff --git ") + change.patch.count("\ndiff --git ")
    if whole and seen >= len(edited) and not diff.changes_code:
        return Reason.COMMENTS_ONLY
    return None


def is_revert(change: Change) -> bool:
    """Whether a change undoes an earlier one; undoing that again lands it once more and is no revert."""
    title = change.title[:_TITLE_LIMIT]
    body = change.message[len(change.title) : len(change.title) + 2000].strip()
    if change.kind == "merge" and not _REVERT.match(title):
        title = body.partition("\n")[0][:_TITLE_LIMIT]  # the pull request's own title
    depth = 0
    while undone := _REVERT.match(title):
        depth += 1
        title = title[undone.end() :]
    if depth == 0:
        return _REVERTS.match(body) is not None
    return depth % 2 == 1
