"""The parts of an exported task that are made of trees: repository, base, expert's files, grader."""

from __future__ import annotations

import base64
import gzip
import importlib.util
import io
import os
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterable, Set
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import IO, Any

from perfquarry.data.git import git_in_tree
from perfquarry.harness.probing.prober import PROBE
from perfquarry.harness.trees.checkouts import MTIME


def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"perfquarry_{path.stem}", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GRADER = Path(__file__).parents[1] / "grader"
"""The programs that grade; `grade.py` is the one to start."""
ALTERNATION = Path(__file__).parents[1] / "alternation"
"""The measuring core, which the grader uses too."""
CANDIDATE: Any = _loaded(GRADER / "candidate.py")
"""Which changes of a solver count, as the grader has it: the grader is no package, and written for old interpreters."""
_DJANGO: Any = _loaded(PROBE.parent / "perfquarry_django.py")
TESTBED = "/testbed"
"""Where the solver works on the repository."""
_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
"""Of the solver's repository; ours names files of this machine."""
COMPILED = re.compile(r"\.(so(\.[\d.]+)?|pyd|dylib)$")
_LEFT_OUT = frozenset({".git", "__pycache__"})
PART_BYTES = 57 * 100_000
"""Of an archive, what one text file of it holds: 7.4 MiB as base64, in lines of 76 characters."""


@dataclass(frozen=True)
class ExpertFiles:
    """What the expert's patch makes of the base."""

    written: tuple[str, ...]
    deleted: tuple[str, ...]
    archive: tuple[str, ...]
    """Names of the text files that hold what was written."""


def settings_of_tests(tree: Path) -> str:
    """A pattern of the module that Django's tests have their settings from; of no path, where there is none.

    A solver who could change them would have faster tests without faster code.
    """
    found = _DJANGO.settings_of_tests(str(tree))
    if not found:
        return "(?!)"
    name, folder = found
    place = os.path.relpath(Path(folder, *name.split(".")), tree)
    return f"^{re.escape(place)}(?:\\.py$|/)"


