"""Reads commits in spite of damage: git dies at the first object it cannot read, the pass goes on after it.

Until git dies nothing is spent on it. From then on the rest is read in windows: first the names only,
which needs no file contents, then one question for all contents the window's diffs need, then the
patches of the commits in which none is missing.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import chain, islice

from perfquarry.data.errors import GitFailed
from perfquarry.data.git import Git
from perfquarry.miners.stream import HEADERS, NAMES, PATCHES, LogReader, RawCommit

WINDOW = 2000
IN_A_ROW = 32
"""Commits in a row that one git reads: neighbours share trees and files, which it unpacks once."""
AT_MOST = 8192
"""Commits that one git process is given: it holds the messages of all of them from the beginning."""
_NO_BLOB = (b"000000", b"160000")


def read_commits(git: Git, shas: Sequence[str], limit: int, processes: int = 1) -> Iterator[RawCommit]:
    """Exactly one `RawCommit` a commit, in the given order; `incomplete` where objects are missing.

    With several `processes`, each git in turn reads the next `IN_A_ROW` commits.

    Raises:
        GitFailed: a commit object itself cannot be read.
    """
    rows = [shas[start : start + IN_A_ROW] for start in range(0, len(shas), IN_A_ROW)]
    readers = [_read(git, list(chain(*rows[number::processes])), limit) for number in range(processes)]
    # All of them start now, not when their first commit is asked for.
    firsts = [list(islice(reader, 1)) for reader in readers]
    try:
        for number in range(len(shas)):
            turn = number // IN_A_ROW % processes
            commit = firsts[turn].pop() if firsts[turn] else next(readers[turn])
            if commit.sha != shas[number]:
                raise GitFailed(f"reading {git.folder}: git gave {commit.sha} where {shas[number]} was asked for")
            yield commit
    finally:
        for reader in readers:
            reader.close()


def _read(git: Git, shas: Sequence[str], limit: int) -> Generator[RawCommit, None, None]:
    for start in range(0, len(shas), AT_MOST):
        yield from _read_some(git, shas[start : start + AT_MOST], limit)


def _read_some(git: Git, shas: Sequence[str], limit: int) -> Iterator[RawCommit]:
    done = 0
    for commit in LogReader(git, PATCHES, shas, limit):
        done += 1
        yield commit
    while done < len(shas):
        window = shas[done : done + WINDOW]
        yield from _read_window(git, window, limit)
        done += len(window)


def _read_window(git: Git, shas: Sequence[str], limit: int) -> Iterator[RawCommit]:
    named = _names(git, shas)
    absent = _absent(git, named.values())
    bad = {sha for sha, commit in named.items() if commit.incomplete or not absent.isdisjoint(contents_read(commit))}
    whole = _surviving(git, PATCHES, [sha for sha in shas if sha not in bad], limit)
    for sha in shas:
        commit = None if sha in bad else next(whole)
        if commit is None:
            commit = named[sha]
            commit.incomplete = True
        yield commit


def _surviving(git: Git, arguments: Sequence[str], shas: Sequence[str], limit: int) -> Iterator[RawCommit | None]:
    """Commits that should be readable so; None for those at which git dies all the same."""
    done = 0
    while done < len(shas):
        before = done
        for commit in LogReader(git, arguments, shas[done:], limit):
            done += 1
            yield commit
        if done == before:
            # Git may have died here or, before it wrote the end of this one, at the next.
            alone = list(LogReader(git, arguments, [shas[done]], limit))
            yield alone[0] if alone else None
            done += 1


def _names(git: Git, shas: Sequence[str]) -> dict[str, RawCommit]:
    """Headers and raw entries by id; without entries and incomplete where a tree cannot be read."""
    named: dict[str, RawCommit] = {}
    for sha, commit in zip(shas, _surviving(git, NAMES, shas, 1), strict=True):
        if commit is None:
            reader = LogReader(git, HEADERS, [sha], 1)
            commit = next(iter(list(reader)), None)
            if commit is None:
                raise GitFailed(
                    f"reading commit {sha} of {git.folder}: {reader.failed or 'no answer'}; "
                    "delete the clone and run again to clone it again"
                )
            commit.incomplete = True
        named[sha] = commit
    return named


def contents_read(commit: RawCommit) -> set[bytes]:
    """Ids of the blobs git reads for the patch (for mere moves, too), not of submodules."""
    before = {entry.old_id for entry in commit.entries if entry.old_mode not in _NO_BLOB}
    return before | {entry.new_id for entry in commit.entries if entry.new_mode not in _NO_BLOB}


def _absent(git: Git, commits: Iterable[RawCommit]) -> set[bytes]:
    """Those of the blobs the commits need that are not in the clone."""
    wanted = {blob for commit in commits for blob in contents_read(commit)}
    doing = f"looking for missing objects in {git.folder}"
    lines = sorted(blob.decode() for blob in wanted)
    answer = git.output("cat-file", "--batch-check", "--buffer", doing=doing, lines=lines)
    return {line.split()[0] for line in answer.splitlines() if line.endswith(b" missing")}
