"""Repositories of strangers that try to run a command or to read another repository: one trick each, all in vain.

Each trick makes a real repository. Then it is cloned, mined, checked out and packed as `curate` and `export` do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from git_repository import Repository, rows

from perfquarry.data.errors import PerfquarryError
from perfquarry.data.home import Home
from perfquarry.harness.grading.task_folder import pack_repository
from perfquarry.harness.trees.checkouts import Checkouts
from perfquarry.miners.clone import ensure_clone
from perfquarry.miners.patches import split
from perfquarry.miners.vocabulary import size_at
from tests.system.commands import command

SECRET = "the content of a private repository"


@dataclass
class Evil:
    """A repository with two commits, and what a trick may use."""

    folder: Path

    def __post_init__(self) -> None:
        self.made = Repository(self.folder / "evil")
        self.made.commit("First", {"lib/a.py": "a = 1\n", ".gitattributes": "* filter=x diff=x merge=x\n"})
        self.made.commit("Make a() faster", {"lib/a.py": "a = 2\n"})
        self.script = self.folder / "script"
        self.script.write_text(f"#!/bin/sh\ntouch {self.witness}\ncat\n")
        self.script.chmod(0o755)
        self.private = Repository(self.folder / "private")
        self.private.commit(SECRET, {"secret.txt": f"{SECRET}\n"})

    @property
    def witness(self) -> Path:
        return self.folder / "witness"

    @property
    def inside(self) -> Path:
        return self.made.folder / ".git"

    def settings(self, text: str, folder: Path | None = None) -> None:
        with ((folder or self.inside) / "config").open("a") as file:
            file.write(text.format(run=self.script, private=self.private.folder))

    def submodule(self) -> Path:
        """Adds a submodule; returns its git folder."""
        inner = Repository(self.folder / "inner")
        inner.commit("Inner", {"b.dat": "b\n", ".gitattributes": "* filter=x=y\n"})
        self.made.git("submodule", "add", "-q", str(inner.folder), "vendor")
        self.made.commit("With a submodule")
        return self.inside / "modules" / "vendor"


TRICKS: dict[str, Callable[[Evil], object]] = {}
"""By what it tries."""


def trick(function: Callable[[Evil], object]) -> Callable[[Evil], object]:
    TRICKS[function.__name__] = function
    return function


@trick
def a_filter_driver_of_the_repository(evil: Evil) -> None:
    evil.settings('[filter "x"]\n\tsmudge = {run}\n\tclean = {run}\n\tprocess = {run}\n\trequired = true\n')


@trick
def a_filter_driver_of_a_submodule_whose_name_has_an_equals_sign(evil: Evil) -> None:
    evil.settings('[filter "x=y"]\n\tsmudge = {run}\n\tclean = {run}\n\trequired = true\n', evil.submodule())


@trick
def a_filter_driver_in_an_included_file(evil: Evil) -> None:
    (evil.folder / "more").write_text(f'[filter "x"]\n\tsmudge = {evil.script}\n\tclean = {evil.script}\n')
    evil.settings(f'[include]\n\tpath = {evil.folder}/more\n[includeIf "gitdir:/"]\n\tpath = {evil.folder}/more\n')


@trick
def a_filter_driver_in_the_configuration_of_the_work_tree(evil: Evil) -> None:
    evil.settings("[extensions]\n\tworktreeConfig = true\n")
    text = f'[filter "x"]\n\tsmudge = {evil.script}\n[filter "x=y"]\n\tsmudge = {evil.script}\n'
    (evil.inside / "config.worktree").write_text(text)
    module = evil.submodule()
    evil.settings("[extensions]\n\tworktreeConfig = true\n", module)
    (module / "config.worktree").write_text(text)


@trick
def a_monitor_of_files(evil: Evil) -> None:
    for folder in (evil.submodule(), evil.inside):
        evil.settings("[core]\n\tfsmonitor = {run}\n\tfsmonitorHookVersion = 1\n", folder)


@trick
def hooks_here_and_elsewhere(evil: Evil) -> None:
    elsewhere = evil.folder / "elsewhere"
    for folder in (evil.inside / "hooks", elsewhere, evil.submodule() / "hooks"):
        folder.mkdir(exist_ok=True)
        for name in ("post-checkout", "post-index-change", "reference-transaction", "pre-commit", "pre-auto-gc"):
            shutil.copy(evil.script, folder / name)
    evil.settings(f"[core]\n\thooksPath = {elsewhere}\n")


@trick
def programs_that_show_differences(evil: Evil) -> None:
    evil.settings('[diff]\n\texternal = {run}\n[diff "x"]\n\ttextconv = {run}\n\tcommand = {run}\n')


@trick
def programs_that_merge_page_edit_and_verify(evil: Evil) -> None:
    evil.settings('[merge "x"]\n\tdriver = {run}\n[core]\n\tpager = {run}\n\teditor = {run}\n')
    evil.settings("[gpg]\n\tprogram = {run}\n[log]\n\tshowSignature = true\n[interactive]\n\tdiffFilter = {run}\n")


@trick
def a_missing_object_of_a_remote_with_its_own_program(evil: Evil) -> None:
    evil.settings("[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = origin\n")
    evil.settings('[remote "origin"]\n\tpromisor = true\n\turl = {private}\n\tuploadpack = {run}\n')
    lose(evil)


@trick
def a_missing_object_of_a_remote_that_is_a_command(evil: Evil) -> None:
    evil.settings("[core]\n\trepositoryformatversion = 1\n\tsshCommand = {run}\n[extensions]\n\tpartialClone = o\n")
    evil.settings('[protocol]\n\tallow = always\n[remote "o"]\n\tpromisor = true\n\turl = ext::{run}\n')
    lose(evil)


@trick
def a_missing_object_of_a_submodule_with_its_own_program(evil: Evil) -> None:
    module = evil.submodule()
    evil.settings("[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = o\n", module)
    evil.settings('[protocol]\n\tallow = always\n[remote "o"]\n\tpromisor = true\n\turl = ssh://x/y\n', module)
    evil.settings("[core]\n\tsshCommand = {run}\n[ssh]\n\tvariant = simple\n", module)
    objects = module / "objects"
    next(path for path in objects.rglob("*") if path.is_file() and len(path.name) == 38).unlink()


@trick
def a_helper_of_credentials(evil: Evil) -> None:
    evil.settings("[credential]\n\thelper = !{run}\n[core]\n\taskPass = {run}\n\tgitProxy = {run}\n")
    evil.settings('[url "http://127.0.0.1:1/"]\n\tinsteadOf = /\n')


@trick
def programs_of_the_serving_side(evil: Evil) -> None:
    evil.settings("[uploadpack]\n\tpackObjectsHook = {run}\n[core]\n\talternateRefsCommand = {run}\n")
    evil.settings("[transfer]\n\tbundleURI = true\n[alias]\n\tlog = !{run}\n\trev-parse = !{run}\n")


@trick
def a_submodule_with_a_command_for_its_address(evil: Evil) -> None:
    evil.made.write(
        ".gitmodules",
        f'[submodule "v"]\n\tpath = v\n\turl = ext::{evil.script}\n\tupdate = !{evil.script}\n'
        f'[submodule "../../x"]\n\tpath = w\n\turl = -u{evil.script}\n',
    )
    for name in "vw":
        evil.made.git("update-index", "--add", "--cacheinfo", f"160000,{evil.private.head()},{name}")
    evil.made.git("add", ".gitmodules")
    evil.made.git("commit", "-q", "-m", "Submodules")


@trick
def objects_borrowed_of_a_private_repository(evil: Evil) -> None:
    (evil.inside / "objects/info/alternates").write_text(f"{evil.private.folder}/.git/objects\n")
    (evil.inside / "refs/heads/main").write_text(f"{evil.private.head()}\n")


@trick
def objects_that_are_a_link_to_a_private_repository(evil: Evil) -> None:
    shutil.rmtree(evil.inside / "objects")
    (evil.inside / "objects").symlink_to(evil.private.folder / ".git/objects")
    (evil.inside / "refs/heads/main").write_text(f"{evil.private.head()}\n")


@trick
def single_objects_that_are_links_to_a_private_repository(evil: Evil) -> None:
    for path in (evil.private.folder / ".git/objects").rglob("*"):
        if path.is_file():
            link = evil.inside / path.relative_to(evil.private.folder / ".git")
            link.parent.mkdir(exist_ok=True)
            link.symlink_to(path)
    (evil.inside / "refs/heads/main").write_text(f"{evil.private.head()}\n")


@trick
def a_folder_of_packs_that_is_a_link_to_a_private_repository(evil: Evil) -> None:
    evil.private.git("repack", "-q", "-a", "-d")
    (evil.inside / "objects/pack").rmdir()
    (evil.inside / "objects/pack").symlink_to(evil.private.folder / ".git/objects/pack")
    (evil.inside / "refs/heads/main").write_text(f"{evil.private.head()}\n")


@trick
def refs_that_are_links_to_a_private_repository(evil: Evil) -> None:
    for name in ("refs/heads/main", "packed-refs", "shallow"):
        (evil.inside / name).unlink(missing_ok=True)
        (evil.inside / name).symlink_to(evil.private.folder / ".git/refs/heads/main")


@trick
def a_file_that_names_a_private_repository(evil: Evil) -> None:
    shutil.rmtree(evil.inside)
    evil.inside.write_text(f"gitdir: {evil.private.folder}/.git\n")


@trick
def a_link_to_a_private_repository(evil: Evil) -> None:
    shutil.rmtree(evil.inside)
    evil.inside.symlink_to(evil.private.folder / ".git")


@trick
def a_common_folder_and_a_work_tree_elsewhere(evil: Evil) -> None:
    (evil.inside / "commondir").write_text(f"{evil.private.folder}/.git\n")
    (evil.inside / "HEAD").write_text(f"{evil.private.head()}\n")
    evil.settings("[core]\n\tworktree = {private}\n\tbare = false\n")


@trick
def modules_that_are_a_link_to_a_private_repository(evil: Evil) -> None:
    (evil.inside / "modules").symlink_to(evil.private.folder)
    evil.made.git("update-index", "--add", "--cacheinfo", f"160000,{evil.private.head()},vendor")
    evil.made.git("commit", "-q", "-m", "A submodule that is not ours")


@trick
def a_file_of_git_itself_in_the_tree(evil: Evil) -> None:
    blob = evil.made.git("hash-object", "-w", "--stdin", data=evil.script.read_bytes()).decode().strip()
    hooks = evil.made.git("mktree", data=f"100755 blob {blob}\tpost-checkout\n".encode()).decode().strip()
    inner = evil.made.git("mktree", data=f"040000 tree {hooks}\thooks\n".encode()).decode().strip()
    tree = evil.made.git("mktree", data=f"040000 tree {inner}\t.git\n".encode()).decode().strip()
    sha = evil.made.git("commit-tree", tree, "-p", "HEAD", "-m", "x").decode().strip()
    evil.made.git("update-ref", "refs/heads/main", sha)


@trick
def links_out_of_the_tree(evil: Evil) -> None:
    (evil.made.folder / "out").symlink_to(evil.private.folder)
    (evil.made.folder / "secret.py").symlink_to(evil.private.folder / "secret.txt")
    evil.made.commit("Links")


def lose(evil: Evil) -> None:
    """Takes the contents of a file away."""
    sha = evil.made.head("HEAD:lib/a.py")
    (evil.inside / "objects" / sha[:2] / sha[2:]).unlink()


def mine(evil: Evil) -> str:
    """What the program does with a repository from its clone to its export; the error where it refuses."""
    home = Home(evil.folder / "home")
    clone = home.repositories / "evil.git"
    try:
        for _ in range(2):  # made, then brought up to date
            ensure_clone(evil.made.folder, clone)
        for change in rows(clone):
            size_at(clone, change.head_sha)
            if change.status == "kept":
                split(clone, change)
            tree = Checkouts(home, clone, "evil").tree(change.head_sha)
            if isinstance(tree, Path):
                pack_repository(tree, datetime(2024, 1, 1, tzinfo=UTC), evil.folder / "home" / "repository.tar.gz")
    except PerfquarryError as error:
        return str(error)
    return ""


def copied(folder: Path) -> list[Path]:
    """Files below a folder that hold the secret, packed or not."""
    found = [path for path in folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    for clone in folder.glob("repositories/*.git"):
        listing = subprocess.run(
            ["git", "--git-dir", str(clone), "cat-file", "--batch-all-objects", "--batch", "--unordered"],
            env={"PATH": os.environ["PATH"]},
            capture_output=True,
        ).stdout
        found += [clone] * (SECRET.encode() in listing)
    return found


@pytest.fixture
def evil(tmp_path: Path) -> Evil:
    return Evil(tmp_path)


@pytest.mark.parametrize("name", TRICKS)
def test_no_command_is_run_and_no_other_repository_is_read(evil: Evil, name: str) -> None:
    TRICKS[name](evil)
    said = mine(evil)
    assert not evil.witness.exists(), said
    assert copied(evil.folder / "home") == []


def test_how_the_callers_git_was_set_up_does_not_count(evil: Evil, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND", "GIT_PAGER", "GIT_ASKPASS", "GIT_EDITOR", "GIT_PROXY_COMMAND"):
        monkeypatch.setenv(name, str(evil.script))
    chosen = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "filter.x.smudge", "GIT_CONFIG_VALUE_0": str(evil.script)}
    private = {"GIT_DIR": f"{evil.private.folder}/.git", "GIT_OBJECT_DIRECTORY": f"{evil.private.folder}/.git/objects"}
    for name, value in {**chosen, **private, "GIT_CONFIG_PARAMETERS": f"'filter.x.smudge'='{evil.script}'"}.items():
        monkeypatch.setenv(name, value)
    assert mine(evil) == ""
    assert not evil.witness.exists() and copied(evil.folder / "home") == []


def test_the_command_mines_a_repository_with_many_tricks(evil: Evil) -> None:
    for one in (
        a_filter_driver_of_the_repository, a_filter_driver_in_an_included_file, programs_that_show_differences,
        programs_that_merge_page_edit_and_verify, a_helper_of_credentials, programs_of_the_serving_side,
    ):  # fmt: skip
        one(evil)
    done = subprocess.run(
        command(evil.folder / "home", "mine", str(evil.made.folder), "--no-server"),
        env={**os.environ, "COLUMNS": "200"}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert not evil.witness.exists()
