"""The crawl: every commit of a branch, against its first parent, as rows of the table `changes`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Generator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from perfquarry.data.git import LARGEST_COMPARED, Git, git_of
from perfquarry.data.records import Change, ChangeKind, Reason, Stamp, change_id_of
from perfquarry.miners.diff import Diff, read_names, read_patch, text
from perfquarry.miners.passes import contents_read, read_commits
from perfquarry.miners.references import issue_numbers, pull_number, squash_number
from perfquarry.miners.revisions import RevisionRange, ranked, select
from perfquarry.miners.settings import MineSettings
from perfquarry.miners.stream import DIFF_OPTIONS, RawCommit

_FEW = 64
"""Below that many commits a second git process costs more than it saves."""
_MOST = 2
"""Processes of git at once: two write as fast as one process of ours reads, and each takes 100 MB."""
_NUMSTAT = re.compile(rb"(?:\A|(?<=\0))(\d+|-)\t(\d+|-)\t(?:\0[^\0]+\0)?([^\0]+)\0")
_EARLIEST, _LATEST = 0, 253402300799  # 9999-12-31: what a datetime can hold; git dates can lie


def crawl(
    clone: Path,
    stamp: Stamp,
    settings: MineSettings,
    *,
    known: Collection[str] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    only: Sequence[str] | None = None,
    branch: str | None = None,
    places: tuple[str, ...] = (),
    rank: Callable[[str, str], int] | None = None,
) -> Generator[Change]:
    """Yields one row a commit, newest first: commits, merges and squash-merged pull requests.

    Args:
        clone: The repository; read only, nothing is fetched even where objects are missing.
        stamp: Repository name, stage version and configuration of the rows.
        settings: Limits in bytes.
        known: Ids of commits (`head_sha`) that have a row already; they are not read again.
        since: Earliest `merged_at`, inclusive; naive means UTC. `until`: the latest.
        until: See `since`.
        only: Ids or unique prefixes of commits, of any branch; the other limits still hold.
        branch: Branch to read; the clone's HEAD when not given.
        places: Folders and modules that are the package (`miners.roles`).
        rank: Of title and message; commits come by it first, lowest first, where not all are going to be read.

    A commit that can be no change is a rejected row: ROOT_COMMIT, EMPTY_DIFF, MISSING_OBJECTS (partial,
    shallow or damaged clones), DIFF_TOO_LARGE.

    Raises:
        InputError: unknown branch or commit.
        GitFailed: git cannot walk the history.
    """
    git = git_of(clone)
    shas = select(git, RevisionRange(known, since, until, only, branch))
    if rank:
        shas = ranked(git, shas, rank)
    boundary = _shallow_boundary(git) if shas else frozenset()
    processes = 1 if len(shas) < _FEW else max(1, min(_MOST, os.cpu_count() or 1))
    for commit in read_commits(git, shas, settings.diff_limit, processes):
        if commit.sha in boundary:
            commit.parents = _real_parents(git, commit.sha)
            commit.incomplete = bool(commit.parents)
            # git takes it for a root: what it shows is the whole tree, not a change.
            commit.entries, commit.patch, commit.patch_bytes, commit.oversized = [], b"", 0, False
        yield _change(git, commit, stamp, settings, places)


def _change(git: Git, commit: RawCommit, stamp: Stamp, settings: MineSettings, places: tuple[str, ...]) -> Change:
    message = text(commit.message).strip("\n")
    title = message.partition("\n")[0].strip()
    base = commit.parents[0] if commit.parents else ""
    diff = _diff(git, commit, settings, places)
    reason = _reason(commit)
    pull = pull_number(title)
    # Valid by construction (tests/miners/test_history.py validates such rows): checking costs more than parsing.
    return Change.model_construct(
        repo=stamp.repo,
        status="kept" if reason is None else "rejected",
        reason=reason and reason.value,
        stage_version=stamp.stage_version,
        config_hash=stamp.config_hash,
        created_at=datetime.now(UTC),
        change_id=change_id_of(stamp.repo, base, commit.sha),
        kind=_kind(commit, title),
        base_sha=base,
        head_sha=commit.sha,
        parents=commit.parents,
        authored_at=_moment(commit.authored),
        merged_at=_moment(commit.committed),
        title=title,
        message=message,
        patch_bytes=commit.patch_bytes,
        pull_number=pull,
        issues=issue_numbers(message, pull),
        files=diff.files,
        functions=diff.functions,
        patch=diff.patch,
        patch_truncated=diff.patch_truncated,
        patch_id=diff.patch_id,
    )


def _diff(git: Git, commit: RawCommit, settings: MineSettings, places: tuple[str, ...]) -> Diff:
    """What the patch says; of an oversized one, which the commit is noted to have, no more than names and counts."""
    if not commit.oversized:
        if commit.incomplete or not commit.patch:
            return Diff(files=read_names(commit.entries, places=places))
        diff = read_patch(commit.entries, commit.patch, settings.patch_limit, places)
        commit.oversized = any(file.binary for file in diff.files) and _has_huge_text(git, commit)
        if not commit.oversized:
            return diff
    return Diff(files=read_names(commit.entries, _line_counts(git, commit), places), patch_truncated=True)


def _reason(commit: RawCommit) -> Reason | None:
    if commit.incomplete:
        return Reason.MISSING_OBJECTS
    if not commit.parents:
        return Reason.ROOT_COMMIT
    if commit.oversized:
        return Reason.DIFF_TOO_LARGE
    return None if commit.entries else Reason.EMPTY_DIFF


def _kind(commit: RawCommit, title: str) -> ChangeKind:
    if len(commit.parents) > 1:
        return "merge"
    return "pull_request" if commit.parents and squash_number(title) is not None else "commit"


def _moment(seconds: bytes) -> datetime:
    """A time of git's, UTC; times beyond what a datetime holds become its ends."""
    return datetime.fromtimestamp(min(max(int(seconds or 0), _EARLIEST), _LATEST), UTC)


