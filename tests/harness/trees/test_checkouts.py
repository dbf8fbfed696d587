from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from perfquarry.data.errors import GitFailed
from perfquarry.data.home import Home
from perfquarry.data.records import Reason
from perfquarry.harness.rejections import Rejection
from perfquarry.harness.trees.checkouts import MTIME, Checkouts
from perfquarry.harness.trees.clone_git import git

FROM_FILE = ("-c", "protocol.file.allow=always")


def run(repo: Path, *arguments: str | bytes) -> str:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    return subprocess.run(["git", *identity, *arguments], cwd=repo, check=True, capture_output=True, text=True).stdout


def commit(repo: Path, message: str = "change") -> str:
    run(repo, "add", "-A")
    run(repo, "commit", "-q", "--allow-empty", "-m", message)
    return run(repo, "rev-parse", "HEAD").strip()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = tmp_path / "origin"
    repo.mkdir()
    run(repo, "init", "-q")
    return repo


@pytest.fixture
def checkouts(tmp_path: Path, repo: Path) -> Checkouts:
    return Checkouts(Home(tmp_path / "home"), repo, "lib")


def there(tree: Path | Rejection) -> Path:
    assert isinstance(tree, Path), tree
    return tree


def test_a_tree_is_the_commit_and_nothing_else(tmp_path: Path, repo: Path, checkouts: Checkouts) -> None:
    (repo / "lib").mkdir()
    (repo / "lib/__init__.py").write_text("one = 1\n")
    (repo / "run.sh").write_text("#!/bin/sh\n")
    (repo / "run.sh").chmod(0o755)
    (repo / "inside").symlink_to("lib/__init__.py")
    (repo / ".gitattributes").write_text("lib export-ignore\n")
    first = commit(repo)
    (repo / "lib/__init__.py").write_text("two = 2\n")
    second = commit(repo)

    tree, other = there(checkouts.tree(first)), there(checkouts.tree(second))

    assert tree == tmp_path / "home/trees/lib" / first
    assert len(str(tree)) == len(str(other))
    assert (tree / "lib/__init__.py").read_text() == "one = 1\n"
    assert (other / "lib/__init__.py").read_text() == "two = 2\n"
    assert os.access(tree / "run.sh", os.X_OK)
    assert (tree / "inside").is_symlink()
    assert not (tree / ".git").exists()
    assert {path.lstat().st_mtime for path in [tree, *tree.rglob("*")]} == {MTIME}
    assert sorted(path.name for path in tree.parent.iterdir()) == sorted([first, second])


def test_links_that_lead_out_become_files(repo: Path, checkouts: Checkouts) -> None:
    (repo / "absolute").symlink_to("/etc/passwd")
    (repo / "folder").symlink_to("../..")
    (repo / "loop").symlink_to("loop")
    tree = there(checkouts.tree(commit(repo)))
    assert not any(path.is_symlink() for path in tree.iterdir())
    assert (tree / "absolute").read_text() == "/etc/passwd"
    assert (tree / "folder").read_text() == "../.."


def test_names_that_are_no_text_and_submodules(repo: Path, checkouts: Checkouts) -> None:
    name = b"caf\xe9\n.txt"
    Path(os.fsdecode(os.fsencode(repo) + b"/" + name)).write_text("bytes")
    commit(repo)
    run(repo, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},vendor")
    run(repo, "commit", "-q", "-m", "submodule")
    tree = there(checkouts.tree(run(repo, "rev-parse", "HEAD").strip()))
    assert name in {os.fsencode(path.name) for path in tree.iterdir()}
    assert list((tree / "vendor").iterdir()) == []


