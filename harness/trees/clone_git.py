"""git's commands on a clone, with missing objects kept apart from other failures."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from perfquarry.data.errors import GitFailed
from perfquarry.data.git import git_of

# what git says when the object is missing in the clone (shallow, partial or damaged clones)
_MISSING = (
    "unable to read",
    "not a tree object",
    "bad object",
    "invalid object",
    "missing blob",
    "missing tree",
    "Not a valid object name",
    "not our ref",
    "failed to unpack tree object",
    "reference is not a tree",
    "could not get object info",
    "not allowed",  # a partial clone would have fetched it
)


class MissingObjects(Exception):
    """An object is missing in the clone; the text is git's."""


def git(clone: Path, *arguments: str, env: Mapping[str, str] | None = None, given: bytes = b"") -> bytes:
    """Standard output of a git command on a clone, bare or not; `given` is its standard input.

    Raises:
        MissingObjects: an object that the command needs is missing in the clone.
        GitFailed: any other failure.
    """
    with tempfile.TemporaryFile() as file:  # a pipe could fill while git fills its own
        file.write(given)
        file.seek(0)
        done = git_of(clone).having(**env or {}).run(*arguments, istream=file)
    if not done.code:
        return done.out
    if any(words in done.said for words in _MISSING):
        raise MissingObjects(done.said)
    raise GitFailed(f"git {' '.join(arguments)} failed on {clone}: {done.said}")
