"""Bare clones in the home: made once, then brought up to date.

A local source is copied without git (`miners.copying`): with hard links where the file system allows it, so that a
clone survives the deletion of its source, and damaged or partial sources can be cloned as they are. All other
sources are cloned by git. Either way the clone's configuration is ours (`data.git`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from filelock import FileLock

from perfquarry.data.demo import build_demo
from perfquarry.data.errors import GitFailed, InputError
from perfquarry.data.files import appearing
from perfquarry.data.git import (
    GitFolders,
    git_folder,
    git_for_remotes,
    git_of,
    is_ours,
    make_ours,
    refs_of,
    without_password,
)
from perfquarry.data.home import Home
from perfquarry.data.registry import Repository
from perfquarry.miners.copying import copy_repository

_URL = re.compile(r"(https?|git|ssh)://|[\w.-]+@[\w.-]+:")
_PROTOCOLS = "git:http:https:ssh"
_EVERYTHING = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")


def ensure_clone(source: str | Path, destination: Path, *, branch: str | None = None) -> Path:
    """Clones `source` (URL or local path) to `destination`, or fetches what is new; returns `destination`.

    HEAD becomes `branch`, or the source's own default branch. A clone appears whole or not at all. A source that is
    the destination stays as it is.

    Raises:
        InputError: `source` is neither a URL nor a repository on this machine, has no such branch, or borrows its
            objects from another repository.
        GitFailed: git could not clone or fetch.
    """
    local = _local(source)
    destination = destination.absolute()
    if local and destination.exists() and local.own.samefile(destination):
        return destination
    head = _copy(local, destination) if local else _fetch_or_clone(str(source), destination)
    if branch or head:
        _point_head(str(source), destination, branch or head)
    return destination


def source_of(home: Home, repository: Repository) -> str:
    """Where a repository is cloned from where nobody says it: its clone in the home, if nothing else says where it is.

    Raises:
        InputError: nothing does, and there is no clone.
    """
    if repository.name == "demo":
        path = home.repositories / "demo-source"
        build_demo(path)
        return str(path)
    clone = home.clone(repository.name)
    if not repository.url and not clone.exists():
        raise InputError(f"{repository.name} has no URL in the registry: name one with --source PATH|URL")
    return repository.url or str(clone)


def clone_into(home: Home, repository: Repository, source: str) -> Path:
    """The home's clone of a repository, made from `source` or brought up to date.

    Raises:
        InputError, GitFailed: as `ensure_clone` does.
    """
    with FileLock(home.clone_lock(repository.name)):
        return ensure_clone(source, home.clone(repository.name), branch=repository.branch or None)


def is_local(source: str) -> bool:
    """Whether a source is on this machine, or is at least no URL."""
    return not _URL.match(source)


def _local(source: str | Path) -> GitFolders | None:
    """The git folders of a local source; None for a URL."""
    if isinstance(source, str) and not is_local(source):
        return None
    if str(source).startswith("file://"):
        source = unquote(urlsplit(str(source)).path)
    path = Path(source).expanduser()
    if not str(source) or "::" in str(source) or not path.exists():
        raise InputError(
            f"'{without_password(str(source))}' is neither a repository on this machine nor a http, https, git or "
            "ssh URL"
        )
    return git_folder(path, above=True)


def _copy(source: GitFolders, destination: Path) -> str:
    """Copies a local source; returns its branch, empty where it has none checked out."""
    if (destination / "HEAD").is_file():
        head = copy_repository(source, destination).head
    else:
        head = _whole(destination, str(source.own), lambda partial: copy_repository(source, partial).head)
    return head.removeprefix("refs/heads/") if head.startswith("refs/heads/") else ""


def _whole(destination: Path, origin: str, make: Callable[[Path], str]) -> str:
    """What `make` says of the clone it made under another name: it is there whole or not at all."""
    if destination.exists() and any(destination.iterdir()):
        raise GitFailed(f"cloning {origin}: {destination} is there and is no clone; move it away and run again")
    try:
        with appearing(destination) as partial:
            return make(partial)
    except GitFailed as error:
        raise GitFailed(f"{error}; check the address, your access and the disk, then run again") from error


def _fetch_or_clone(origin: str, destination: Path) -> str:
    """Brings a clone of a remote repository up to date, or makes it; returns the remote's branch."""
    shown, git = without_password(origin), git_for_remotes(protocols=_PROTOCOLS)

    def clone(partial: Path) -> str:
        git.output("clone", "--bare", "--quiet", "--template=", "--", origin, str(partial), doing=f"cloning {shown}")
        # An address with a password in it must not stay on disk.
        make_ours(partial, refs_of(GitFolders(partial, partial)).digits)
        return ""

    if not (destination / "HEAD").is_file():
        _whole(destination, shown, clone)
    else:
        if not is_ours(destination):  # made by an older version
            make_ours(destination, refs_of(GitFolders(destination, destination)).digits)
        _fetch(origin, destination)
    listing = git.output("ls-remote", "--symref", "--", origin, "HEAD", doing=f"asking {shown} for its branch")
    found = re.match(rb"ref: refs/heads/([^\t\n]+)\tHEAD", listing)
    return os.fsdecode(found.group(1)) if found else ""


def _fetch(origin: str, destination: Path) -> None:
    shown, git = without_password(origin), git_for_remotes(destination, protocols=_PROTOCOLS)
    fetch = ("fetch", "--quiet", "--prune", "--no-tags", "--no-write-fetch-head", "--no-auto-gc", "--", origin)
    try:
        git.output(*fetch, *_EVERYTHING, doing=f"fetching {shown}")
    except GitFailed as error:
        raise GitFailed(f"{error}; check the network, or delete {destination} to clone it again") from error


def _point_head(origin: str, destination: Path, branch: str) -> None:
    clone, shown = git_of(destination), without_password(origin)
    try:
        name = f"refs/heads/{branch}"
        clone.output("rev-parse", "--verify", "--quiet", "--end-of-options", name, doing=f"looking for branch {branch}")
    except GitFailed as error:
        if not clone.output("for-each-ref", "--count=1", "refs/heads", doing=f"listing the branches of {shown}"):
            raise InputError(f"{shown} has no commit: there is no history to read") from error
        raise InputError(f"{shown} has no branch '{branch}': see its branches with `git branch -a`") from error
    clone.output("symbolic-ref", "HEAD", name, doing=f"choosing branch {branch}")
