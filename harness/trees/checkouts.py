"""Trees of commits as plain folders: no .git, no links out, the same times everywhere."""

from __future__ import annotations

import os
import re
import shutil
import stat
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

from packaging.version import InvalidVersion, Version

from perfquarry.data.errors import GitFailed
from perfquarry.data.files import appearing, remove
from perfquarry.data.home import Home
from perfquarry.data.records import Reason, content_id
from perfquarry.harness.leases.leases import lease, leases_held
from perfquarry.harness.rejections import Rejection
from perfquarry.harness.trees.clone_git import MissingObjects, git
from perfquarry.harness.trees.tree_copies import end_search_for_settings

MTIME = 946684800
"""Modification time of every file, seconds (2000-01-01, UTC): compiled bytecode stays valid wherever it is copied."""
SUBMODULE_DEPTH = 3
"""Submodules of submodules that are written."""

# Python files that build scripts run; any other .py file is only copied by a build
_BUILD_PYTHON = re.compile(
    rb"(^|/)setup[^/]*\.py$|(^|/)[^/]*(build|generat|codegen|tools|distutils|cython)[^/]*/.*\.py$"
)
# A build that compiles Python files: mypyc, or Cython given names that end so
_COMPILES_PYTHON = re.compile(rb"mypyc|(?:cythonize|Extension)\([^()]*\.py['\"]")
_SUBMODULE = "160000 "
_NEEDED = re.compile(
    r"\.(?:py|pyi|pyx|pxd|pxi|pth|c|h|cc|cpp|cxx|hh|hpp|f|f90|rs|s|src|in|m4|am|ac|sh|cmake|mk|build"
    r"|toml|cfg|ini|lock|txt|md|rst)"
)
"""Endings of files without which a tree is another program, or is built otherwise."""
_BUILD_NAME = re.compile(r"(?:gnu)?makefile|configure|config|scons(?:truct|cript)|install-sh|version|requirements")
"""Names without an ending of files that a build may read."""
_SCRIPTS = frozenset({"bin", "script", "scripts"})
"""Folders of commands that a package installs."""


