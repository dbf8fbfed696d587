"""What lies in the layers of an image: files by git's id of their content, objects of git, distributions, caches.

All layers are read, not what a container shows: a file that a later layer deletes is still in the image.
Archives are opened once (wheels, eggs, zip and tar files): what is inside counts, too.
"""

from __future__ import annotations

import email
import hashlib
import io
import re
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from packaging.utils import canonicalize_name

from perfquarry.data.errors import GitFailed
from perfquarry.data.git import make_ours
from perfquarry.harness.trees.clone_git import MissingObjects, git

LARGEST = 512 * 1024**2
"""Bytes of a file that is held in memory: archives and packs."""
_ARCHIVE = re.compile(r".*\.(whl|egg|zip|tar|tar\.gz|tgz|tar\.bz2|tar\.xz)")
_LOOSE = re.compile(r"(?:.*/)?objects/[0-9a-f]{2}/[0-9a-f]{38}")
_PACK = re.compile(r"(?:.*/)?pack-[^/]*\.pack")
_TRACE = re.compile(r"(?:.*/)?\.git/(?:ORIG_HEAD|FETCH_HEAD|MERGE_HEAD|logs/.+|refs/(?:remotes|tags|stash).+|shallow)")
_CACHE = re.compile(
    r"(?:.*/)?(?:\.cache/(?:pip|uv)|pip/(?:http|http-v2|wheels|selfcheck)|uv/(?:archive|wheels|simple)-v\d+)/.+"
)
_METADATA = re.compile(r".*\.(?:dist|egg)-info/(?:METADATA|PKG-INFO)|(?:.*/)?[^/]*\.egg-info|(?:.*/)?PKG-INFO")
_WHEEL = re.compile(r"(?:.*/)?([A-Za-z0-9._]+)-([^-/]+)-.*\.whl")
_SDIST = re.compile(r"(?:.*/)?([A-Za-z0-9._-]+)-(\d[^-/]*)\.(?:tar\.gz|zip|tgz|egg)")


@dataclass
class Contents:
    """Of one layer or more."""

    blobs: dict[str, str] = field(default_factory=dict)
    """A place of each content, by git's id of it: files, files within archives, objects of git."""
    commits: set[str] = field(default_factory=set)
    """Ids of the commits that some `.git` holds, reachable or not."""
    traces: list[str] = field(default_factory=list)
    """Files in which git or an installer keeps what was there later: ORIG_HEAD, reflogs, caches."""
    distributions: set[tuple[str, str, str]] = field(default_factory=set)
    """Name in normal form, version and place of what is installed or packed."""

    def add(self, other: Contents) -> None:
        """Adds another layer."""
        self.blobs = {**other.blobs, **self.blobs}
        self.commits |= other.commits
        self.traces += other.traces
        self.distributions |= other.distributions


def contents_of(layer: Path) -> Contents:
    """Reads one layer: a tar archive, packed or not.

    Raises:
        tarfile.TarError: it is none.
    """
    found = Contents()
    with tarfile.open(layer, "r:*") as archive:
        for info in archive:
            if info.isfile() and (file := archive.extractfile(info)):
                _file(found, info.name.removeprefix("./"), info.size, file)
    return found


def _file(found: Contents, name: str, size: int, file: IO[bytes], *, inside: bool = False) -> None:
    if _TRACE.fullmatch(name) or _CACHE.fullmatch(name):
        found.traces.append(name)
    for pattern in (_WHEEL, _SDIST):
        if match := pattern.fullmatch(name):
            found.distributions.add((canonicalize_name(match[1]), match[2], name))
    archive = _ARCHIVE.fullmatch(name) and not inside
    known = (_METADATA, _LOOSE, _PACK)
    if size > LARGEST or not (archive or any(pattern.fullmatch(name) for pattern in known)):
        found.blobs.setdefault(_blob_id(size, file), name)
        return
    content = file.read()
    found.blobs.setdefault(_blob_id(size, io.BytesIO(content)), name)
    if _METADATA.fullmatch(name):
        facts = email.message_from_bytes(content)
        found.distributions.add((canonicalize_name(facts.get("Name", "")), facts.get("Version", ""), name))
    elif _LOOSE.fullmatch(name):
        _loose(found, name, content)
    elif _PACK.fullmatch(name):
        _pack(found, name, content)
    else:
        for inner, length, member in _members(content):
            _file(found, f"{name}!{inner}", length, member, inside=True)


def _blob_id(size: int, file: IO[bytes]) -> str:
    digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    while block := file.read(1024**2):
        digest.update(block)
    return digest.hexdigest()


def _loose(found: Contents, name: str, content: bytes) -> None:
    with suppress(zlib.error):
        data = zlib.decompress(content)
        _object(found, hashlib.sha1(data, usedforsecurity=False).hexdigest(), data.split(b" ", 1)[0].decode(), name)


def _pack(found: Contents, name: str, content: bytes) -> None:
    """All objects of a pack, by git itself."""
    with tempfile.TemporaryDirectory(prefix="pq-pack-") as place:
        clone = Path(place) / "pack.git"
        make_ours(clone)
        file = clone / "objects" / "pack" / f"pack-{'0' * 40}.pack"
        file.write_bytes(content)
        try:
            git(clone, "index-pack", str(file))
            listed = git(clone, "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)")
        except (GitFailed, MissingObjects):
            return  # no pack, whatever its name says
    for line in listed.decode().splitlines():
        identity, _, kind = line.partition(" ")
        _object(found, identity, kind, name)


def _object(found: Contents, identity: str, kind: str, name: str) -> None:
    if kind == "commit":
        found.commits.add(identity)
    if kind == "blob":
        found.blobs.setdefault(identity, name)


def _members(content: bytes) -> Iterator[tuple[str, int, IO[bytes]]]:
    """Files of an archive; none where it is no archive."""
    with suppress(zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error):
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            for info in packed.infolist():
                if not info.is_dir() and info.file_size <= LARGEST:
                    yield info.filename, info.file_size, io.BytesIO(packed.read(info))
        return
    with (
        suppress(tarfile.TarError, EOFError, zlib.error, OSError),
        tarfile.open(fileobj=io.BytesIO(content)) as archive,
    ):
        for member in archive:
            if member.isfile() and member.size <= LARGEST and (file := archive.extractfile(member)):
                yield member.name, member.size, file
