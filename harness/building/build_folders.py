"""Where native builds are made: folders at fixed paths, whose build tree serves the next build where that is safe."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from perfquarry.data.files import remove, write_whole
from perfquarry.harness.metadata.package import read_text
from perfquarry.harness.metadata.recipe import SITE
from perfquarry.harness.trees.checkouts import build_inputs

# What build systems rebuild from by its time; where distutils overlooks it (headers, static libraries): `_MADE`
_TRACKED = {
    ".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".inc", ".inl", ".ipp", ".tcc", ".s", ".S",
    ".pyx", ".rs", ".src",
}  # fmt: skip
_GENERATED_FROM = {".pyx", ".src"}
"""Of these, those whose generator may not know that another file includes them."""
_PREFIX = re.compile(r"""^parentdir_prefix[ \t]*=[ \t]*["']?([\w.-]+)""", re.M)
_INCLUDES = re.compile(r"""^[ \t]*#?[ \t]*include[ \t]+['"<](?:[^'">\n]*/)?([^'"/>\n]+)['">]""", re.M)
_MADE = {".o", ".obj", ".so", ".a", ".dylib"}
"""Removed before an incremental build where no tool knows what they depend on; a compiler cache makes up for it."""
_IDLE = re.compile(r"(^|/)(docs?|\.github|\.circleci)/|\.(rst|md|yml|yaml|ipynb|png|svg)$")
"""Files no build reads."""


ENVIRONMENT = ".environment"
"""Name of the link beside a build tree that leads to the environment in use."""


@dataclass(frozen=True)
class Sources:
    """A plain checkout, and what decides its build beside its files."""

    tree: Path
    key: str
    """Equal for equal environments, commands, versions and compilers."""
    name: str
    """What the folder is called in which they are built: without git, versioneer reads the version from there."""
    files: dict[str, str]
    """Mode and digest of every file by its path in the tree; of links, what they say."""

    @classmethod
    def of(cls, tree: Path, key: str, version: str) -> Sources:
        """Reads every file of the tree."""
        said = [_PREFIX.search(read_text(tree / name)) for name in ("setup.cfg", "pyproject.toml")]
        name = next((f"{found[1]}{version}" for found in said if found), "tree")
        files = {}
        for parent, folders, names in os.walk(tree):
            folders[:] = [name for name in folders if name != "__pycache__"]
            for path in [Path(parent, name) for name in [*names, *folders]]:
                if path.is_symlink():
                    files[str(path.relative_to(tree))] = f"-> {path.readlink()}"
                elif path.is_file():
                    with path.open("rb") as file:
                        digest = hashlib.file_digest(file, hashlib.blake2b).hexdigest()
                    files[str(path.relative_to(tree))] = f"{path.stat().st_mode & 0o111:o} {digest}"
        return cls(tree, key, name, files)

    def differing(self, files: dict[str, str]) -> set[str]:
        """Paths at which one of both has no file, or another."""
        return {name for name in self.files.keys() | files.keys() if self.files.get(name) != files.get(name)}

    def why_full(self, key: str, files: dict[str, str]) -> str:
        """Why what a build of other sources left is of no use for these; empty when it is."""
        if key != self.key:
            return "environment, commands, version or compilers are others"
        matters = build_inputs(self.tree)
        differing = {name for name in self.differing(files) if matters(os.fsencode(name)) and not _IDLE.search(name)}
        for name in sorted(differing):
            if name not in self.files or name not in files:
                return f"{name} was {'added' if name in self.files else 'deleted'}"
            if Path(name).suffix not in _TRACKED:
                return f"{name} differs"
        included = differing & self._included()
        return f"{min(included)} differs and is included by another file" if included else ""

    def _included(self) -> set[str]:
        """Files from which others are generated, and whose name an include in one of them says."""
        names = [name for name in self.files if Path(name).suffix in _GENERATED_FROM]
        said = {word for name in names for word in _INCLUDES.findall(read_text(self.tree / name))}
        return {name for name in names if Path(name).name in said}


