"""Several commits in a row as one change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from perfquarry.data.git import git_of
from perfquarry.data.records import Change, Reason, change_id_of
from perfquarry.miners.diff import Diff, read_names, read_patch
from perfquarry.miners.settings import MineSettings
from perfquarry.miners.stream import DIFF_OPTIONS, NAMES_OF_TREES, PATCH, parse_entries

_PATCH_START = b"\0\0diff --git "


def widened(
    clone: Path, change: Change, base_sha: str, title: str, settings: MineSettings, places: tuple[str, ...] = ()
) -> Change:
    """The change from `base_sha` to the head of `change`; kept, or rejected as the crawl would.

    Raises:
        GitFailed: objects of one of them are missing.
    """
    doing = f"reading the commits {base_sha}..{change.head_sha}"
    answer = git_of(clone).output(*NAMES_OF_TREES, *PATCH, *DIFF_OPTIONS, base_sha, change.head_sha, doing=doing)
    end = answer.find(_PATCH_START)
    names, patch = (answer, b"") if end < 0 else (answer[: end + 1], answer[end + 2 :])
    entries = parse_entries(names)
    reason: Reason | None = None if entries else Reason.EMPTY_DIFF
    if len(patch) > settings.diff_limit:
        reason, diff = Reason.DIFF_TOO_LARGE, Diff(files=read_names(entries, places=places), patch_truncated=True)
    elif patch:
        diff = read_patch(entries, patch, settings.patch_limit, places)
    else:
        diff = Diff(files=read_names(entries, places=places))
    columns: dict[str, Any] = {name: getattr(diff, name) for name in Diff.__slots__}
    return change.model_copy(
        update={
            **columns,
            "change_id": change_id_of(change.repo, base_sha, change.head_sha),
            "kind": "pull_request",
            "base_sha": base_sha,
            "parents": [base_sha],
            "title": title,
            "message": f"{title}\n\n{change.message}" if title != change.title else change.message,
            "patch_bytes": len(patch),
            "status": "kept" if reason is None else "rejected",
            "reason": reason and reason.value,
        }
    )