def test_submodules_that_were_cloned_with_the_clone_are_there(tmp_path: Path, repo: Path) -> None:
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    for folder, other in ((inner, None), (outer, inner)):
        folder.mkdir()
        run(folder, "init", "-q")
        (folder / f"{folder.name}.c").write_text(folder.name)
        if other:
            run(folder, *FROM_FILE, "submodule", "add", "-q", str(other), "deep")
        commit(folder)
    run(repo, *FROM_FILE, "submodule", "add", "-q", str(outer), "vendor/outer")
    without = Checkouts(Home(tmp_path / "without"), tmp_path / "bare.git", "lib")
    first = commit(repo)
    run(tmp_path, "clone", "-q", "--bare", str(repo), str(tmp_path / "bare.git"))
    run(repo, *FROM_FILE, "submodule", "update", "-q", "--init", "--recursive")

    checkouts = Checkouts(Home(tmp_path / "home"), repo, "lib")
    tree = there(checkouts.tree(first))
    files = {str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file()}
    submodule = "vendor/outer"
    assert files == {
        ".gitmodules", f"{submodule}/.gitmodules", f"{submodule}/outer.c", f"{submodule}/deep/inner.c"
    }  # fmt: skip
    assert {path.lstat().st_mtime for path in tree.rglob("*")} == {MTIME}
    assert list((there(without.tree(first)) / submodule).iterdir()) == []
    assert without.hash_of_build_inputs(first) != checkouts.hash_of_build_inputs(first)

    (outer / "outer.c").write_text("newer")
    newer = commit(outer)
    run(repo, "update-index", "--cacheinfo", f"160000,{newer},{submodule}")
    run(repo, "commit", "-q", "-m", "a commit of the submodule that is not here")
    tree = there(checkouts.tree(run(repo, "rev-parse", "HEAD").strip()))
    assert list((tree / submodule).iterdir()) == []


def test_neither_hooks_nor_filters_run(tmp_path: Path, repo: Path, checkouts: Checkouts) -> None:
    mark = tmp_path / "ran"
    hook = repo / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
    hook.chmod(0o755)
    (repo / ".gitattributes").write_text("*.dat filter=evil\n")
    (repo / "a.dat").write_text("data\n")
    sha = commit(repo)
    run(repo, "config", "filter.evil.smudge", f"touch {mark}; cat")
    run(repo, "config", "filter.evil.required", "true")
    tree = there(checkouts.tree(sha))
    assert (tree / "a.dat").read_text() == "data\n"
    assert not mark.exists()


def test_missing_objects_are_a_rejection(tmp_path: Path, repo: Path, checkouts: Checkouts) -> None:
    (repo / "a.txt").write_text("lost\n")
    sha = commit(repo)
    blob = run(repo, "rev-parse", "HEAD:a.txt").strip()
    (repo / ".git/objects" / blob[:2] / blob[2:]).unlink()
    found = [checkouts.tree(sha), checkouts.tree("0" * 39 + "1"), checkouts.hash_of_build_inputs("0" * 39 + "1")]
    assert [one.reason for one in found if isinstance(one, Rejection)] == [Reason.MISSING_OBJECTS] * 3
    assert list((tmp_path / "home/trees/lib").iterdir()) == []


def test_data_that_a_clone_was_made_without_are_left_out(tmp_path: Path, repo: Path) -> None:
    sizes = {"lib.py": 10, "tests/large.maf": 5000, "tests/small.maf": 10, "tests/größer.cif": 6000, "tools/run": 7000}
    for name, size in sizes.items():
        (repo / name).parent.mkdir(exist_ok=True)
        (repo / name).write_text("#" * size)
    sha = commit(repo)
    later = []
    for name in ("lib.py", "bin/lib", "src/configure", "Makefile"):
        (repo / name).parent.mkdir(exist_ok=True)
        (repo / name).write_text("#" * 5000)
        later.append(commit(repo))
        run(repo, "checkout", "-q", sha)
    clone = tmp_path / "partial.git"
    run(repo, "config", "uploadpack.allowFilter", "true")
    run(tmp_path, "clone", "-q", "--bare", "--filter=blob:limit=1k", repo.as_uri(), str(clone))
    checkouts = Checkouts(Home(tmp_path / "home"), clone, "lib")
    tree = there(checkouts.tree(sha))
    assert sorted(str(path.relative_to(tree)) for path in tree.rglob("*.*")) == ["lib.py", "tests/small.maf"]
    assert sorted(checkouts.left_out(sha)) == ["tests/größer.cif", "tests/large.maf", "tools/run"]
    lost = [checkouts.tree(one) for one in later]
    assert [one.reason for one in lost if isinstance(one, Rejection)] == [Reason.MISSING_OBJECTS] * 4
    whole = Checkouts(Home(tmp_path / "other"), repo, "lib")
    assert (there(whole.tree(sha)) / "tests/large.maf").exists() and whole.left_out(sha) == []


