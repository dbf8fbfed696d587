"""Which commits a crawl reads: those of a branch, within dates, by id, without those already known."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from perfquarry.data.errors import GitFailed, InputError
from perfquarry.data.git import Git
from perfquarry.miners.diff import text

_SHA = re.compile(r"[0-9a-fA-F]{4,64}")


@dataclass(frozen=True)
class RevisionRange:
    """What is asked for; both dates are inclusive, are about `merged_at`, and mean UTC when naive."""

    known: Collection[str] = ()
    since: datetime | None = None
    until: datetime | None = None
    only: Sequence[str] | None = None
    branch: str | None = None


def select(git: Git, selection: RevisionRange) -> list[str]:
    """Ids of the commits to read, newest first as `git rev-list` orders them.

    Raises:
        InputError: no such branch, an id that is unknown or ambiguous, or a repository without commits.
        GitFailed: the history cannot be walked.
    """
    if selection.only is None:
        arguments, lines = ["rev-list", "--timestamp", _tip(git, selection.branch)], None
    else:
        arguments, lines = ["rev-list", "--timestamp", "--no-walk=sorted", "--stdin"], _resolve(git, selection.only)
        if not lines:
            return []
    listing = git.output(*arguments, doing=f"listing the commits of {git.folder}", lines=lines).decode()
    since = _seconds(selection.since, -(2**63))
    until = _seconds(selection.until, 2**63)
    known = selection.known if isinstance(selection.known, set | frozenset | dict) else set(selection.known)
    shas = []
    for line in listing.splitlines():
        seconds, _, sha = line.partition(" ")
        if sha not in known and since <= int(seconds) <= until:
            shas.append(sha)
    return shas


def ranked(git: Git, shas: Sequence[str], rank: Callable[[str, str], int]) -> list[str]:
    """The same commits by what a rank says of title and message, lowest first; equal ones in the given order.

    Raises:
        GitFailed: the messages cannot be read.
    """
    arguments = ["log", "--no-walk=unsorted", "--stdin", "--format=tformat:%B", "-z"]
    doing = f"reading the messages of {git.folder}"
    said = text(git.output(*arguments, doing=doing, lines=shas)).split("\0")
    messages = [message.strip("\n") for message in said[: len(shas)]]
    ranks = [rank(message.partition("\n")[0].strip(), message) for message in messages]
    return [sha for _, sha in sorted(zip(ranks, shas, strict=True), key=lambda one: one[0])]


def _tip(git: Git, branch: str | None) -> str:
    """The commit a branch (or HEAD) points to."""
    names = ["HEAD"] if branch is None else [f"refs/heads/{branch}", f"refs/remotes/origin/{branch}"]
    for name in names:
        try:
            found = git.output("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", doing=name)
            return found.decode().split()[-1]
        except GitFailed:
            continue
    if branch is None:
        raise InputError(f"{git.folder} has no commit at HEAD: name a branch, or clone it again")
    raise InputError(f"{git.folder} has no branch '{branch}': see its branches with `git branch -a`")


def _resolve(git: Git, only: Sequence[str]) -> list[str]:
    """Full ids of commits given by id or prefix."""
    for name in only:
        if not _SHA.fullmatch(name):
            raise InputError(f"'{name}' is no commit id: give 4 to 64 hexadecimal digits")
    wanted = [f"{name}^{{commit}}" for name in only]
    answer = git.output("cat-file", "--batch-check", doing=f"looking up commits in {git.folder}", lines=wanted)
    found = [line.split() for line in answer.decode(errors="replace").splitlines()]
    for name, words in zip(only, found, strict=True):
        if words[-1] == "ambiguous":
            raise InputError(f"commit id '{name}' is not unique in {git.folder}: give more digits")
        if len(words) != 3 or words[1] != "commit":
            raise InputError(f"commit '{name}' is not in {git.folder}: check the id, or fetch the repository")
    return list(dict.fromkeys(words[0] for words in found))


def _seconds(moment: datetime | None, default: int) -> float:
    if moment is None:
        return default
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
