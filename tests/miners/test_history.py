"""The crawl on real repositories: every commit gives one row, whatever it holds."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from git_repository import STAMP, Repository, only_row, reasons, rows

from perfquarry.data.errors import InputError
from perfquarry.data.records import change_id_of
from perfquarry.miners.history import crawl
from perfquarry.miners.settings import MineSettings

PYTHON = "import os\n\n\nclass A:\n    def first(self):\n        return 1\n\n    def second(self):\n        x = 1\n" + (
    "        y = 2\n        z = 3\n        w = 4\n        return x\n"
)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "work")


def test_every_commit_gives_one_row_newest_first(repository: Repository) -> None:
    shas = [repository.commit(f"commit {n}", {"a.py": f"x = {n}\n"}) for n in range(70)]
    changes = rows(repository.folder)
    assert [change.head_sha for change in changes] == shas[::-1]
    assert [change.base_sha for change in changes] == [*shas[:-1][::-1], ""]
    assert changes[-1].reason == "root_commit" and changes[-1].status == "rejected"
    assert {change.status for change in changes[:-1]} == {"kept"}
    assert changes[0].change_id == change_id_of("sample", shas[-2], shas[-1])


def test_columns_of_a_commit(repository: Repository) -> None:
    repository.commit("start", {"pkg/a.py": PYTHON, "docs/a.rst": "x\n", "tests/test_a.py": "x\n"})
    sha = repository.commit(
        "Faster second (#12)\n\nFixes #7, closes gh-8.\n",
        {"pkg/a.py": PYTHON.replace("return x", "return 2"), "docs/a.rst": "y\n", "tests/test_a.py": "y\nz\n"},
    )
    change = only_row(repository.folder, sha[:10])
    assert (change.kind, change.title, change.pull_number, change.issues) == (
        "pull_request",
        "Faster second (#12)",
        12,
        [7, 8],
    )
    facts = [(file.path, file.role, file.language, file.status, file.added, file.deleted) for file in change.files]
    assert facts == [
        ("docs/a.rst", "docs", "restructuredtext", "modified", 1, 1),
        ("pkg/a.py", "source", "python", "modified", 1, 1),
        ("tests/test_a.py", "test", "python", "modified", 2, 1),
    ]
    assert change.functions == ["pkg/a.py::second"]
    assert change.patch.startswith("diff --git a/pkg/a.py b/pkg/a.py\n") and "docs" not in change.patch
    assert change.patch.endswith("-        return x\n+        return 2\n")
    assert not change.patch_truncated and change.patch_bytes > len(change.patch)
    assert change.merged_at == datetime.fromtimestamp(int(repository.git("show", "-s", "--format=%ct", sha)), UTC)


def test_merges_are_compared_with_their_first_parent(repository: Repository) -> None:
    repository.commit("start", {"a.py": "a = 1\n"})
    branches = []
    for name in ("one", "two", "three"):
        repository.git("checkout", "-q", "-b", name, "main")
        repository.commit(name, {f"{name}.py": f"{name} = 1\n"})
        branches.append(name)
    repository.git("checkout", "-q", "main")
    base = repository.commit("on main", {"a.py": "a = 2\n"})
    merge = repository.merge("Merge pull request #41 from x/one", "one")
    octopus = repository.merge("octopus", "two", "three")
    change = only_row(repository.folder, merge)
    assert (change.kind, change.base_sha, change.pull_number, len(change.parents)) == ("merge", base, 41, 2)
    assert [file.path for file in change.files] == ["one.py"]
    change = only_row(repository.folder, octopus)
    assert (change.kind, change.base_sha, len(change.parents)) == ("merge", merge, 3)
    assert [file.path for file in change.files] == ["three.py", "two.py"]
    assert len(rows(repository.folder)) == 7


def test_empty_commits_and_merges_without_effect(repository: Repository) -> None:
    repository.commit("start", {"a.py": "a = 1\n"})
    repository.commit("nothing")
    repository.git("checkout", "-q", "-b", "side")
    repository.commit("side", {"b.py": "b\n"})
    repository.git("checkout", "-q", "main")
    repository.git("merge", "-q", "-s", "ours", "--no-ff", "-m", "ours", "side")
    repository.commit("last", {"c.py": "c\n"})
    found = reasons(rows(repository.folder))
    assert found == {"start": "root_commit", "nothing": "empty_diff", "side": None, "ours": "empty_diff", "last": None}


def test_names_and_messages_that_are_not_utf8(repository: Repository) -> None:
    repository.commit("start", {"a.py": "a\n"})
    repository.write(b"b\xff\n\x01c.py", "x = 1\n")
    repository.write('tab\t"quote".py', "y = 1\n")
    repository.commit("to be replaced")
    # git itself would turn the message into UTF-8: the commit is written by hand.
    commit = repository.git("cat-file", "commit", "HEAD").partition(b"\n\n")[0]
    commit += b"\n\ncaf\xe9 \x01\n\n\x01" + b"0" * 40 + b"\n\nbody\n"
    sha = repository.git("hash-object", "-t", "commit", "-w", "--stdin", data=commit).decode().strip()
    repository.git("reset", "-q", "--soft", sha)
    change = only_row(repository.folder, sha)
    assert change.title == "caf\\xe9 \x01"
    assert [file.path for file in change.files] == ["b\\xff\n\x01c.py", 'tab\t"quote".py']
    assert [file.added for file in change.files] == [1, 1]
    assert len(rows(repository.folder)) == 2


def test_contents_that_look_like_our_separators(repository: Repository) -> None:
    repository.commit("start", {"a.py": "a\n"})
    text = (
        b"x" * 9000 + b"\n\x01" + b"0" * 40 + b"\0\0\0\0\0\0\ndiff --git a/x b/x\n@@ -1 +1 @@\n--- a\n+++ b\n\0\x01\n"
    )
    repository.commit("odd", {"odd.py": text})
    repository.commit("after", {"after.py": "x\r\n\x0cy"})
    changes = rows(repository.folder)
    assert [change.title for change in changes] == ["after", "odd", "start"]
    assert [(file.added, file.deleted) for file in changes[1].files] == [(text.count(b"\n"), 0)]
    assert changes[0].files[0].added == 2


def test_lines_are_counted_as_git_counts_them(repository: Repository) -> None:
    body = b"".join(b"line %d\n" % number for number in range(40))
    contents = (
        b"one", b"one\n", b"two", body, body[:-1], b"\\ No newline\n" + body, b"\\ No newline\n\\" + body + b"\\",
        b"first\n" + body[:-1] + b" and more", b"+\n-\n@@ -1 +1 @@\n\\\n", b"", b"\n", b"\n\n\\\n\\", body + b"\r",
    )  # fmt: skip
    for number, content in enumerate(contents):
        repository.commit(f"{number}", {"a.py": content, "b.py": contents[-number]})
    for change in rows(repository.folder):
        options = ("--numstat", "--format=", "--no-renames", "--root", change.head_sha)
        counts = [line.split("\t") for line in repository.git("show", *options).decode().splitlines()]
        counted = {path: (int(added), int(deleted)) for added, deleted, path in counts}
        assert {file.path: (file.added, file.deleted) for file in change.files} == counted, change.title


def test_links_modes_types_renames_binaries_and_submodules(repository: Repository, tmp_path: Path) -> None:
    other = Repository(tmp_path / "other")
    other.commit("other", {"o.py": "o\n"})
    body = "".join(f"line {n}\n" for n in range(50))
    repository.commit("start", {"mode.py": "m\n", "old.py": body, "type.py": "t\n", "bin.dat": b"\0\1", "empty.py": ""})
    repository.git("submodule", "--quiet", "add", str(other.folder), "module")
    (repository.folder / "mode.py").chmod(0o755)
    repository.git("mv", "old.py", "new.py")
    repository.write("new.py", body + "more\n")
    (repository.folder / "type.py").unlink()
    (repository.folder / "type.py").symlink_to("new.py")
    (repository.folder / "link").symlink_to("nowhere")
    sha = repository.commit("all kinds", {"bin.dat": b"\0\2", "empty2.py": ""})
    files = {file.path: file for file in only_row(repository.folder, sha).files}
    facts = {path: (file.status, file.added, file.deleted, file.binary) for path, file in files.items()}
    assert facts == {
        ".gitmodules": ("added", 3, 0, False),
        "bin.dat": ("modified", 0, 0, True),
        "empty2.py": ("added", 0, 0, False),
        "link": ("added", 1, 0, False),
        "mode.py": ("modified", 0, 0, False),
        "module": ("submodule", 1, 0, False),
        "new.py": ("renamed", 1, 0, False),
        "type.py": ("type_changed", 1, 1, False),
    }
    assert files["new.py"].old_path == "old.py"


def test_a_long_patch_is_cut_after_whole_hunks(repository: Repository) -> None:
    lines = [f"x{n} = {n}\n" for n in range(2000)]
    repository.commit("start", {"a.py": "".join(lines)})
    for n in range(0, 2000, 50):
        lines[n] = f"x{n} = 'changed'\n"
    sha = repository.commit("many hunks", {"a.py": "".join(lines)})
    whole = only_row(repository.folder, sha).patch
    change = only_row(repository.folder, sha, MineSettings(patch_limit=2000))
    assert change.patch_truncated and 1000 < len(change.patch) <= 2000
    assert whole.startswith(change.patch) and whole[len(change.patch) :].startswith("@@ ")
    assert not only_row(repository.folder, sha).patch_truncated


def test_a_diff_too_large_is_a_row_with_its_files(repository: Repository) -> None:
    repository.commit("start", {"a.py": "a\n"})
    repository.commit("huge", {"huge.py": b"x" * 20_000_000 + b"\n", "a.py": "a\nb\n"})
    repository.commit("after", {"a.py": "c\n"})
    changes = rows(repository.folder)
    assert reasons(changes) == {"after": None, "huge": "diff_too_large", "start": "root_commit"}
    assert [(file.path, file.added) for file in changes[1].files] == [("a.py", 1), ("huge.py", 1)]
    assert changes[1].patch_bytes > 20_000_000 and changes[1].patch == "" and changes[1].patch_truncated
    small = only_row(repository.folder, changes[0].head_sha, MineSettings(diff_limit=10))
    assert small.reason == "diff_too_large"


def test_long_runs_of_digits_in_a_diff_too_large_are_not_searched(repository: Repository) -> None:
    repository.commit("start", {"a.py": "a\n"})
    sha = repository.commit("digits", {"data.txt": b"1" * 20_000_000 + b"\n", "b.py": "1\t2\tb\n"})
    change = only_row(repository.folder, sha)
    assert change.reason == "diff_too_large"
    assert [(file.path, file.added) for file in change.files] == [("b.py", 1), ("data.txt", 1)]


def test_files_too_large_to_compare_are_distinguished_from_binary_ones(repository: Repository) -> None:
    text = b"".join(b"value_%d = %d\n" % (n, n) for n in range(1_400_000))
    repository.commit("start", {"a.py": "a\n"})
    repository.commit("text", {"huge.py": text, "small.bin": b"\0"})
    repository.commit("binary", {"huge.bin": b"\0" + text, "a.py": "b\n"})
    changes = rows(repository.folder)
    assert reasons(changes) == {"binary": None, "text": "diff_too_large", "start": "root_commit"}
    assert [(file.path, file.binary) for file in changes[0].files] == [("a.py", False), ("huge.bin", True)]
    assert [file.path for file in changes[1].files] == ["huge.py", "small.bin"]


def test_patch_ids_are_those_of_git(repository: Repository) -> None:
    body = "".join(f"line {n}\n" for n in range(60))
    repository.commit("start", {"a.py": body, "b.c": body, "c.py": body, "mode.py": "m\n"})
    (repository.folder / "mode.py").chmod(0o755)
    repository.git("mv", "c.py", "d.py")
    changed = body.replace("line 7\n", "line  seven\n").replace("line 50\n", "")
    first = repository.commit("first", {"a.py": changed, "b.c": changed + "no newline", "e.py": "new\n"})
    one_file = repository.commit("one file", {"a.py": body})
    for sha in (first, one_file):
        patch = repository.git("diff-tree", "-p", "-M", f"{sha}^", sha)
        expected = repository.git("patch-id", "--stable", data=patch).decode().split()[0]
        assert only_row(repository.folder, sha).patch_id == expected
    assert only_row(repository.folder, one_file).patch.startswith("diff --git a/a.py b/a.py\n")
    repository.git("checkout", "-q", "-b", "moved", f"{first}^")
    repository.commit("shift", {"a.py": "top\n" * 30 + body})
    picked = repository.commit("a only", {"a.py": "top\n" * 30 + body.replace("line 30\n", "line 30 \n\n")})
    repository.git("checkout", "-q", "-B", "other", f"{first}^")
    again = repository.commit("a only, elsewhere", {"a.py": body.replace("line 30\n", "line 30\t\n \n")})
    assert only_row(repository.folder, picked).patch_id == only_row(repository.folder, again).patch_id


def test_known_dates_ids_and_branches(repository: Repository) -> None:
    shas = [repository.commit(f"commit {n}", {"a.py": f"{n}\n"}) for n in range(6)]
    repository.git("checkout", "-q", "-b", "side")
    side = repository.commit("side", {"b.py": "b\n"})
    repository.git("checkout", "-q", "main")
    folder = repository.folder
    assert [change.head_sha for change in rows(folder, known=shas[:4])] == [shas[5], shas[4]]
    assert rows(folder, known=set(shas)) == []
    dates = {change.head_sha: change.merged_at for change in rows(folder)}
    between = rows(folder, since=dates[shas[2]], until=dates[shas[3]].replace(tzinfo=None))
    assert [change.head_sha for change in between] == [shas[3], shas[2]]
    assert [change.head_sha for change in rows(folder, only=[shas[1], shas[4][:8], shas[1]])] == [shas[4], shas[1]]
    assert rows(folder, branch="side")[0].head_sha == side
    assert rows(folder, only=[]) == []


@pytest.mark.parametrize("name", ["deadbeef", "main", "--all", "abc", "0" * 40, ""])
def test_unknown_commits_are_input_errors(repository: Repository, name: str) -> None:
    repository.commit("start", {"a.py": "a\n"})
    with pytest.raises(InputError):
        rows(repository.folder, only=[name])


def test_unknown_branches_and_empty_repositories_are_input_errors(repository: Repository) -> None:
    with pytest.raises(InputError, match="no commit"):
        rows(repository.folder)
    repository.commit("start", {"a.py": "a\n"})
    with pytest.raises(InputError, match="no branch 'none'"):
        rows(repository.folder, branch="none")


def test_configuration_of_the_clone_changes_nothing(repository: Repository, tmp_path: Path) -> None:
    repository.commit("start", {"a.py": PYTHON, ".gitattributes": "*.py diff=evil -text\n*.c -diff\n"})
    repository.commit("change", {"a.py": PYTHON.replace("z = 3", "z = 4"), "b.c": "int x;\n"})
    before = [change.model_dump(exclude={"created_at"}) for change in rows(repository.folder)]
    witness = tmp_path / "ran"
    script = tmp_path / "evil.sh"
    script.write_text(f'#!/bin/sh\ntouch {witness}\ncat "$1"\n')
    script.chmod(0o755)
    for key, value in {
        "diff.evil.textconv": str(script),
        "diff.evil.command": str(script),
        "diff.external": str(script),
        "core.fsmonitor": str(script),
        "core.pager": str(script),
        "core.hooksPath": str(tmp_path),
        "diff.noprefix": "true",
        "diff.context": "0",
        "diff.suppressBlankEmpty": "true",
        "diff.algorithm": "histogram",
        "color.ui": "always",
        "log.showSignature": "true",
        "log.showRoot": "false",
        "diff.renames": "false",
    }.items():
        repository.git("config", key, value)
    assert [change.model_dump(exclude={"created_at"}) for change in rows(repository.folder)] == before
    assert not witness.exists()


def test_a_crawl_that_is_left_ends_its_processes(repository: Repository) -> None:
    for n in range(4):
        repository.commit(f"commit {n}", {"a.py": f"{n}\n" * 1_000_000})
    crawling = crawl(repository.folder, STAMP, MineSettings())
    next(crawling)
    crawling.close()  # type: ignore[attr-defined]
    listing = subprocess.run(["ps", "-o", "args=", "--ppid", str(os.getpid())], capture_output=True, text=True).stdout
    assert "git log" not in listing