def test_other_faults_of_git_raise(tmp_path: Path) -> None:
    with pytest.raises(GitFailed, match="no git repository"):
        git(tmp_path / "no-clone", "rev-parse", "HEAD")


def test_racing_for_one_tree_makes_one(repo: Path, checkouts: Checkouts) -> None:
    for number in range(50):
        (repo / f"{number}.txt").write_text("x" * number)
    sha = commit(repo)
    found: list[Path | Rejection] = []
    threads = [threading.Thread(target=lambda: found.append(checkouts.tree(sha))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tree = there(checkouts.tree(sha))
    assert found == [tree] * 6
    assert [path.name for path in tree.parent.iterdir()] == [sha]
    assert len(list(tree.iterdir())) == 50


def test_a_tree_with_added_files_lies_beside_the_commits_own(tmp_path: Path, repo: Path, checkouts: Checkouts) -> None:
    (repo / "deep").mkdir()
    (repo / "deep/a.py").write_text("")
    sha = commit(repo)
    tree = there(checkouts.tree(sha))
    (tmp_path / "more").mkdir()
    (tmp_path / "more/b.so").write_text("")
    more = there(checkouts.tree_with(sha, "0123456789abcdef", tmp_path / "more"))
    assert {path.name for path in more.iterdir()} == {"deep", "b.so"}
    assert {path.name for path in tree.iterdir()} == {"deep"} and more.parent == tree.parent


def test_only_what_a_build_reads_changes_its_hash(repo: Path, checkouts: Checkouts) -> None:
    hashes = []
    for path, text in (
        ("setup.py", "1"),
        ("lib/fast.c", "1"),
        ("lib/slow.py", "1"),
        ("lib/slow.py", "2"),
        ("lib/fast.c", "2"),
        ("setup.py", "2"),
        ("lib/code_generators/make.py", "2"),
    ):
        (repo / path).parent.mkdir(parents=True, exist_ok=True)
        (repo / path).write_text(text)
        hashes.append(checkouts.hash_of_build_inputs(commit(repo)))
    assert hashes[1] == hashes[2] == hashes[3]
    assert len(set(hashes)) == 5


@pytest.mark.parametrize(
    ("script", "compiled"),
    [
        ("from mypyc.build import mypycify\n", True),
        ("ext_modules=cythonize('lib/*.py', exclude=[])", True),
        ("Extension('lib.a', sources=['lib/a.py'])", True),
        ("def cythonize(): call('tools/cythonize.py')", False),
        ("cythonize(['lib/a.pyx'])\nexec(open('lib/version.py').read())", False),
    ],
)
def test_python_files_count_where_they_are_compiled(
    repo: Path, checkouts: Checkouts, script: str, compiled: bool
) -> None:
    hashes = []
    for text in "12":
        (repo / "setup.py").write_text(script)
        (repo / "a.py").write_text(text)
        sha = commit(repo)
        there(checkouts.tree(sha))
        hashes.append(checkouts.hash_of_build_inputs(sha))
    assert (hashes[0] != hashes[1]) == compiled


def test_the_version_is_the_nearest_tag(repo: Path, checkouts: Checkouts) -> None:
    first = commit(repo)
    assert checkouts.version(first) == "0.0.0"
    run(repo, "tag", "-a", "-m", "", "v1.4.0")
    assert checkouts.version(commit(repo)) == "1.4.0"


def test_settings_above_the_home_do_not_reach_the_tests_of_a_tree(
    tmp_path: Path, repo: Path, checkouts: Checkouts
) -> None:
    """A home in a folder of a project (./var in our own clone) has that project's pytest settings above it."""
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\nfilterwarnings = ['error']\n")
    (repo / "test_it.py").write_text("import warnings\ndef test_it():\n    warnings.warn('only a warning')\n")
    tree = there(checkouts.tree(commit(repo)))
    pytest_there = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={tree}", "test_it.py"]
    subprocess.run(pytest_there, cwd=tree, check=True, capture_output=True, timeout=60)
