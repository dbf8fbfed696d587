"""Copies of local repositories: objects by hard link, refs as text, nothing else, and no git in the source.

Neither configuration, hooks nor attributes of the source come along. Damaged, shallow and partial sources are copied
as they are.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from perfquarry.data.errors import GitFailed
from perfquarry.data.files import appearing
from perfquarry.data.git import GitFolders, Refs, make_ours, refs_of, write_refs

_FOLDER = re.compile(r"[0-9a-f]{2}")
_LOOSE = re.compile(r"[0-9a-f]{38}(?:[0-9a-f]{24})?")
_PACK = re.compile(r"pack-[0-9a-f]{40}(?:[0-9a-f]{24})?\.(?:pack|idx)")
_BRANCHES_AND_TAGS = ("refs/heads/", "refs/tags/")


def copy_repository(source: GitFolders, destination: Path) -> Refs:
    """Brings a repository of ours up to date with a local source, or makes it; returns the source's refs.

    Objects that the source no longer has stay: rows of earlier runs name them.

    Raises:
        GitFailed: the source cannot be read, or the copy cannot be written.
    """
    found = refs_of(source)
    kept = {name: value for name, value in found.refs.items() if name.startswith(_BRANCHES_AND_TAGS)}
    try:
        make_ours(destination, found.digits)
        if (destination / "modules").is_symlink():  # of an older version
            (destination / "modules").unlink()
        _copy_objects(source.common, destination)
        for name, module in _modules(source):
            make_ours(destination / "modules" / name, found.digits)
            _copy_objects(module, destination / "modules" / name)
        write_refs(destination, found._replace(refs=kept))
    except OSError as error:
        raise GitFailed(f"copying {source.own}: {error}; check the disk, then run again") from error
    return found


def _modules(source: GitFolders) -> Iterator[tuple[str, Path]]:
    """Name and git folder of the submodules that were cloned with a repository, those of submodules too."""
    for top in (folder / "modules" for folder in dict.fromkeys(source)):
        for place, folders, names in () if top.is_symlink() else os.walk(top):
            if "HEAD" in names and "objects" in folders and not (objects := Path(place, "objects")).is_symlink():
                folders.remove(objects.name)
                yield Path(place).relative_to(top).as_posix(), Path(place)


def _copy_objects(source: Path, destination: Path) -> None:
    """Loose objects, then packs: an index comes after its pack, so that whoever reads meanwhile sees whole ones."""
    objects = source / "objects"
    for folder in _named(objects, _FOLDER):
        if folder.is_dir(follow_symlinks=False):
            (into := destination / "objects" / folder.name).mkdir(exist_ok=True)
            for file in _named(Path(folder.path), _LOOSE):
                _copy(file, into)
    packs = objects / "pack"
    if packs.is_dir() and not packs.is_symlink():
        for file in sorted(_named(packs, _PACK), key=lambda one: one.name.endswith(".idx")):
            _copy(file, destination / "objects" / "pack")


def _named(folder: Path, pattern: re.Pattern[str]) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return [entry for entry in entries if pattern.fullmatch(entry.name)]


def _copy(file: os.DirEntry[str], into: Path) -> None:
    """The file under the same name, where it is a plain one and not the same already."""
    if not file.is_file(follow_symlinks=False):
        return
    there, facts = into / file.name, file.stat(follow_symlinks=False)
    if there.exists() and ((old := there.stat()).st_size, old.st_mtime_ns) == (facts.st_size, facts.st_mtime_ns):
        return
    with appearing(there) as partial:
        try:
            os.link(file.path, partial, follow_symlinks=False)
        except OSError:  # another file system, or another owner
            shutil.copy2(file.path, partial, follow_symlinks=False)