class Checkouts:
    """The trees of one clone, at `<home>/trees/<repo>/<40 digits>`."""

    def __init__(self, home: Home, clone: Path, repo: str) -> None:
        self._clone = clone
        self._folder = home.trees / repo
        self._locks = home.locks

    def tree(self, sha: str) -> Path | Rejection:
        """The folder with the files of a commit (40 digits), made when it is not there; whole or absent, never partial.

        Submodules are there when the clone or its `modules` folder has their commit, else they are empty
        folders; a symbolic link that leads out of the tree is a file that holds the link's text. Data that the clone
        was made without (`git clone --filter=blob:limit=1m`) are left out: see `left_out`.

        Returns:
            The folder, or MISSING_OBJECTS when code or another part of the commit is missing in the clone.

        Raises:
            GitFailed: git failed for another reason.
            OSError: the disk did.
        """
        try:
            return self._whole(sha, lambda partial: _check_out(self._clone, sha, partial))
        except MissingObjects as error:
            return Rejection(Reason.MISSING_OBJECTS, f"checking out {sha}: {error}")

    def left_out(self, sha: str) -> list[str]:
        """Paths of data files of a commit whose tree is there that its folder is without: the clone is."""
        tree = self._folder / sha
        try:
            names = [os.fsdecode(path) for path, _ in _files_of(self._clone, sha)]
        except MissingObjects:  # of a tree that was made before
            return []
        return [name for name in names if _is_data(name) and not os.path.lexists(tree / name)]

    @leases_held()
    def tree_with(self, sha: str, key: str, added: Path) -> Path | Rejection:
        """The tree of a commit with files that a build added, at `<home>/trees/<repo>/<40 digits>-<key>`."""
        tree = self.tree(sha)
        if isinstance(tree, Rejection):
            return tree

        def make(partial: Path) -> None:
            shutil.copytree(tree, partial, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
            shutil.copytree(added, partial, symlinks=True, dirs_exist_ok=True)
            settle(partial)

        return self._whole(f"{sha}-{key}", make)

    def version(self, sha: str) -> str:
        """Version of the nearest tag before a commit, for builds that would ask git; '0.0.0' without one."""
        try:
            tag = git(self._clone, "describe", "--tags", "--abbrev=0", sha).decode(errors="replace").strip()
            return str(Version(re.sub(r"^\D*", "", tag)))
        except (MissingObjects, GitFailed, InvalidVersion):
            return "0.0.0"

    @leases_held()
    def _whole(self, name: str, make: Callable[[Path], None]) -> Path:
        """A folder that `make` made under another name: it is there whole or not at all."""
        place = self._folder / name
        lease(tree_marker(self._locks, place))
        if place.is_dir():
            return place
        self._folder.mkdir(parents=True, exist_ok=True)
        end_search_for_settings(self._folder.parent)
        try:
            with appearing(place) as partial:
                make(partial)
        except OSError:  # another process may have been first
            if not place.is_dir():
                raise
        return place

    def hash_of_build_inputs(self, sha: str) -> str | Rejection:
        """Content address of all files of a commit that a native build reads: equal ones share it.

        All but .py files, of which only those that build scripts are made of count. A submodule's files count
        by its commit, and by whether its folder in the tree has them.
        """
        try:
            listing = git(self._clone, "ls-tree", "-r", "-z", sha)
        except MissingObjects as error:
            return Rejection(Reason.MISSING_OBJECTS, f"listing {sha}: {error}")
        entries = (entry.partition(b"\t") for entry in listing.split(b"\0") if entry)
        tree = self._folder / sha
        matters = build_inputs(tree)
        kept = [(path.hex(), facts.decode()) for facts, _, path in entries if matters(path)]
        there = [name for name, facts in kept if facts.startswith(_SUBMODULE) and any(_entries(tree, name))]
        return content_id("files", kept, *there)


def tree_marker(locks: Path, tree: Path) -> Path:
    """The marker of leases (`harness.leases.leases`) of a tree; the tree need not be there."""
    return locks / f"tree-{tree.parent.name}-{tree.name}.use"


def settle(tree: Path) -> None:
    """Gives every file and folder `MTIME` and makes links that lead out of the tree plain files."""
    root = tree.resolve()
    for parent, folders, files in os.walk(root, topdown=False):
        for name in [*folders, *files]:
            path = Path(parent, name)
            if path.is_symlink() and not _stays_inside(path, root):
                text = str(path.readlink())
                path.unlink()
                path.write_text(text, encoding="utf-8", errors="surrogateescape")
            mode = path.lstat().st_mode
            if not stat.S_ISLNK(mode) and not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
                path.unlink()  # a pipe or socket that a build left
                continue
            os.utime(path, (MTIME, MTIME), follow_symlinks=False)
    os.utime(root, (MTIME, MTIME))


def build_inputs(tree: Path) -> Callable[[bytes], bool]:
    """Whether a native build of the tree may read the file of a path: all of them where it compiles Python files."""
    scripts = [tree / name for name in ("setup.py", "setup.cfg", "pyproject.toml")]
    texts = [path.read_bytes() for path in scripts if path.is_file() and not path.is_symlink()]
    if any(_COMPILES_PYTHON.search(text) for text in texts):
        return lambda path: True
    return lambda path: not path.endswith(b".py") or _BUILD_PYTHON.search(path) is not None


def _check_out(clone: Path, sha: str, place: Path) -> None:
    _write_files(clone, sha, place)
    for path, commit in submodules_of(clone, sha):
        _check_out_submodule(clone, commit, place / os.fsdecode(path))
    settle(place)


def _check_out_submodule(clone: Path, sha: str, place: Path, depth: int = SUBMODULE_DEPTH) -> None:
    """Writes its files when the clone has them, and those of its own submodules; else its folder stays empty."""
    for folder in git_folders(clone):
        try:
            git(folder, "cat-file", "-e", f"{sha}^{{commit}}")
        except (MissingObjects, GitFailed):
            continue
        remove(place)
        try:
            _write_files(folder, sha, place)
            inner = submodules_of(folder, sha) if depth else []
        except MissingObjects:
            remove(place)
            place.mkdir()
            continue
        for path, commit in inner:
            _check_out_submodule(clone, commit, place / os.fsdecode(path), depth - 1)
        return


def git_folders(clone: Path) -> list[Path]:
    """The clone's git folder, and those of the submodules that were cloned with it."""
    inside = clone / ".git" if (clone / ".git").is_dir() else clone
    top = inside / "modules"
    modules = [] if top.is_symlink() else [head.parent for head in top.rglob("HEAD")]
    return [inside, *sorted(folder for folder in modules if (folder / "objects").is_dir())]


def submodules_of(clone: Path, sha: str, env: Mapping[str, str] | None = None) -> list[tuple[bytes, str]]:
    """(Path, commit) of each submodule of a commit or tree.

    Raises:
        MissingObjects, GitFailed: the tree cannot be read.
    """
    listing = git(clone, "ls-tree", "-r", "-z", sha, env=env)
    entries = (entry.partition(b"\t") for entry in listing.split(b"\0") if entry.startswith(_SUBMODULE.encode()))
    return [(path, facts.split()[2].decode()) for facts, _, path in entries]


def _entries(tree: Path, name: str) -> list[Path]:
    folder = tree / os.fsdecode(bytes.fromhex(name))
    return list(folder.iterdir()) if folder.is_dir() else []


def _write_files(clone: Path, sha: str, place: Path) -> None:
    place.mkdir()
    index = place.with_name(f".{uuid.uuid4().hex}.index")
    env = {"GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(place)}
    try:
        git(clone, "read-tree", sha, env=env)
        try:
            git(clone, "checkout-index", "--all", "--force", env=env)
        except MissingObjects:
            absent = _absent(clone, sha)
            if not absent or not all(map(_is_data, map(os.fsdecode, absent))):
                raise
            git(clone, "update-index", "--force-remove", "-z", "--stdin", env=env, given=b"\0".join(absent))
            git(clone, "checkout-index", "--all", "--force", env=env)
    finally:
        index.unlink(missing_ok=True)
        index.with_name(f"{index.name}.lock").unlink(missing_ok=True)


def _files_of(clone: Path, sha: str) -> list[tuple[bytes, bytes]]:
    """(Path, id) of each file of a commit, without submodules."""
    listing = git(clone, "ls-tree", "-r", "-z", sha)
    entries = (entry.partition(b"\t") for entry in listing.split(b"\0") if entry)
    return [(path, facts.split()[2]) for facts, _, path in entries if facts.split()[1] == b"blob"]


def _absent(clone: Path, sha: str) -> list[bytes]:
    """Paths of the files of a commit that are not in the clone."""
    files = _files_of(clone, sha)
    asked = b"".join(b"%s\n" % name for name in dict.fromkeys(name for _, name in files))
    answer = git(clone, "cat-file", "--batch-check", "--buffer", given=asked)
    missing = {line.split()[0] for line in answer.splitlines() if line.endswith(b" missing")}
    return [path for path, name in files if name in missing]


def _is_data(name: str) -> bool:
    """Whether a file is neither code nor what a build may read; without an ending, a program in a folder of tools."""
    path = Path(name)
    if path.suffix:
        return not _NEEDED.fullmatch(path.suffix.lower())
    return len(path.parts) > 1 and path.parent.name not in _SCRIPTS and not _BUILD_NAME.fullmatch(path.name.lower())


def _stays_inside(link: Path, root: Path) -> bool:
    try:
        return link.resolve().is_relative_to(root)
    except (OSError, RuntimeError):  # a loop
        return False
