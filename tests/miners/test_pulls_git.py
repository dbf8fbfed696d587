"""Pull requests and git: which commits are parts of one, what git alone knows, what becomes one change."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from git_repository import STAMP, Repository, rows

from perfquarry.data.records import Change, Policy, Pull
from perfquarry.miners.pulls.graph import Graph
from perfquarry.miners.pulls.joining import JOIN_COLUMNS, Joining
from perfquarry.miners.pulls.notes import ReleaseNotes
from perfquarry.miners.pulls.offline import reconstruct
from perfquarry.miners.settings import MineSettings

LABELS = "perf"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "work")
    made.commit("start", {"pkg/core.py": "a = 1\n", "tests/test_core.py": "t = 1\n"})
    return made


def topic(repository: Repository, name: str, *titles: str, start: str = "main") -> list[str]:
    repository.git("checkout", "-q", "-b", name, start)
    shas = [repository.commit(title, {f"pkg/{name}{at}.py": f"{name} = {at}\n"}) for at, title in enumerate(titles)]
    repository.git("checkout", "-q", "main")
    return shas


def merged(repository: Repository, number: int, name: str, body: str = "") -> str:
    return repository.merge(f"Merge pull request #{number} from ann/{name}\n\n{body or name}", name)


def from_git(repository: Repository) -> list[Pull]:
    found = reconstruct(repository.folder, Graph(repository.folder), "owner/name", STAMP)
    return [Pull.model_validate(row.model_dump()) for row in found]


def join(
    repository: Repository, pulls: Sequence[dict[str, Any]], policy: Policy = "all", changes: Sequence[Change] = ()
) -> dict[str, Change]:
    """The rows by title."""
    settings = MineSettings()
    joining = Joining(Graph(repository.folder), pulls, policy, LABELS)
    found: dict[str, Change] = {}
    for change in changes or rows(repository.folder):
        for row in joining.apply(change, repository.folder, settings):
            found[row.title] = Change.model_validate(row.model_dump())
    return found


def plain(pulls: Sequence[Pull]) -> list[dict[str, Any]]:
    return [row.model_dump(include=set(JOIN_COLUMNS)) for row in pulls]


def reported(number: int, sha: str, **columns: Any) -> dict[str, Any]:
    """A row as GitHub's."""
    return {
        "number": number, "merge_sha": sha, "state": "merged", "title": f"Pull {number}", "labels": [], "files": [],
        "issues": [], "commits": [], **columns,
    }  # fmt: skip


def test_a_merge_and_its_commits_are_one_change(repository: Repository) -> None:
    topic(repository, "one", "one a", "one b")
    direct = repository.commit("direct", {"pkg/core.py": "a = 2\n"})
    merge = merged(repository, 41, "one", "Faster core\n\nFixes #7.")
    found = join(repository, plain(from_git(repository)))
    change = found["Merge pull request #41 from ann/one"]
    assert (change.head_sha, change.base_sha, change.kind, change.pull_number) == (merge, direct, "merge", 41)
    assert change.issues == [7] and change.status == "kept"
    for part in ("one a", "one b"):
        assert (found[part].reason, found[part].pull_number) == ("part_of_pull_request", 41)
    assert (found["direct"].status, found["direct"].pull_number) == ("kept", None)
    assert found["start"].reason == "root_commit"


def test_a_pull_request_within_another_stays_a_change_of_its_own(repository: Repository) -> None:
    topic(repository, "outer", "outer a")
    topic(repository, "inner", "inner a", start="outer")
    repository.git("checkout", "-q", "outer")
    merged(repository, 2, "inner")
    repository.commit("outer b", {"pkg/outer.py": "x = 1\n"})
    repository.git("checkout", "-q", "main")
    repository.commit("on main", {"pkg/core.py": "a = 3\n"})
    repository.git("checkout", "-q", "outer")
    repository.merge("Merge branch 'main' into outer", "main")
    repository.git("checkout", "-q", "main")
    merged(repository, 1, "outer")
    found = join(repository, plain(from_git(repository)))
    parts = {title: change.pull_number for title, change in found.items() if change.reason == "part_of_pull_request"}
    assert parts == {"outer a": 1, "inner a": 2, "outer b": 1, "Merge branch 'main' into outer": 1}
    assert found["on main"].status == "kept"
    assert [
        found[f"Merge pull request #{number} from ann/{name}"].status for number, name in ((1, "outer"), (2, "inner"))
    ] == [
        "kept",
        "kept",
    ]


def test_a_squash_gets_its_number_and_github_knows_what_the_title_does_not(repository: Repository) -> None:
    squash = repository.commit("Faster core (#12)", {"pkg/core.py": "a = 2\n"})
    renamed = repository.commit("A title without a number", {"pkg/core.py": "a = 3\n"})
    issue = {"number": 9, "codebase": "", "kind": "connected"}
    github = [
        reported(12, squash),
        reported(13, renamed, issues=[issue, {"number": 8, "codebase": "x/y", "kind": "closing"}]),
    ]
    found = join(repository, [*github, *plain(from_git(repository))])
    assert (found["Faster core (#12)"].kind, found["Faster core (#12)"].pull_number) == ("pull_request", 12)
    change = found["A title without a number"]
    assert (change.kind, change.pull_number, change.issues, change.status) == ("pull_request", 13, [9], "kept")


def test_git_shows_where_a_merge_is_that_github_has_lost(repository: Repository) -> None:
    repository.commit("Faster core (#12)", {"pkg/core.py": "a = 2\n"})
    repository.commit("Backport (#12)", {"pkg/core.py": "a = 3\n"})
    github = [reported(12, "f" * 40, labels=["performance"]), reported(12, "e" * 40)]
    found = join(repository, [*github, *plain(from_git(repository))], "labelled")
    assert [found[f"{title} (#12)"].reason for title in ("Faster core", "Backport")] == [None, "no_pull_request"]


