"""Builds the demo history as a bare git repository whose hashes are the same on every machine."""

from __future__ import annotations

import tempfile
from datetime import datetime
from pathlib import Path

from filelock import FileLock

from perfquarry.data.demo.commits import DemoCommit, read_commits, width_table
from perfquarry.data.demo.expectations import expected
from perfquarry.data.errors import GitFailed, InputError
from perfquarry.data.files import appearing
from perfquarry.data.git import Git, git_of, make_ours, plain_text

_MARK = "perfquarry.demo"
"""A file in the repositories made here: only those may be replaced."""


def build_demo(path: Path) -> str:
    """Makes the demo repository at `path` unless it is there already; returns the sha of its head.

    The repository is written elsewhere and moved into place, so `path` never holds
    half of one. A demo of another version is replaced.

    Raises:
        InputError: `path` holds something else.
        GitFailed: git is missing or failed, or made other hashes than it ought to.
    """
    last = expected()[-1]
    if _head(path) == last.head_sha:
        return last.head_sha
    with FileLock(path.with_name(f".{path.name}.lock")):
        if _head(path) == last.head_sha:  # another process was faster
            return last.head_sha
        _refuse_foreign(path)
        with appearing(path, over=True) as fresh:
            made = write_history(fresh)[last.label]
            if made != last.head_sha:
                raise GitFailed(f"building the demo history gave {made}, not {last.head_sha}: report git's version")
    return last.head_sha


def write_history(path: Path) -> dict[str, str]:
    """Writes a new bare repository with the demo history at `path`; returns {label: sha}.

    Raises:
        GitFailed: git is missing or failed.
    """
    make_ours(path)
    (path / _MARK).touch()
    index = path / "demo-index"
    git = git_of(path).having(GIT_INDEX_FILE=str(index))
    shas: dict[str, str] = {}
    indexed = ""
    for commit in read_commits():
        if commit.parents and commit.parents[0] != indexed:
            _run(git, "read-tree", shas[commit.parents[0]])
        shas[commit.label] = _commit(git, commit, [shas[parent] for parent in commit.parents])
        indexed = commit.label
    _run(git, "update-ref", "refs/heads/main", shas[indexed])
    index.unlink()
    return shas


def _commit(git: Git, commit: DemoCommit, parents: list[str]) -> str:
    """Writes one commit; the index holds the tree of its first parent before and its own after."""
    if commit.patch:
        _run(git, "apply", "--cached", "--whitespace=nowarn", "-", stdin=commit.patch)
    if commit.generated:
        blob = _run(git, "hash-object", "-w", "--stdin", stdin=width_table())
        _run(git, "update-index", "--add", "--cacheinfo", f"100644,{blob},{commit.generated}")
    people = {
        **_person("AUTHOR", commit.author, commit.date),
        **_person("COMMITTER", commit.committer or commit.author, commit.committed or commit.date),
    }
    links = [argument for parent in parents for argument in ("-p", parent)]
    return _run(git.having(**people), "commit-tree", *links, _run(git, "write-tree"), stdin=commit.message)


def _person(role: str, person: str, date: datetime) -> dict[str, str]:
    name, _, mail = person.rstrip(">").partition(" <")
    return {f"GIT_{role}_NAME": name, f"GIT_{role}_EMAIL": mail, f"GIT_{role}_DATE": date.isoformat()}


def _run(git: Git, *arguments: str, stdin: str = "") -> str:
    """Output of one command, without the white space at its ends."""
    with tempfile.TemporaryFile() as file:
        file.write(stdin.encode())
        file.seek(0)
        done = git.run(*arguments, istream=file)
    if done.code:
        raise GitFailed(f"building the demo history: git {arguments[0]}: {done.said}")
    return done.out.decode().strip()


def _head(path: Path) -> str | None:
    """Sha of the main branch of the demo repository at `path`; None if there is none."""
    if not (path / "HEAD").is_file():
        return None
    try:
        return _run(git_of(path), "rev-parse", "--verify", "--quiet", "refs/heads/main")
    except GitFailed:
        return None


def _refuse_foreign(path: Path) -> None:
    """Raises InputError if `path` holds anything but a demo of another version."""
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    is_demo = (path / _MARK).is_file() or "[perfquarry]" in plain_text(path / "config", 4096)  # of older versions
    if not is_demo:
        raise InputError(f"the demo repository cannot be made at {path}: something else is there; move it away")
