"""How git is called: one environment, one set of options, errors translated. All of it through GitPython.

Hooks, configured filters, external diffs, pagers, replacements and lazy fetches are off, and what a
repository's own configuration says about diffs does not count, so that the same commits give the same
bytes on every machine.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from git import Git
from git.exc import GitCommandError, GitCommandNotFound, NoSuchPathError

from data.errors import GitFailed

HERE = Path(__file__).parent
CONFIG = HERE / "gitconfig.txt"
ATTRIBUTES = HERE / "gitattributes.txt"
ALL_BINARY = HERE / "all_binary.txt"

LARGEST_COMPARED = 32 * 1024 * 1024
"""Bytes; git takes larger files for binary. To compare them as text it needs ten times their size in memory."""

_OVERRIDES = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.attributesFile": str(ATTRIBUTES),
    "core.quotePath": "true",
    "core.bigFileThreshold": str(LARGEST_COMPARED),
    # Memory of git's own, each process: cheap to lower, no slower on numpy's history (256 MB to 139 MB).
    "core.packedGitWindowSize": "8m",
    "core.packedGitLimit": "64m",
    "core.deltaBaseCacheLimit": "64m",
    "protocol.ext.allow": "never",
    "attr.tree": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",  # the empty tree: attributes in commits do not count
    "diff.algorithm": "default",
    "diff.context": "3",
    "diff.interHunkContext": "0",
    "diff.indentHeuristic": "true",
    "diff.mnemonicPrefix": "false",
    "diff.noprefix": "false",
    "diff.orderFile": "/dev/null",
    "diff.renameLimit": "1000",
    "diff.suppressBlankEmpty": "false",
    "diff.submodule": "short",
    "diff.ignoreSubmodules": "none",
    "diff.relative": "false",
    # A plain pattern: git's own for Python costs three times as much.
    "diff.python-plain.xfuncname": r"^( *(class|c?p?def|async) .*)$",
    "log.showRoot": "true",
    "log.showSignature": "false",
    "i18n.logOutputEncoding": "UTF-8",
}

_ALWAYS = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_DIFF_OPTS": "",
    "GIT_FLUSH": "0",  # or git writes each commit on its own, and both sides wait for each other
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
}

_ISOLATED = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": str(CONFIG),
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "file",
}

PATCH = ("-p", "-U3")
"""Ask for patches, whatever `diff.context` says. Either of them alone does: a count of lines must have neither."""
DIFF_OPTIONS = ("--no-ext-diff", "--no-textconv", "--no-color", "-M", "--src-prefix=a/", "--dst-prefix=b/")


def git_of(clone: Path) -> Git:
    """GitPython's `Git` that reads one repository (bare or not) and nothing of the user's configuration."""
    folder = clone / ".git" if (clone / ".git").exists() else clone
    git = Git(str(clone))
    git.update_environment(**{**_ALWAYS, **_command_scope(_OVERRIDES), **_ISOLATED, "GIT_DIR": str(folder.resolve())})
    return git


def git_in(folder: Path, *, isolated: bool) -> Git:
    """GitPython's `Git` for making and updating clones.

    Remotes may need the user's proxies, certificates and credentials: not `isolated`. Local sources
    are, and may belong to another user.
    """
    git = Git(str(folder))
    git.update_environment(**{**_ALWAYS, **_command_scope(_OVERRIDES), **(_ISOLATED if isolated else {})})
    return git


@contextmanager
def objects_of(clone: Path) -> Iterator[Git]:
    """A `Git` for which only the objects of a clone exist, not its configuration.

    In a partial clone git ends with an error at the first missing object it is asked about; here it
    answers "missing", as in any other.
    """
    folder = clone / ".git" if (clone / ".git").is_dir() else clone
    with tempfile.TemporaryDirectory(prefix="perfquarry-git-") as empty:
        for name in ("objects", "refs"):
            (Path(empty) / name).mkdir()
        (Path(empty) / "HEAD").write_text("ref: refs/heads/none\n", encoding="ascii")
        git = git_of(clone)
        git.update_environment(GIT_DIR=empty, GIT_OBJECT_DIRECTORY=str((folder / "objects").resolve()))
        yield git


@contextmanager
def given(lines: Iterable[str]) -> Iterator[BinaryIO]:
    """A file with these lines, to be the standard input of a command."""
    with tempfile.TemporaryFile() as file:
        file.write("".join(f"{line}\n" for line in lines).encode())
        file.seek(0)
        yield cast(BinaryIO, file)


def output(git: Git, *arguments: str, doing: str, lines: Iterable[str] | None = None) -> bytes:
    """Standard output of one git command; `lines` go to its standard input.

    Raises:
        GitFailed: it ended with an error; the text begins with `doing`.
    """
    try:
        if lines is None:
            return _run(git, arguments)
        with given(lines) as istream:
            return _run(git, arguments, istream=istream)
    except (GitCommandError, GitCommandNotFound, NoSuchPathError, OSError) as error:
        raise GitFailed(f"{doing}: {explain(error)}") from error


def explain(error: Exception) -> str:
    """What git said, in one line."""
    text = str(getattr(error, "stderr", "") or error)
    return " ".join(text.replace("stderr:", "").strip(" '\n").split())[-600:]


def _run(git: Git, arguments: tuple[str, ...], **options: object) -> bytes:
    done = git.execute(["git", *arguments], stdout_as_string=False, strip_newline_in_stdout=False, **options)  # type: ignore[call-overload]
    return bytes(done)


def _command_scope(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings as environment variables: they win over every file and are inherited."""
    scope = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        scope[f"GIT_CONFIG_KEY_{number}"] = key
        scope[f"GIT_CONFIG_VALUE_{number}"] = value
    return scope
