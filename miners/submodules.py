"""Commits of submodules, fetched to `modules` of the clone of a remote repository: native builds may need them.

A local source's own submodules are read where they lie (`miners.clone`). The addresses are a stranger's: only
https is followed (http where the repository itself came by it), and nothing of the user's goes along, neither
configuration nor credentials.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from filelock import FileLock

from perfquarry.data.errors import GitFailed
from perfquarry.data.git import git_for_remotes, git_of, make_ours, without_password
from perfquarry.data.records import content_id

DEPTH = 3
"""Submodules of submodules that are followed."""
_PATIENCE = ("-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=60")


def fetch_submodules(source: str | Path, clone: Path, commits: Iterable[str]) -> list[str]:
    """Fetches what some commits of a clone name as submodules and is not there yet; what failed, a line each.

    Where `source` is no http(s) address, nothing is fetched. What cannot be fetched (an address that is gone, no
    network) stays away, for this process is not tried again, and is no error: many builds do without.

    Raises:
        GitFailed: a commit of the clone itself cannot be read.
    """
    if urlsplit(str(source)).scheme not in ("http", "https"):
        return []
    failed, seen = [], set()
    wanted = [(str(source), clone, commit, DEPTH) for commit in commits]
    while wanted:
        address, folder, commit, depth = wanted.pop()
        for path, url, inner in _named(folder, commit):
            there = urljoin(f"{address.rstrip('/')}/", url)
            if (there, inner) in seen:
                continue
            seen.add((there, inner))
            module = clone / "modules" / content_id(there)
            if why := _fetched(module, there, inner, urlsplit(str(source)).scheme):
                failed.append(f"submodule {path}: {why}")
            elif depth:
                wanted.append((there, module, inner, depth - 1))
    return failed


def _named(folder: Path, commit: str) -> Iterator[tuple[str, str, str]]:
    """(Path, address, commit) of the submodules of a commit that have an address."""
    git = git_of(folder)
    listing = git.output("ls-tree", "-r", "-z", commit, doing=f"listing {commit} of {folder}")
    entries = [os.fsdecode(entry).partition("\t") for entry in listing.split(b"\0") if entry.startswith(b"160000 ")]
    if not entries:
        return
    try:
        query = ("config", f"--blob={commit}:.gitmodules", "-z", "--get-regexp", r"^submodule\..*\.(path|url)$")
        lines = os.fsdecode(git.output(*query, doing=f"reading .gitmodules of {commit}")).split("\0")
    except GitFailed:  # there is none, or it is no configuration
        return
    values = dict(line.split("\n", 1) for line in lines if "\n" in line)
    paths = {path: key.removesuffix(".path") for key, path in values.items() if key.endswith(".path")}
    for facts, _, path in entries:
        if url := values.get(f"{paths.get(path)}.url"):
            yield path, url, facts.split()[2]


@functools.lru_cache(maxsize=4096)
def _fetched(module: Path, address: str, commit: str, scheme: str) -> str:
    """'' when the commit is there now, else why not."""
    if urlsplit(address).scheme not in ("https", scheme):
        return f"{without_password(address)} is no https address"
    try:
        with FileLock(f"{module}.lock"):
            if not (module / "HEAD").exists():
                make_ours(module, len(commit))
            if not _has(module, commit):
                _fetch(module, address, commit, scheme)
    except GitFailed as error:
        return str(error)
    return "" if _has(module, commit) else f"{without_password(address)} has no commit {commit}"


def _has(module: Path, commit: str) -> bool:
    try:
        git_of(module).output("cat-file", "-e", f"{commit}^{{commit}}", doing=f"looking for {commit}")
    except GitFailed:
        return False
    return True


def _fetch(module: Path, address: str, commit: str, scheme: str) -> None:
    """The commit alone, or all branches and tags where the server gives no single commits."""
    git = git_for_remotes(module, protocols=f"https:{scheme}", anonymous=True)
    fetch = (*_PATIENCE, "fetch", "--quiet", "--no-tags", "--no-auto-gc", "--no-write-fetch-head")
    doing = f"fetching {without_password(address)}"
    try:
        git.output(*fetch, "--depth=1", "--", address, f"{commit}:refs/commits/{commit}", doing=doing)
    except GitFailed:
        git.output(*fetch, "--", address, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*", doing=doing)