def test_a_rebased_pull_request_is_one_change_over_all_its_commits(repository: Repository) -> None:
    base = repository.head()
    repository.commit("Make room", {"pkg/core.py": "a = 2\nb = 1\n"})
    repository.commit("Use the room of a long title that the forge shortens", {"pkg/core.py": "a = 2\nb = 2\n"})
    last = repository.commit("Test it", {"tests/test_core.py": "t = 2\n"})
    after = repository.commit("unrelated", {"pkg/core.py": "a = 5\n"})
    titles = ["Make room", "Use the room of a long title that…", "Merge branch 'main' into topic", "Test it"]
    commits = [{"sha": "0" * 40, "title": title} for title in titles]
    pulls = [reported(5, last, title="Room for core", commits=commits), reported(6, after, commits=commits[:1])]
    found = join(repository, pulls)
    series = found["Room for core"]
    assert (series.base_sha, series.head_sha, series.kind, series.pull_number) == (base, last, "pull_request", 5)
    assert [file.path for file in series.files] == ["pkg/core.py", "tests/test_core.py"]
    assert series.patch.endswith("-a = 1\n+a = 2\n+b = 2\n") and series.patch_id and series.status == "kept"
    assert [found[title].reason for title in ("Make room", "Test it")] == ["part_of_pull_request"] * 2
    assert found["unrelated"].pull_number == 6 and found["unrelated"].status == "kept"
    again = join(repository, pulls, changes=list(found.values()))
    assert {row.change_id: row.status for row in again.values()} == {
        row.change_id: row.status for row in found.values()
    }


@pytest.mark.parametrize(
    ("policy", "reasons"),
    [
        ("all", [None, None, None, None, None]),
        ("merged", [None, None, None, None, "no_pull_request"]),
        ("labelled", ["no_performance_label"] * 3 + [None, "no_pull_request"]),
        ("sweperf", [None, None, "resolves_no_issue", "no_source_file", "no_pull_request"]),
        ("swebench", [None, "no_test_file", "resolves_no_issue", "no_source_file", "no_pull_request"]),
    ],
)
def test_policies(repository: Repository, policy: Policy, reasons: list[str | None]) -> None:
    shas = [repository.commit(f"number {at}", {"pkg/core.py": f"a = {at + 10}\n"}) for at in range(5)]
    issue, code, test = {"number": 9, "codebase": "", "kind": "word"}, "pkg/core.py", "tests/test_core.py"
    pulls = [
        reported(1, shas[0], issues=[issue], files=[code, test]),
        reported(2, shas[1], issues=[issue], files=[code]),
        reported(3, shas[2], issues=[{**issue, "kind": "mention"}], files=[code, test]),
        reported(4, shas[3], issues=[issue], files=[test], labels=["C: Performance"]),
        reported(5, "f" * 40),
        reported(6, shas[4], state="closed"),
    ]
    found = join(repository, pulls, policy)
    assert [found[f"number {at}"].reason for at in range(5)] == reasons
    under_all = join(repository, pulls, changes=list(found.values()))
    assert [under_all[f"number {at}"].reason for at in range(5)] == [None] * 5


def test_what_git_alone_knows(repository: Repository) -> None:
    parts = topic(repository, "one", "one a", "Resolve #30")
    before = repository.head()
    first = merged(repository, 41, "one", "Faster core\n\nFrom 2 s to 500 ms.\n\nSee #33.")
    squash = repository.commit("Less work (#42)\n\nCloses owner/name#31", {"pkg/core.py": "a = 4\n"})
    topic(repository, "two", "two a")
    repository.merge("Auto merge of #43 - x:two, r=y\n\nQuicker start", "two")
    topic(repository, "three", "three a")
    repository.merge("Merge branch 'three'", "three")
    repository.commit("Backport (#42)", {"pkg/core.py": "a = 5\n"})
    rows = {row.number: row for row in from_git(repository)}
    assert list(rows) == [41, 42, 43]
    one = rows[41]
    assert (one.title, one.body.splitlines()[0], one.author, one.head_ref) == (
        "Faster core",
        "From 2 s to 500 ms.",
        "ann",
        "one",
    )
    assert (one.base_sha, one.head_sha, one.merge_sha, one.state) == (before, parts[-1], first, "merged")
    assert [commit.sha for commit in one.commits] == parts and one.files == ["pkg/one0.py", "pkg/one1.py"]
    assert {link.number: link.kind for link in one.issues} == {30: "word", 33: "mention"}
    assert [result.speedup for result in one.results] == [4.0]
    assert (rows[42].title, rows[42].merge_sha, rows[42].files) == ("Less work", squash, ["pkg/core.py"])
    assert [(link.number, link.kind) for link in rows[42].issues] == [(31, "word")]
    assert rows[43].title == "Quicker start" and rows[43].files == ["pkg/two0.py"]


def test_release_notes_that_mention_a_number(repository: Repository) -> None:
    news = (
        "1.1\n===\n\n* Made core faster,\n  by far (#12).\n* Other (:issue:`13`, gh-14)\n\nAlso https://x.y/pull/15.\n"
    )
    repository.commit(
        "notes", {"docs/whatsnew/v1.1.rst": news, "news/16.perf.rst": "Less\nwork.\n", "pkg/a.py": "# #12"}
    )
    notes = ReleaseNotes(repository.folder)
    assert notes.about([12]) == ["* Made core faster, by far (#12)."]
    assert notes.about([13, 14]) == ["* Other (:issue:`13`, gh-14)"]
    assert notes.about([16, 15, 99]) == ["Less work.", "Also https://x.y/pull/15."]
