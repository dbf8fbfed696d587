"""git on a clone whose contents are hostile: no hooks, no configured filters, no network."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from git import Git, GitCommandError
from git.exc import GitCommandNotFound

from data.errors import GitFailed

_SAFE = (
    "-c", "core.hooksPath=/dev/null",
    "-c", "core.attributesFile=/dev/null",
    "-c", "core.fsmonitor=false",
    "-c", "core.autocrlf=false",
    "-c", "core.symlinks=true",
    "-c", "core.sparseCheckout=false",
    "-c", "protocol.allow=never",
    "-c", "safe.directory=*",
)  # fmt: skip
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "LC_ALL": "C",
}
# what git says when the clone lacks the object (shallow, partial or damaged clones)
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
    """The clone lacks an object; the text is git's."""


def git(clone: Path, *arguments: str, env: Mapping[str, str] | None = None, given: bytes = b"") -> bytes:
    """Standard output of a git command on a clone, bare or not; `given` is its standard input.

    Raises:
        MissingObjects: the clone lacks an object that the command needs.
        GitFailed: any other failure.
    """
    inside = clone / ".git" if (clone / ".git").exists() else clone
    return _run(["git", *_SAFE, *_without_filters(inside), "--git-dir", str(inside)], arguments, env or {}, given)


@functools.cache
def _without_filters(git_dir: Path) -> tuple[str, ...]:
    """Options that turn off every filter driver the clone's own settings define: they are programs."""
    try:
        lines = _run(
            ["git", *_SAFE, "--git-dir", str(git_dir)], ["config", "--get-regexp", "--name-only", "^filter."], {}
        )
    except GitFailed:  # git config ends with an error when nothing matches
        return ()
    options: list[str] = []
    for name in sorted({line.rpartition(".")[0] for line in lines.decode(errors="replace").splitlines()}):
        for setting in ("smudge=cat", "clean=cat", "process=", "required=false"):
            options += ["-c", f"{name}.{setting}"]
    return tuple(options)


def _run(command: Sequence[str], arguments: Sequence[str], env: Mapping[str, str], given: bytes = b"") -> bytes:
    try:
        with tempfile.TemporaryFile() as file:  # a pipe could fill while git fills its own
            file.write(given)
            file.seek(0)
            output = Git("/").execute(
                [*command, *arguments],
                istream=file,
                env={**_ENVIRONMENT, **env},
                stdout_as_string=False,
                strip_newline_in_stdout=False,
            )
    except GitCommandNotFound as error:
        raise GitFailed("git is not installed: install it and run again") from error
    except GitCommandError as error:
        said = str(error.stderr)
        if any(words in said for words in _MISSING):
            raise MissingObjects(said.strip()) from error
        raise GitFailed(f"git {' '.join(arguments)} failed on {command[-1]}: {said.strip()}") from error
    assert isinstance(output, bytes)
    return output
