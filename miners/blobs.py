"""Contents of the files a change touches, at both sides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from perfquarry.data.git import Git, git_of
from perfquarry.data.records import Change
from perfquarry.miners.diff import text
from perfquarry.miners.stream import NAMES_OF_TREES, parse_entries

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


class Sides(NamedTuple):
    """One file at base and head; None where it cannot be read, empty where it is not there."""

    path: str
    base: bytes | None
    head: bytes | None


def sides(clone: Path, change: Change, paths: Iterable[str]) -> list[Sides]:
    """Contents of the files at `paths` (as in the change's `files`), in the order of the diff.

    Raises:
        GitFailed: base or head cannot be read at all.
    """
    git = git_of(clone)
    doing = f"reading the files of change {change.change_id}"
    listing = git.output(*NAMES_OF_TREES, change.base_sha or EMPTY_TREE, change.head_sha, doing=doing)
    wanted = set(paths)
    entries = [entry for entry in parse_entries(listing) if text(entry.path) in wanted]
    blobs = read_blobs(git, {blob for entry in entries for blob in (entry.old_id, entry.new_id)})
    return [Sides(text(entry.path), blobs.get(entry.old_id), blobs.get(entry.new_id)) for entry in entries]


class TreeFile(NamedTuple):
    """A file of a tree."""

    path: str
    blob: bytes
    size: int


def tree_files(clone: Path, sha: str) -> Iterator[TreeFile]:
    """Files of a tree, without links, submodules and what is missing in the clone.

    Raises:
        GitFailed: the tree cannot be read.
    """
    listing = git_of(clone).output("ls-tree", "-r", "-l", "-z", sha, doing=f"listing the tree of {sha}")
    for line in listing.split(b"\0"):
        facts, _, name = line.partition(b"\t")
        words = facts.split()
        if len(words) == 4 and words[0] != b"120000" and words[3].isdigit():
            yield TreeFile(text(name), words[2], int(words[3]))


def contents_of(clone: Path, files: Iterable[TreeFile]) -> dict[str, bytes]:
    """Contents by path."""
    blobs = {file.path: file.blob for file in files}
    contents = read_blobs(git_of(clone), blobs.values())
    return {path: contents[blob] for path, blob in blobs.items() if blob in contents}


def read_blobs(git: Git, ids: Iterable[bytes]) -> dict[bytes, bytes]:
    """Contents by id; an id of zeros is an empty file; missing ones are left out."""
    contents = {blob: b"" for blob in ids if not blob.strip(b"0")}
    asked = sorted(blob.decode() for blob in set(ids) - set(contents))
    if not asked:
        return contents
    answer = git.output("cat-file", "--batch", doing="reading file contents", lines=asked)
    at = 0
    for name in asked:
        end = answer.index(b"\n", at)
        words = answer[at:end].split()
        at = end + 1
        if len(words) == 3:
            size = int(words[2])
            if words[1] == b"blob":
                contents[name.encode()] = answer[at : at + size]
            at += size + 1
    return contents
