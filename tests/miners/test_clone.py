"""Clones in the home: made whole or not at all, brought up to date, tolerant of damaged sources."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from git_repository import Repository, rows

from perfquarry.data.errors import GitFailed, InputError
from perfquarry.data.git import git_of, is_ours
from perfquarry.harness.trees.checkouts import git_folders
from perfquarry.miners.clone import ensure_clone


@pytest.fixture
def source(tmp_path: Path) -> Repository:
    repository = Repository(tmp_path / "source")
    for n in range(3):
        repository.commit(f"commit {n}", {"a.py": f"{n}\n"})
    return repository


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home" / "repositories" / "sample"


def default_branch(clone: Path) -> str:
    """What HEAD stands for."""
    head = ["git", "-C", str(clone), "symbolic-ref", "--short", "HEAD"]
    return subprocess.run(head, capture_output=True, text=True, check=True).stdout.strip()


def test_a_clone_is_bare_follows_its_source_and_survives_it(source: Repository, home: Path) -> None:
    assert ensure_clone(source.folder, home) == home
    assert default_branch(home) == "main" and not (home / ".git").exists()
    assert len(rows(home)) == 3
    source.commit("new", {"b.py": "b\n"})
    source.git("branch", "gone")
    ensure_clone(f"file://{source.folder}", home)
    assert len(rows(home)) == 4
    source.git("branch", "-D", "gone")
    source.git("reset", "-q", "--hard", "HEAD~2")
    ensure_clone(source.folder, home)
    assert len(rows(home)) == 2
    shutil.rmtree(source.folder)
    assert ensure_clone(home, home) == home, "a home that nothing else says the source of"
    assert len(rows(home)) == 2 and default_branch(home) == "main"
    assert [path.name for path in home.parent.iterdir()] == ["sample"]


def test_branches(source: Repository, home: Path) -> None:
    source.git("checkout", "-q", "-b", "maintenance/1.x")
    source.commit("fix", {"a.py": "fix\n"})
    source.git("checkout", "-q", "main")
    ensure_clone(source.folder, home, branch="maintenance/1.x")
    assert default_branch(home) == "maintenance/1.x" and len(rows(home)) == 4
    ensure_clone(source.folder, home)
    assert default_branch(home) == "main" and len(rows(home)) == 3
    with pytest.raises(InputError, match="no branch 'none'"):
        ensure_clone(source.folder, home, branch="none")


def test_a_detached_source(source: Repository, home: Path) -> None:
    source.git("checkout", "-q", "--detach", "HEAD~1")
    ensure_clone(source.folder, home)
    assert len(rows(home)) == 2


def test_damaged_sources_are_cloned_and_followed(source: Repository, home: Path) -> None:
    sha = source.head("HEAD:a.py")
    (source.folder / ".git" / "objects" / sha[:2] / sha[2:]).unlink()
    ensure_clone(source.folder, home)
    assert [change.reason for change in rows(home)] == ["missing_objects", None, "root_commit"]
    source.commit("new", {"b.py": "b\n"})
    ensure_clone(source.folder, home)
    assert len(rows(home)) == 4


def test_partial_and_shallow_sources(source: Repository, home: Path, tmp_path: Path) -> None:
    source.git("config", "uploadpack.allowFilter", "true")
    for option, reason in (("--filter=blob:none", "missing_objects"), ("--depth=2", None)):
        middle = tmp_path / option.strip("-").replace(":", "-")
        source.git("clone", "-q", "--bare", option, f"file://{source.folder}", str(middle))
        clone = home.with_name(middle.name)
        ensure_clone(middle, clone)
        assert rows(clone)[0].reason == reason
        ensure_clone(middle, clone)


@pytest.mark.parametrize("name", ["/nowhere/at/all", "ext::sh -c true", "-u", "ftp://x/y", ""])
def test_what_is_no_repository_is_an_input_error(home: Path, name: str, tmp_path: Path) -> None:
    os.chdir(tmp_path)
    with pytest.raises(InputError):
        ensure_clone(name, home)
    assert not home.exists()


def test_an_unreachable_address_leaves_nothing_behind(home: Path) -> None:
    with pytest.raises(GitFailed, match="run again") as error:
        ensure_clone("http://user:secret@127.0.0.1:9/none.git", home)
    assert "secret" not in str(error.value)
    assert not home.exists() and list(home.parent.iterdir()) == []


def test_a_folder_that_is_no_clone_is_left_alone(source: Repository, home: Path) -> None:
    home.mkdir(parents=True)
    (home / "precious").write_text("x")
    with pytest.raises(GitFailed, match="move it away"):
        ensure_clone(source.folder, home)
    assert (home / "precious").exists()


def test_hooks_of_the_source_do_not_run(source: Repository, home: Path, tmp_path: Path) -> None:
    witness = tmp_path / "ran"
    for name in ("post-checkout", "reference-transaction", "pre-auto-gc", "post-update"):
        hook = source.folder / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {witness}\n")
        hook.chmod(0o755)
    source.git("config", "uploadpack.packObjectsHook", f"touch {witness};")
    ensure_clone(source.folder, home)
    ensure_clone(source.folder, home)
    assert not witness.exists() and not (home / "hooks").exists()


def test_submodules_a_local_source_has_are_reachable(source: Repository, home: Path) -> None:
    inner = Repository(home.parent.parent / "inner")
    head = inner.commit("inner", {"inner.c": "int i;\n"})
    source.git("submodule", "add", "-q", str(inner.folder), "vendor/inner")
    clone = ensure_clone(source.folder, home)
    module = clone / "modules" / "vendor" / "inner"
    shutil.rmtree(source.folder)
    assert is_ours(module) and git_of(module).output("cat-file", "blob", f"{head}:inner.c", doing="") == b"int i;\n"
    assert git_folders(clone) == [clone, module]
