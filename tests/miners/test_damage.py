"""Clones without some objects: the rest of the history is read, nothing is fetched."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from git_repository import Repository, reasons, rows

from perfquarry.data.errors import GitFailed
from perfquarry.miners import passes


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Ten commits; each changes one file whose contents are unlike all others."""
    repository = Repository(tmp_path / "work")
    for n in range(10):
        repository.commit(f"commit {n}", {f"file{n % 3}.py": "".join(f"{n * 7919 + k * k}\n" for k in range(40))})
    return repository


def lose(repository: Repository, name: str, *, corrupt: bool = False) -> None:
    """Deletes (or overwrites) the loose object a revision expression names."""
    sha = repository.head(name)
    path = repository.folder / ".git" / "objects" / sha[:2] / sha[2:]
    path.chmod(0o644)
    path.write_bytes(b"rubbish") if corrupt else path.unlink()


@pytest.mark.parametrize("corrupt", [False, True])
def test_missing_and_corrupt_blobs(repository: Repository, corrupt: bool) -> None:
    lose(repository, "HEAD~4:file2.py", corrupt=corrupt)  # of commit 5, replaced by commit 8
    found = reasons(rows(repository.folder))
    bad = {title for title, reason in found.items() if reason == "missing_objects"}
    assert bad == {"commit 5", "commit 8"}
    assert len(found) == 10 and found["commit 0"] == "root_commit"


def test_rows_of_commits_with_missing_blobs_still_name_their_files(repository: Repository) -> None:
    lose(repository, "HEAD:file0.py")
    change = rows(repository.folder)[0]
    assert (change.reason, change.title, change.patch) == ("missing_objects", "commit 9", "")
    assert [(file.path, file.status, file.added) for file in change.files] == [("file0.py", "modified", 0)]
    assert change.base_sha == repository.head("HEAD~1")


def test_missing_trees(repository: Repository) -> None:
    lose(repository, "HEAD~3^{tree}")  # of commit 6, base of commit 7
    bad = {title for title, reason in reasons(rows(repository.folder)).items() if reason == "missing_objects"}
    assert bad == {"commit 6", "commit 7"}


def test_moves_and_changes_of_mode_need_the_contents_too(repository: Repository) -> None:
    repository.git("mv", "file0.py", "moved.py")
    repository.commit("moved")
    (repository.folder / "moved.py").chmod(0o755)
    repository.commit("mode")
    lose(repository, "HEAD:moved.py")
    bad = {title for title, reason in reasons(rows(repository.folder)).items() if reason == "missing_objects"}
    assert bad == {"commit 9", "moved", "mode"}


@pytest.mark.parametrize("in_a_row, at_most", [(passes.IN_A_ROW, passes.AT_MOST), (1, 7), (4, 10)])
def test_damage_in_several_windows_and_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_a_row: int, at_most: int
) -> None:
    monkeypatch.setattr(passes, "WINDOW", 7)
    monkeypatch.setattr(passes, "IN_A_ROW", in_a_row)
    monkeypatch.setattr(passes, "AT_MOST", at_most)
    repository = Repository(tmp_path / "long")
    shas = [repository.commit(f"commit {n}", {"a.py": f"{n}\n" * (n + 1)}) for n in range(90)]
    for n in (3, 50, 51, 88):
        lose(repository, f"{shas[n]}:a.py", corrupt=n == 51)
    changes = rows(repository.folder)
    assert [change.head_sha for change in changes] == shas[::-1]
    bad = sorted(shas.index(change.head_sha) for change in changes if change.reason == "missing_objects")
    assert bad == [3, 4, 50, 51, 52, 88, 89]


def test_partial_clones_are_read_without_fetching(repository: Repository, tmp_path: Path) -> None:
    repository.git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "partial"
    repository.git("clone", "-q", "--bare", "--filter=blob:none", f"file://{repository.folder}", str(clone))
    objects = sum(1 for path in clone.rglob("*") if path.is_file())
    changes = rows(clone)
    assert {change.reason for change in changes} == {"missing_objects"} and len(changes) == 10
    assert changes[0].files[0].path == "file0.py"
    assert sum(1 for path in clone.rglob("*") if path.is_file()) == objects


def test_shallow_clones(repository: Repository, tmp_path: Path) -> None:
    clone = tmp_path / "shallow"
    repository.git("clone", "-q", "--bare", "--depth=3", f"file://{repository.folder}", str(clone))
    changes = rows(clone)
    assert [change.reason for change in changes] == [None, None, "missing_objects"]
    assert changes[2].base_sha == repository.head("HEAD~3") and changes[2].files == []
    full = {change.head_sha: change.change_id for change in rows(repository.folder)}
    assert all(full[change.head_sha] == change.change_id for change in changes)


def test_a_history_that_cannot_be_walked_is_an_error(repository: Repository) -> None:
    lose(repository, "HEAD~5")
    with pytest.raises(GitFailed, match="listing the commits"):
        rows(repository.folder)


def test_nothing_is_left_of_git_after_damage(repository: Repository) -> None:
    lose(repository, "HEAD:file0.py")
    rows(repository.folder)
    assert not subprocess.run(["pgrep", "-f", str(repository.folder)], capture_output=True).stdout
