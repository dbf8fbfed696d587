"""The commits of a branch, and which pull request's merge brought each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from perfquarry.data.errors import GitFailed
from perfquarry.data.git import git_of
from perfquarry.miners.diff import text
from perfquarry.miners.revisions import RevisionRange, select
from perfquarry.miners.stream import HEADERS, LogReader


def titles_of(clone: Path, names: Iterable[str]) -> list[str]:
    """Id and title of the commits of these ids or prefixes that the clone has."""
    git = git_of(clone)
    asked = list(names)
    try:
        answer = git.output("cat-file", "--batch-check", doing="looking up commits", lines=asked) if asked else b""
    except GitFailed:  # a partial clone
        return []
    words = [line.split() for line in answer.decode("ascii", "replace").splitlines()]
    shas = [word[0] for word in words if len(word) == 3 and word[1] == "commit"]
    read = LogReader(git, HEADERS, shas, 1) if shas else ()
    return [f"{raw.sha[:10]} {text(raw.message).partition(chr(10))[0]}" for raw in read]


class Commit(NamedTuple):
    """What its header says."""

    parents: list[str]
    seconds: int
    """When it reached the branch."""
    message: str

    @property
    def title(self) -> str:
        """First line of the message."""
        return self.message.partition("\n")[0].strip()


class Graph:
    """The history of one branch in memory; `tip` is its newest commit, empty for none."""

    def __init__(self, clone: Path, branch: str | None = None) -> None:
        git = git_of(clone)
        shas = select(git, RevisionRange(branch=branch))
        self.tip = shas[0] if shas else ""
        self.commits: dict[str, Commit] = {}
        for raw in LogReader(git, HEADERS, shas, 1):
            message = text(raw.message).strip("\n")
            self.commits[raw.sha] = Commit(raw.parents, int(raw.committed or 0), message)

    def owners(self, is_pull: Callable[[str], bool]) -> dict[str, str]:
        """By commit, the pull request's merge that brought it: the innermost one. Merges themselves are not owned
        by merges that are no pull request's; commits of the branch's own line have no owner.

        What a merge brings is what its further parents reach and its first parent does not.
        """
        owners: dict[str, str] = {}
        visited: set[str] = set()
        stack: list[tuple[Iterator[str], str]] = [(self._line(self.tip, visited), "")]
        while stack:
            line, owner = stack[-1]
            sha = next(line, None)
            if sha is None:
                stack.pop()
                continue
            if owner and not is_pull(sha):
                owners[sha] = owner
            inner = sha if is_pull(sha) else owner
            for parent in reversed(self.commits[sha].parents[1:]):
                stack.append((self._line(parent, visited), inner))
        return owners

    def _line(self, sha: str, visited: set[str]) -> Iterator[str]:
        """First parents from a commit back to the first that was visited, oldest first."""
        line = []
        while sha in self.commits and sha not in visited:
            visited.add(sha)
            line.append(sha)
            parents = self.commits[sha].parents
            sha = parents[0] if parents else ""
        yield from reversed(line)
