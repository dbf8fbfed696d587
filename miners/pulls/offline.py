"""Pull requests as far as git knows them: from merge and squash commits of the branch."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from perfquarry.data.git import git_of
from perfquarry.data.records import Pull, PullCommit, Stamp
from perfquarry.miners.diff import text
from perfquarry.miners.pulls.graph import Commit, Graph
from perfquarry.miners.pulls.links import closing_words, commits_in, mentions, strongest
from perfquarry.miners.pulls.results import quoted_results
from perfquarry.miners.references import pull_number, squash_number
from perfquarry.miners.stream import NAMES, LogReader

_OTHER_MERGES = re.compile(
    r"(?:Auto merge of|Merge|Merge pull requests?|Merge PRs?) #(\d{1,7})\b"  # bors, homu
    r"|Merge (?:remote-tracking )?branch '(?:[\w.-]+/)?(?:pr|pull)/(\d{1,7})(?:/\w+)?'"
    r"|.{0,200}\(pull request #(\d{1,7})\)$",  # Bitbucket
    re.I,
)
_FROM = re.compile(r"\bfrom ([\w.-]+)[/:](\S+)")


def brought(graph: Graph) -> dict[int, str]:
    """By number of a pull request, the commit that brought it to the branch, by what titles say, the oldest first.

    Later ones of a number are backports of it.
    """
    found: dict[int, str] = {}
    line = sorted(graph.commits, key=lambda sha: graph.commits[sha].seconds)
    for sha in line:
        number = number_of(graph.commits[sha])
        if number:
            found.setdefault(number, sha)
    return found


def number_of(commit: Commit) -> int | None:
    """The pull request that a commit says it merges: a merge by its words, another by '(#12)' at the title's end."""
    if len(commit.parents) < 2:
        return squash_number(commit.title) if commit.parents else None
    other = _OTHER_MERGES.match(commit.title)
    return pull_number(commit.title) or (int(next(filter(None, other.groups()))) if other else None)


def reconstruct(clone: Path, graph: Graph, codebase: str, stamp: Stamp) -> Iterator[Pull]:
    """Rows of the pull requests of the branch: numbers, texts, commits, files, linked issues; no discussion."""
    those = brought(graph)
    merges = {sha for sha in those.values() if len(graph.commits[sha].parents) > 1}
    parts: dict[str, list[str]] = {}
    for sha, owner in graph.owners(merges.__contains__).items():
        parts.setdefault(owner, []).append(sha)
    files = {
        raw.sha: [text(entry.path) for entry in raw.entries]
        for raw in LogReader(git_of(clone), NAMES, list(those.values()), 1)
    }
    for number, sha in those.items():
        own = sorted(parts.get(sha, []), key=lambda part: graph.commits[part].seconds)
        yield _row(number, sha, graph, own, files.get(sha), codebase, stamp)


def _row(
    number: int, sha: str, graph: Graph, parts: list[str], files: list[str] | None, codebase: str, stamp: Stamp
) -> Pull:
    commit = graph.commits[sha]
    merged = datetime.fromtimestamp(min(max(commit.seconds, 0), 253402300799), UTC)
    origin = _FROM.search(commit.title) if len(commit.parents) > 1 else None
    title, body = _title_and_body(commit)
    words = "\n".join([title, body, *(graph.commits[part].message for part in parts)])
    links = [*closing_words(words, codebase), *mentions(f"{title}\n{body}", number, codebase)]
    return Pull(
        **stamp.fields(),
        number=number,
        origin="git",
        title=title,
        body=body,
        state="merged",
        author=origin[1] if origin else "",
        updated_at=merged,
        closed_at=merged,
        merged_at=merged,
        head_ref=origin[2] if origin else "",
        base_sha=commit.parents[0],
        head_sha=commit.parents[1] if len(commit.parents) > 1 else "",
        merge_sha=sha,
        commits=[PullCommit(sha=part, title=graph.commits[part].title) for part in parts],
        files=files or [],
        issues=[link for link in strongest(links) if link.codebase or link.number != number],
        linked_commits=[one for one in commits_in(words) if one not in parts],
        results=quoted_results(words),
        cut=["files"] if files is None else [],
    )


def _title_and_body(commit: Commit) -> tuple[str, str]:
    """Of a merge, the first line of the body is the pull request's title."""
    body = commit.message.partition("\n")[2].strip()
    if len(commit.parents) < 2:
        return re.sub(r"\s*\((?:#|GH-)\d+\)\s*$", "", commit.title, flags=re.I), body
    title, _, rest = body.partition("\n")
    return title.strip() or commit.title, rest.strip()
