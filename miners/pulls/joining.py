"""A pull request and the commits it became are one change: which rows of `changes` go on under a policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfquarry.data.errors import GitFailed
from perfquarry.data.git import git_of
from perfquarry.data.records import RESOLVING, Change, Policy, Reason, change_id_of
from perfquarry.miners.diff import Diff, read_names, read_patch
from perfquarry.miners.pulls.graph import Graph
from perfquarry.miners.pulls.policies import COLUMNS, rejection
from perfquarry.miners.settings import MineSettings
from perfquarry.miners.stream import DIFF_OPTIONS, NAMES_OF_TREES, PATCH, entries_and_patch

JOIN_COLUMNS = (*COLUMNS, "title", "merge_sha", "commits")
"""Columns of `pulls` that a joining needs."""
OURS = frozenset(
    {Reason.PART_OF_PULL, Reason.NO_PULL, Reason.NO_ISSUE, Reason.NO_LABEL, Reason.NO_PATCH, Reason.NO_TEST_PATCH}
)
"""Reasons that only a joining gives."""


@dataclass
class _Known:
    """What is kept of a pull request."""

    number: int
    title: str
    reason: Reason | None
    resolves: list[int]
    titles: list[str] = field(default_factory=list)
    """Of its own commits without merges, oldest first; only of those that may have been rebased."""


class Joining:
    """Says of each commit of a branch whether it is a pull request, a part of one, or neither.

    Args:
        graph: the branch's history.
        pulls: `JOIN_COLUMNS` of the pull requests. Of two with one number or commit the first counts; where its
            merge is not on the branch, the second says where it is.
        policy: which of them go on; with 'all', commits without any go on, too.
        labels: see `policies.rejection`.
        places: folders and modules that are the package (`miners.roles`).
    """

    def __init__(
        self,
        graph: Graph,
        pulls: Iterable[Mapping[str, Any]],
        policy: Policy,
        labels: str,
        places: tuple[str, ...] = (),
    ) -> None:
        self._graph, self._policy, self._places = graph, policy, places
        self._pulls: dict[str, _Known] = {}
        elsewhere: dict[int, Mapping[str, Any]] = {}
        placed: set[int] = set()
        for row in pulls:
            sha, number = row["merge_sha"], row["number"]
            if row["state"] != "merged" or number in placed:
                continue
            pull = elsewhere.setdefault(number, row)
            if sha in graph.commits and sha not in self._pulls:
                self._pulls[sha] = self._known(pull, sha, labels)
                placed.add(number)
        merges = {sha for sha in self._pulls if len(graph.commits[sha].parents) > 1}
        self._owner = graph.owners(merges.__contains__)
        self._base: dict[str, str] = {}
        """By the last commit of a rebased pull request, the parent of its first."""
        for sha, known in self._pulls.items():
            if sha not in merges and len(known.titles) > 1:
                self._find_series(sha, known)

    def apply(self, change: Change, clone: Path, settings: MineSettings) -> Iterator[Change]:
        """The rows in place of a commit's: the same with its pull request's number, issues and verdict; the last
        commit of a rebased one is a part, too, and the whole series a change of its own."""
        if change.base_sha and change.base_sha == self._base.get(change.head_sha):
            return  # the series itself, when rows are joined again: it comes with its last commit
        if change.status == "rejected" and change.reason not in OURS:
            yield change
            return
        known, base = self._pulls.get(change.head_sha), self._base.get(change.head_sha)
        owner = self._owner.get(change.head_sha) or (base and change.head_sha)
        if owner:
            yield _decided(change, Reason.PART_OF_PULL, pull_number=self._pulls[owner].number)
        elif known is None:
            yield _decided(change, None if self._policy == "all" else Reason.NO_PULL)
        else:
            yield self._joined(change, known)
        if known and base:
            try:
                yield self._joined(_widened(clone, change, base, known.title, settings, self._places), known)
            except GitFailed:  # objects are missing: the parts are rejected, so the series is, too
                yield _decided(change, Reason.MISSING_OBJECTS, pull_number=known.number)

    @staticmethod
    def _joined(change: Change, known: _Known) -> Change:
        issues = list(dict.fromkeys([*change.issues, *known.resolves]))
        kind = change.kind if len(change.parents) > 1 else "pull_request"
        reason = Reason(change.reason) if change.reason and change.reason not in OURS else known.reason
        return _decided(change, reason, pull_number=known.number, issues=issues, kind=kind)

    def _known(self, pull: Mapping[str, Any], sha: str, labels: str) -> _Known:
        single = len(self._graph.commits[sha].parents) == 1
        titles = [one["title"] for one in pull["commits"]] if single else []
        resolves = [one["number"] for one in pull["issues"] if one["kind"] in RESOLVING and not one["codebase"]]
        return _Known(
            pull["number"], pull["title"], rejection(pull, self._policy, labels, self._places), resolves, titles
        )

    def _find_series(self, last: str, known: _Known) -> None:
        """A rebase put the pull request's commits on the branch one by one: their titles show it.

        GitHub shortens long titles with an ellipsis; merges within the pull request are not rebased.
        """
        titles = [title for title in known.titles if not title.startswith("Merge ")]
        sha, series = last, []
        for title in reversed(titles):
            commit = self._graph.commits.get(sha)
            if commit is None or len(commit.parents) != 1 or not commit.title.startswith(title.removesuffix("…")):
                return
            series.append(sha)
            sha = commit.parents[0]
        if len(series) > 1 and sha in self._graph.commits:
            self._base[last] = sha
            self._owner |= dict.fromkeys(series[1:], last)


def _decided(change: Change, reason: Reason | None, **columns: Any) -> Change:
    status = "kept" if reason is None else "rejected"
    return change.model_copy(update={**columns, "status": status, "reason": reason and reason.value})


def _widened(
    clone: Path, change: Change, base_sha: str, title: str, settings: MineSettings, places: tuple[str, ...] = ()
) -> Change:
    """The change from `base_sha` to the head of `change`; kept, or rejected as the crawl would.

    Raises:
        GitFailed: objects of one of them are missing.
    """
    doing = f"reading the commits {base_sha}..{change.head_sha}"
    answer = git_of(clone).output(*NAMES_OF_TREES, *PATCH, *DIFF_OPTIONS, base_sha, change.head_sha, doing=doing)
    entries, patch = entries_and_patch(answer)
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
