"""Bare clones in the home: made once, then brought up to date.

A local source is cloned with hard links where the file system allows it and copies elsewhere, so
that a clone survives the deletion of its source and damaged or partial sources can be cloned as they
are (a pack sent by git must be whole). Only what a source itself borrows from others stays borrowed.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from pathlib import Path

from git import Git
from git.util import remove_password_if_present

from data.errors import GitFailed, InputError
from miners.git import git_in, git_of, output

_URL = re.compile(r"(https?|git|ssh|file)://|[\w.-]+@[\w.-]+:")
_EVERYTHING = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")


def ensure_clone(source: str | Path, destination: Path, *, branch: str | None = None) -> Path:
    """Clones `source` (URL or local path) to `destination`, or fetches what is new; returns `destination`.

    HEAD becomes `branch`, or the source's own default branch. A clone appears whole or not at all.

    Raises:
        InputError: `source` is neither a URL nor a repository on this machine, or has no such branch.
        GitFailed: git could not clone or fetch.
    """
    local = _local(source)
    git = git_in(Path("/"), isolated=local is not None)
    origin = str(local) if local else str(source)
    destination = destination.absolute()
    if (destination / "HEAD").is_file():
        _fetch(git, origin, destination, local)
    else:
        _clone(git, origin, destination)
    _point_head(git, origin, destination, branch)
    _link_modules(local, destination)
    return destination


def default_branch(repo: Path) -> str:
    """Name of the branch HEAD stands for: HEAD itself, else main, master or the only branch.

    Raises:
        InputError: none of these exists.
    """
    git = git_of(repo)
    listing = output(git, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads", doing=f"listing {repo}")
    branches = os.fsdecode(listing).splitlines()
    head = _symbolic_head(git)
    candidates = [head, "main", "master", *(branches if len(branches) == 1 else [])]
    for name in candidates:
        if name in branches:
            return str(name)
    raise InputError(f"{repo} has no default branch among {len(branches)} branches: name one with the branch option")


def _local(source: str | Path) -> Path | None:
    """The git folder of a local source; None for a URL."""
    if isinstance(source, str) and _URL.match(source):
        return None
    path = Path(source).expanduser()
    if "::" in str(source) or not path.exists():
        raise InputError(
            f"'{_shown(str(source))}' is neither a repository on this machine nor a http, https, git or ssh URL"
        )
    try:
        found = output(git_in(path, isolated=True), "rev-parse", "--absolute-git-dir", doing=f"opening {path}")
    except GitFailed as error:
        raise InputError(f"{path} is no git repository: give the folder of a clone") from error
    return Path(os.fsdecode(found.rstrip(b"\n")))


def _shown(origin: str) -> str:
    """The address without a password, for people and logs."""
    return remove_password_if_present([origin])[0]


def _clone(git: Git, origin: str, destination: Path) -> None:
    if destination.exists() and any(destination.iterdir()):
        raise GitFailed(f"cloning {_shown(origin)}: {destination} is there and is no clone; move it away and run again")
    partial = destination.with_name(f".{destination.name}.partial-{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    destination.parent.mkdir(parents=True, exist_ok=True)
    arguments = ("clone", "--bare", "--quiet", "--template=", "--", origin, str(partial))
    try:
        output(git, *arguments, doing=f"cloning {_shown(origin)}")
        # The source is named anew each time; an address with a password in it must not stay on disk.
        output(git_of(partial), "config", "--remove-section", "remote.origin", doing=f"tidying {partial}")
        if destination.exists():
            destination.rmdir()
        partial.rename(destination)
    except GitFailed as error:
        raise GitFailed(f"{error}; check the address, your access and the disk, then run again") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _fetch(git: Git, origin: str, destination: Path, local: Path | None) -> None:
    fetch = ("fetch", "--quiet", "--prune", "--no-tags", "--no-write-fetch-head", "--no-auto-gc", "--", origin)
    try:
        output(git, f"--git-dir={destination}", *fetch, *_EVERYTHING, doing=f"fetching {_shown(origin)}")
    except GitFailed as error:
        if local is None:
            raise GitFailed(f"{error}; check the network, or delete {destination} to clone it anew") from error
        _replace(git, origin, destination)


def _replace(git: Git, origin: str, destination: Path) -> None:
    """Clones anew beside the old clone, then swaps: for sources git cannot fetch from, such as damaged ones."""
    fresh = destination.with_name(f".{destination.name}.fresh-{os.getpid()}")
    old = destination.with_name(f".{destination.name}.old-{os.getpid()}")
    try:
        _clone(git, origin, fresh)
        destination.rename(old)
        fresh.rename(destination)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _point_head(git: Git, origin: str, destination: Path, branch: str | None) -> None:
    clone = git_of(destination)
    if branch is None:
        listing = output(
            git, "ls-remote", "--symref", "--", origin, "HEAD", doing=f"asking {_shown(origin)} for its branch"
        )
        found = re.match(rb"ref: refs/heads/([^\t\n]+)\tHEAD", listing)
        branch = os.fsdecode(found.group(1)) if found else None
        if branch is None:
            return
    try:
        output(clone, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}", doing=f"looking for branch {branch}")
    except GitFailed as error:
        raise InputError(f"{_shown(origin)} has no branch '{branch}': see its branches with `git branch -a`") from error
    output(clone, "symbolic-ref", "HEAD", f"refs/heads/{branch}", doing=f"choosing branch {branch}")


def _link_modules(local: Path | None, destination: Path) -> None:
    """The submodules a local source has cloned are read where they lie; once it is gone, they are absent."""
    link = destination / "modules"
    if link.is_symlink():
        link.unlink(missing_ok=True)
    if local and (local / "modules").is_dir():
        with contextlib.suppress(FileExistsError):  # another run was first
            link.symlink_to(local / "modules")


def _symbolic_head(git: Git) -> str | None:
    try:
        found = output(git, "symbolic-ref", "--quiet", "--short", "HEAD", doing="reading HEAD")
    except GitFailed:
        return None
    return os.fsdecode(found.rstrip(b"\n"))