def pack_repository(tree: Path, made: datetime, to: Path) -> None:
    """Writes the tree with a fresh git repository of one commit and nothing else to a tar.gz archive.

    The commit has no other author, message or object than what is written here; files that a build
    added are part of it.

    Raises:
        GitFailed: git is missing or failed.
    """
    with tempfile.TemporaryDirectory(prefix="pq-repository-") as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(tree, copy, symlinks=True, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        who = {"NAME": "perfquarry", "EMAIL": "perfquarry@localhost", "DATE": f"{int(made.timestamp())} +0000"}
        env = {f"GIT_{role}_{name}": value for role in ("AUTHOR", "COMMITTER") for name, value in who.items()}
        git = git_in_tree(copy, env)
        # the last one takes the times of this moment's files out of the index
        for command in (
            ["add", "-A", "-f"],
            ["commit", "-q", "-m", "Base"],
            ["pack-refs", "--all"],
            ["read-tree", "HEAD"],
        ):
            git.output(*command, doing=f"exporting a task: git {command[0]}")
        for name in ("logs", "COMMIT_EDITMSG", "ORIG_HEAD"):
            extra = copy / ".git" / name
            shutil.rmtree(extra) if extra.is_dir() else extra.unlink(missing_ok=True)
        (copy / ".git" / "config").write_text(_CONFIG, encoding="utf-8")
        with to.open("wb") as file:
            _pack(copy, sorted(copy.rglob("*")), file)


def pack_base(tree: Path, folder: Path) -> tuple[str, ...]:
    """Writes the tree alone to an archive in text files of a folder; their names."""
    return _pack_as_text(tree, _files(tree), folder, "base")


def compiled_files(tree: Path) -> set[Path]:
    """Compiled modules and libraries of a tree, relative to it; links are left out."""
    return {
        path.relative_to(tree) for path in _files(tree) if not path.is_symlink() and COMPILED.search(path.name.lower())
    }


def built_otherwise(one: Path, other: Path) -> bool:
    """Whether the compiled files of two trees differ."""
    return compiled_files(one) != (paths := compiled_files(other)) or any(
        not CANDIDATE.same(one / path, other / path) for path in paths
    )


def pack_expert(tree: Path, patch: str, folder: Path, head: Path | None = None) -> ExpertFiles:
    """Writes the files that a patch adds or changes to an archive in text files of a folder.

    Args:
        tree: the base, built.
        patch: the expert's.
        folder: of the archive.
        head: the expert's tree, built, where its compiled files are others than the base's: they belong to it.

    Raises:
        GitFailed: the patch does not apply to the tree.
    """
    with tempfile.TemporaryDirectory(prefix="pq-expert-") as place:
        copy = Path(place) / "tree"
        shutil.copytree(tree, copy, symlinks=True, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        (Path(place) / "expert.patch").write_bytes(patch.encode())
        patched = str(Path(place) / "expert.patch")
        git_in_tree(copy).output("apply", "--whitespace=nowarn", patched, doing="exporting a task: git apply")
        shutil.rmtree(copy / ".git")
        if head:
            replace_compiled(copy, head)
        before, after = ({path.relative_to(top) for path in _files(top)} for top in (tree, copy))
        written = sorted(path for path in after if not _same(tree / path, copy / path))
        parts = _pack_as_text(copy, [copy / path for path in written], folder, "expert")
    return ExpertFiles(tuple(map(str, written)), tuple(sorted(map(str, before - after))), parts)


def replace_compiled(tree: Path, built: Path, keep: Set[Path] = frozenset()) -> set[Path]:
    """Gives a tree the compiled files of another in place of its own, but for `keep`; the paths of both.

    No link is followed.

    Raises:
        OSError: one cannot be there.
    """
    old, new = compiled_files(tree) - keep, compiled_files(built)
    for path in old - new:
        CANDIDATE.put(None, str(tree), str(path))
    for path in new:
        if path not in old or not CANDIDATE.same(tree / path, built / path):
            CANDIDATE.put(str(built / path), str(tree), str(path))
    return old | new


def pack_grader(folder: Path) -> None:
    """Copies grader, measuring core and probe into a folder of tests: all that it needs beside an interpreter."""
    for source in (GRADER, ALTERNATION, PROBE.parent):
        shutil.copytree(source, folder / source.name, ignore=shutil.ignore_patterns(*_LEFT_OUT))


def _same(one: Path, other: Path) -> bool:
    if not one.is_file() or one.is_symlink() or other.is_symlink():
        return one.is_symlink() and other.is_symlink() and one.readlink() == other.readlink()
    return one.read_bytes() == other.read_bytes() and one.stat().st_mode == other.stat().st_mode


def _files(tree: Path) -> list[Path]:
    """Files and links of a tree, sorted."""
    found = []
    for place, folders, names in os.walk(tree):
        linked = [name for name in folders if (Path(place) / name).is_symlink()]
        folders[:] = [name for name in folders if name not in _LEFT_OUT and name not in linked]
        found += [Path(place) / name for name in [*names, *linked]]
    return sorted(found)


def _pack_as_text(top: Path, paths: Iterable[Path], folder: Path, name: str) -> tuple[str, ...]:
    """An archive as base64: of files that are no text, and of large ones, git hosts keep pointers in a repository."""
    packed, names = io.BytesIO(), list[str]()
    _pack(top, paths, packed)
    packed.seek(0)
    while part := packed.read(PART_BYTES):
        names.append(f"{name}.{len(names)}.b64")
        (folder / names[-1]).write_bytes(base64.encodebytes(part))
    return tuple(names)


def _pack(top: Path, paths: Iterable[Path], to: IO[bytes]) -> None:
    """The same bytes for the same files: no times, no owners."""

    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = 0
        info.uname = info.gname = "root"
        info.mtime = MTIME
        info.mode = 0o755 if info.isdir() or info.mode & 0o100 else 0o644
        return info

    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=to, mtime=MTIME) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for path in paths:
            archive.add(path, str(path.relative_to(top)), recursive=False, filter=plain)
