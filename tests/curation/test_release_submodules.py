"""Submodules in a release's sources: their files stand where the commits stood."""

from __future__ import annotations

import subprocess
from pathlib import Path

from perfquarry.curation.release.sources import pack, patched, tree_of, unpack
from perfquarry.data.home import Home
from perfquarry.harness.trees.checkouts import Checkouts
from perfquarry.harness.trees.clone_git import git
from perfquarry.miners.clone import ensure_clone

WHO = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always")


def run(repo: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *WHO, "-C", repo, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def made(folder: Path, text: str, inner: Path | None = None) -> Path:
    folder.mkdir()
    run(folder, "init", "-q")
    (folder / "code.c").write_text(text)
    if inner:
        run(folder, "submodule", "add", "-q", str(inner), "sub/inner one")
    run(folder, "add", "-A")
    run(folder, "commit", "-q", "-m", "x")
    return folder


def names(clone: Path, tree: str) -> list[str]:
    return git(clone, "ls-tree", "-r", "--name-only", "-z", tree).decode().split("\0")[:-1]


def test_a_pack_holds_the_files_of_submodules_and_theirs(tmp_path: Path) -> None:
    deepest = made(tmp_path / "deepest", "deepest\n")
    top = made(tmp_path / "top", "top\n", made(tmp_path / "middle", "middle\n", deepest))
    run(top, "submodule", "update", "-q", "--init", "--recursive")
    clone, bare = ensure_clone(top, tmp_path / "clone.git"), tmp_path / "bare.git"
    tree = tree_of(clone, "HEAD")
    assert tree == tree_of(top, "HEAD")
    pack(clone, [tree], tmp_path / "a.pack")
    unpack(tmp_path / "a.pack", bare)
    inner = "sub/inner one"
    assert names(bare, tree) == [
        ".gitmodules", "code.c",
        f"{inner}/.gitmodules", f"{inner}/code.c", f"{inner}/{inner}/code.c",
    ]  # fmt: skip
    assert git(bare, "cat-file", "blob", f"{tree}:{inner}/{inner}/code.c") == b"deepest\n"
    (top / "code.c").write_text("better\n")
    head = patched(bare, tree, run(top, "diff") + "\n")
    assert head and git(bare, "cat-file", "blob", f"{head}:code.c") == b"better\n"
    assert names(bare, head) == names(bare, tree), "the files of submodules stay"


def test_a_pack_follows_submodules_as_deep_as_a_checkout(tmp_path: Path) -> None:
    top = made(tmp_path / "0", "0\n")
    for level in range(1, 6):
        top = made(tmp_path / str(level), f"{level}\n", top)
    run(top, "submodule", "update", "-q", "--init", "--recursive")
    tree = Checkouts(Home(tmp_path / "home"), top, "deep").tree(run(top, "rev-parse", "HEAD"))
    assert isinstance(tree, Path)
    written = sorted(str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file())
    whole, bare = tree_of(top, "HEAD"), tmp_path / "bare.git"
    pack(top, [whole], tmp_path / "a.pack")
    unpack(tmp_path / "a.pack", bare)
    packed = [name for name in names(bare, whole) if not name.endswith("sub/inner one")]
    assert written == sorted(packed)
    assert max(name.count("inner one") for name in written) == 4


def test_submodules_that_did_not_come_stay_commits(tmp_path: Path) -> None:
    top = made(tmp_path / "top", "top\n", made(tmp_path / "middle", "middle\n"))
    run(tmp_path, "clone", "-q", "--bare", str(top), str(tmp_path / "alone.git"))
    tree = tree_of(tmp_path / "alone.git", "HEAD")
    assert tree == run(top, "rev-parse", "HEAD^{tree}"), "without them a tree's id is upstream's"
    pack(tmp_path / "alone.git", [tree], tmp_path / "a.pack")
    unpack(tmp_path / "a.pack", tmp_path / "bare.git")
    assert names(tmp_path / "bare.git", tree) == [".gitmodules", "code.c", "sub/inner one"]