def _shallow_boundary(git: Git) -> frozenset[str]:
    """Commits of a shallow clone whose parents were cut off."""
    name = git.output("rev-parse", "--git-path", "shallow", doing=f"looking for grafts in {git.folder}")
    file = Path(os.fsdecode(name.rstrip(b"\n")))
    return frozenset(file.read_text(encoding="ascii").split()) if file.exists() else frozenset()


def _real_parents(git: Git, sha: str) -> list[str]:
    """The parents a commit names itself, whatever was cut off."""
    header = git.output("cat-file", "commit", sha, doing=f"reading commit {sha}").partition(b"\n\n")[0]
    return [line[7:].decode() for line in header.splitlines() if line.startswith(b"parent ")]


def _has_huge_text(git: Git, commit: RawCommit) -> bool:
    """Whether git took a file for binary only because it is too large to be compared."""
    ids = sorted(blob.decode() for blob in contents_read(commit))
    doing = f"reading the sizes of the files of commit {commit.sha}"
    answer = git.output("cat-file", "--batch-check", doing=doing, lines=ids)
    sizes = [line.split() for line in answer.splitlines()]
    large = [name.decode() for name, _, size in sizes if int(size) > LARGEST_COMPARED]
    return any(b"\0" not in _beginning(git, blob) for blob in large)


def _beginning(git: Git, blob: str) -> bytes:
    """As much of a file as git itself looks at to recognise binary ones."""
    with git.start("cat-file", "blob", blob) as process:
        assert process.stdout is not None
        beginning = process.stdout.read(8000)
        process.kill()
    return beginning


def _line_counts(git: Git, commit: RawCommit) -> dict[bytes, tuple[int, int, bool]]:
    """(added, deleted, binary) by path, counted by git: for a diff too large to read here."""
    listing = git.output(
        "show",
        "--numstat",
        "-z",
        "--format=",
        "--diff-merges=first-parent",
        *DIFF_OPTIONS,
        commit.sha,
        doing=f"counting the lines of commit {commit.sha}",
    )
    counts = {}
    for added, deleted, path in _NUMSTAT.findall(listing):
        counts[path] = (0, 0, True) if added == b"-" else (int(added), int(deleted), False)
    return counts
