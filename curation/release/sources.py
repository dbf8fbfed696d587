"""The bases' files as one git pack per repository: trees and blobs, no commit, hence no author, date or history.

Bases share most of their files, so that a pack of many is hardly larger than one. What is not in a
base is not in the pack, the expert's version least of all, unless it is the base of a later task.
Files of submodules stand where their commits stood: what a task needs is in its release.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from perfquarry.data.errors import GitFailed, InputError
from perfquarry.data.git import make_ours
from perfquarry.harness.trees.checkouts import SUBMODULE_DEPTH, git_folders, submodules_of
from perfquarry.harness.trees.clone_git import MissingObjects, git


def pack_of(folder: Path, repo: str) -> Path:
    """The pack of a repository in a release."""
    return folder / "sources" / f"{repo}.pack"


def tree_of(clone: Path, commit: str) -> str:
    """Id of a commit's tree, with the files of each submodule that came with the clone in its place.

    Raises:
        InputError: it is not in the clone.
    """
    try:
        tree = git(clone, "rev-parse", "--verify", f"{commit}^{{tree}}").decode().strip()
        return _filled(clone, tree, _with_submodules(clone), SUBMODULE_DEPTH + 1)
    except (MissingObjects, GitFailed) as error:
        raise InputError(f"{clone} does not have the commit {commit}: clone the repository again ({error})") from error


def _with_submodules(clone: Path) -> dict[str, str]:
    """Variables by which git on the clone finds the objects of its submodules, too."""
    return {"GIT_ALTERNATE_OBJECT_DIRECTORIES": os.pathsep.join(f"{one}/objects" for one in git_folders(clone)[1:])}


def _filled(clone: Path, tree: str, env: Mapping[str, str], depth: int) -> str:
    inner: dict[str, str] = {}
    for path, commit in submodules_of(clone, tree, env) if depth else []:
        try:
            found = git(clone, "rev-parse", "--verify", "--quiet", f"{commit}^{{tree}}", env=env).decode().strip()
        except (MissingObjects, GitFailed):
            continue  # an empty folder, as in a checkout
        inner[os.fsdecode(path)] = _filled(clone, found, env, depth - 1)
    if not inner:
        return tree
    with _index(clone) as index:
        env = {**env, **index, "GIT_WORK_TREE": str(clone)}  # these commands want one; they write no files
        git(clone, "read-tree", tree, env=env)
        for place, found in inner.items():
            git(clone, "update-index", "--force-remove", "--", place, env=env)
            git(clone, "read-tree", f"--prefix={place}/", found, env=env)
        return git(clone, "write-tree", env=env).decode().strip()


@contextmanager
def _index(clone: Path) -> Iterator[dict[str, str]]:
    """The variable that names an index of one's own."""
    index = clone / f".{uuid.uuid4().hex}.index"
    try:
        yield {"GIT_INDEX_FILE": str(index)}
    finally:
        index.unlink(missing_ok=True)
        index.with_name(f"{index.name}.lock").unlink(missing_ok=True)


def pack(clone: Path, trees: Iterable[str], into: Path) -> int:
    """Writes a pack of trees and all they hold, the same for the same trees; returns its bytes.

    Raises:
        InputError: objects are missing in the clone (it is a partial one).
        GitFailed: git failed.
    """
    into.parent.mkdir(parents=True, exist_ok=True)
    wanted, env = sorted(set(trees)), _with_submodules(clone)
    try:
        objects = git(clone, "rev-list", "--objects", *wanted, env=env)  # names help to find what is alike
        options = ("--threads=1", "--no-reuse-delta", "--quiet")
        with tempfile.TemporaryDirectory(dir=into.parent) as place:
            git(clone, "pack-objects", *options, f"{place}/made", env=env, given=objects)
            (made,) = Path(place).glob("*.pack")
            shutil.move(made, into)
    except MissingObjects as error:
        raise InputError(f"files of a base are missing in {clone}: clone the whole repository ({error})") from error
    into.chmod(0o644)
    return into.stat().st_size


def unpack(file: Path, clone: Path) -> None:
    """Makes a bare clone that holds a pack's objects, when it is not there already.

    Raises:
        InputError: the pack cannot be read or is damaged.
    """
    if file.is_symlink():
        raise InputError(f"{file} is no plain file: fetch the release again, from somebody you trust")
    place = clone / "objects" / "pack" / f"pack-{file.stem}.pack"
    if place.with_suffix(".idx").is_file() and place.read_bytes() == file.read_bytes():
        return
    make_ours(clone)
    try:
        place.with_suffix(".idx").unlink(missing_ok=True)  # of another version of the release
        place.write_bytes(file.read_bytes())
        git(clone, "index-pack", "--strict", str(place))
    except (GitFailed, MissingObjects, OSError) as error:
        raise InputError(f"{file} is no whole pack of a release: fetch it again ({error})") from error


def patched(clone: Path, tree: str, patch: str) -> str | None:
    """Id of the tree that a patch makes of another, written into the clone; None where it does not apply.

    Raises:
        GitFailed: git failed for another reason.
    """
    with _index(clone) as env:
        git(clone, "read-tree", tree, env=env)
        if patch.strip():
            try:
                git(clone, "apply", "--cached", "--whitespace=nowarn", "-", env=env, given=patch.encode())
            except (GitFailed, MissingObjects):
                return None
        return git(clone, "write-tree", env=env).decode().strip()