class BuildFolder:
    """One folder to build in; to be used only while its lock is held.

    What lies in its build tree was written by strangers' code: links in it are not followed.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.tree = folder / name
        """The build tree."""
        self.lock = FileLock(build_folder_lock(folder))
        self._state = folder / "left.json"

    def why_full(self, sources: Sources) -> str:
        """Why the sources need a full build; empty when what is left here serves them."""
        try:
            left = json.loads(self._state.read_bytes())
        except (OSError, ValueError):
            left = None
        if not left or not self.tree.is_dir():
            return "no build is left"
        why = sources.why_full(left["key"], left["files"])
        moved = [name for name in sources.differing(left["files"]) if not self._is_plain(name)]
        return why or (f"the last build replaced {min(moved)}" if moved else "")

    def lay(self, sources: Sources, *, anew: bool = False) -> str:
        """Makes the build tree that of a checkout, and says how.

        'incremental: ...' when what the last build left was kept and only what differs was
        written, with newer times than all else; 'full: ...' with the reason. `anew`: full in any case.
        """
        why = "the incremental one failed" if anew else self.why_full(sources)
        known = {} if why else json.loads(self._state.read_bytes())["files"]
        self._state.unlink(missing_ok=True)  # until the build has ended well, nothing is known of the tree
        if why:
            self.clear()
            shutil.copytree(sources.tree, self.tree, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
            return f"full: {why}"
        differing = sources.differing(known)
        for name in differing:
            (self.tree / name).unlink(missing_ok=True)
        for name in differing & sources.files.keys():
            (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(sources.tree / name, self.tree / name, follow_symlinks=False)
            os.utime(self.tree / name, follow_symlinks=False)
        self._unlink_products(sources)
        return f"incremental: {len(differing)} files differ from the last build's"

    def environment(self, python: Path) -> Path:
        """The interpreter of an environment by a path that is the same for all environments of this folder.

        Compilers are given folders of the environment (`-I`): with their own paths, which name what is installed, a
        compiler cache would serve no build of another environment, though the headers are the same.

        Returns:
            The interpreter in `ENVIRONMENT`, a link to the environment's folder beside the build tree.
        """
        link = self.tree.parent / ENVIRONMENT
        remove(link)
        link.symlink_to(python.parent.parent)
        return link / python.relative_to(python.parent.parent)

    def keep(self, sources: Sources) -> None:
        """Notes that the build tree is what a build of the sources left."""
        write_whole(self._state, json.dumps({"key": sources.key, "files": sources.files}))

    def clear(self) -> None:
        """Removes the build tree; what a survivor of a killed build still writes goes to another folder."""
        self._state.unlink(missing_ok=True)
        self.tree.parent.mkdir(parents=True, exist_ok=True)
        if self.tree.exists():
            self.tree.rename(self.tree.with_name(uuid.uuid4().hex))
        for old in self.tree.parent.iterdir():
            remove(old)

    def _is_plain(self, name: str) -> bool:
        """Whether a path of the tree leads through folders to a file or nothing."""
        path = self.tree / name
        folders = [self.tree, *(self.tree / parent for parent in Path(name).parents)]
        linked = any(folder.is_symlink() or (folder.exists() and not folder.is_dir()) for folder in folders)
        return not linked and (path.is_symlink() or not path.is_dir())

    def _unlink_products(self, sources: Sources) -> None:
        """Removes what compilers made, but what ninja and cargo look after, and objects with a list of dependencies."""
        if (self.tree / SITE).is_dir() and not (self.tree / SITE).is_symlink():
            remove(self.tree / SITE)
        looked_after = {self.tree / "build" / "cargo", *(file.parent for file in self.tree.rglob("build.ninja"))}
        for path in self.tree.rglob("*"):
            listed = path.with_name(f"{path.name}.d").exists() or path.with_suffix(".d").exists()
            if (
                path.suffix in _MADE
                and not (listed and path.suffix == ".o")
                and not looked_after.intersection(path.parents)
                and str(path.relative_to(self.tree)) not in sources.files
                and (path.is_symlink() or path.is_file())
            ):
                path.unlink()


def build_folder_lock(folder: Path) -> Path:
    """The lock file of a build folder; its time is that of the last use."""
    return folder.with_name(f"{folder.name}.lock")


@contextlib.contextmanager
def locked_build_folder(folders: Sequence[Path], sources: Sources) -> Iterator[BuildFolder]:
    """One of the folders, locked: a free one whose build tree serves the sources, else a free one, else the first."""
    folders[0].parent.mkdir(parents=True, exist_ok=True)
    candidates = [BuildFolder(folder, sources.name) for folder in folders]
    for place in sorted(candidates, key=lambda place: place.why_full(sources) != ""):
        try:
            held = place.lock.acquire(timeout=0)
        except Timeout:
            continue
        break
    else:
        place = candidates[0]
        held = place.lock.acquire()
    with held:
        os.utime(place.lock.lock_file)
        yield place
