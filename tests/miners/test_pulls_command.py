"""`perfquarry pulls` from outside: killed and run again, without a key, and what the next stages make of it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from git_repository import Repository
from github_server import GithubServer, serving
from github_world import World, moment, said
from typer.testing import CliRunner

from benchmarks.pulls import count_lost, trial
from perfquarry.data.errors import InputError
from perfquarry.data.home import Home
from perfquarry.data.records import Change, Issue, Pull, Verdict
from perfquarry.data.store import TableStore
from perfquarry.flows.cli import app


@pytest.fixture(autouse=True)
def only_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_TOKENS", "GITHUB_APP_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GITHUB_TOKEN", "token-one")


@pytest.fixture(autouse=True)
def own_log() -> Iterator[None]:
    yield
    log = logging.getLogger("perfquarry")
    for handler in log.handlers:
        handler.close()
    log.handlers.clear()
    log.propagate = True


def perfquarry(*arguments: str) -> Any:
    """What the command prints as JSON; raises what it raises."""
    done = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "work")
    made.commit("start", {"pkg/core.py": "def f(x):\n    return [y for y in x]\n", "CHANGES.md": "# Changes\n"})
    made.git("checkout", "-q", "-b", "topic")
    made.commit("wip", {"pkg/core.py": "def f(x):\n    return [*x]\n"})
    made.commit("more", {"pkg/core.py": "def f(x):\n    return list(x)\n"})
    made.git("checkout", "-q", "main")
    made.merge("Merge pull request #1 from ann/topic\n\nLists", "topic")
    made.commit("direct", {"pkg/core.py": "def f(x):\n    return list(x)\n\n\ng = f\n"})
    return made


@pytest.fixture
def server(repository: Repository) -> Iterator[GithubServer]:
    last = repository.commit("Rework g", {"pkg/core.py": "def f(x):\n    return list(x)\n\n\ng = list\n"})
    made = {
        "title": "Rework g", "state": "MERGED", "mergeCommit": {"oid": last, "messageHeadline": "Rework g"},
        "body": "Closes #9", "comments": [said("g: 20 ms -> 5 ms")], "files": [{"path": "pkg/core.py"}],
    }  # fmt: skip
    with serving(
        GithubServer(World(pulls={1: {"state": "MERGED"}, 2: made}, issues={9: {"title": "g is slow"}}))
    ) as one:
        yield one


def settings(folder: Path, *lines: str) -> str:
    path = folder / "settings.toml"
    path.write_text("\n".join(["[pulls]", *lines]))
    return str(path)


@pytest.mark.slow
def test_a_crawl_with_faults_killed_and_resumed_loses_nothing(tmp_path: Path) -> None:
    facts = trial(1500, 0.05, tmp_path)
    assert (facts["pulls"], facts["distinct"], count_lost(facts)) == (1500, 1500, 0)
    assert facts["issues"] == facts["distinct_issues"] == 500
    assert 0 < facts["kept_at_kill"] < 1500 and facts["faults"]
    assert facts["pulls"] / facts["calls"] >= 20
    assert facts["unchanged"] and facts["calls_again"]["not_modified"] == 2
    assert max(facts["peak_mb"]) <= 500


def test_what_github_says_decides_the_changes_and_reaches_the_judge(
    tmp_path: Path, repository: Repository, server: GithubServer
) -> None:
    source, home = str(repository.folder), tmp_path / "home"
    chosen = settings(tmp_path, f'base_url = "{server.url}"', 'codebase = "owner/name"', 'policy = "all"')
    where = (source, "--home", str(home), "--settings", chosen)
    perfquarry("mine", *where, "--no-server")  # before GitHub was asked: git knows number 1 alone
    crawled = perfquarry("pulls", *where)
    assert crawled["states"] == {"merged": 2} and (crawled["issues"], crawled["with_results"]) == (1, 1)
    assert crawled["policies"]["sweperf"] == {"resolves_no_issue": 1, "kept": 1}
    perfquarry("mine", *where, "--no-server")
    written = sorted(home.rglob("tables/changes/*/*.parquet"))
    perfquarry("mine", *where, "--no-server")
    assert sorted(home.rglob("tables/changes/*/*.parquet")) == written
    store = TableStore(Home(home).tables)
    (name,) = store.repositories(Pull)
    rows = {row.title: row for row in store.records(Change, name)}
    assert {title: (row.pull_number, row.reason) for title, row in rows.items()} == {
        "Rework g": (2, None),
        "direct": (None, None),
        "Merge pull request #1 from ann/topic": (1, None),
        "wip": (1, "part_of_pull_request"),
        "more": (1, "part_of_pull_request"),
        "start": (None, "root_commit"),
    }
    assert (rows["Rework g"].kind, rows["Rework g"].issues) == ("pull_request", [9])
    assert [issue.title for issue in store.records(Issue, name)] == ["g is slow"]
    assert perfquarry("judge", *where, "--no-server")["funnel"]["stages"][1]["in"] == 3
    verdicts = {row.change_id: row for row in store.records(Verdict, name)}
    server.world.issues[9] = {"title": "g was slow", "updatedAt": moment(5000)}
    assert perfquarry("pulls", *where)["run"]["issues"] == 1 and perfquarry("pulls", *where)["run"]["unchanged"]
    assert [issue.title for issue in store.records(Issue, name)] == ["g was slow"]
    signals = {one.name: one.evidence for one in verdicts[rows["Rework g"].change_id].signals}
    assert signals["measured"] == "g: 20 ms -> 5 ms"


def test_without_a_key_it_is_bad_usage_and_git_says_what_it_knows(
    tmp_path: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_TOKEN")
    chosen = settings(tmp_path, 'codebase = "owner/name"')
    where = (str(repository.folder), "--home", str(tmp_path / "home"), "--settings", chosen)
    with pytest.raises(InputError, match=r"set GITHUB_TOKEN.*--offline"):
        perfquarry("pulls", *where)
    known = perfquarry("pulls", *where, "--offline")
    assert (known["origins"], known["run"]["pulls"], known["run"]["source"]) == ({"git": 1}, 1, "git")
    assert perfquarry("pulls", *where, "--offline")["run"]["pulls"] == 0
    with pytest.raises(InputError, match="unknown policy"):
        perfquarry("pulls", *where, "--policy", "best")


def test_a_wrong_key_is_bad_usage_and_shown_nowhere(
    tmp_path: Path, repository: Repository, server: GithubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_not_the_right_one")
    chosen = settings(tmp_path, f'base_url = "{server.url}"', 'codebase = "owner/name"')
    with pytest.raises(InputError, match="refuses every key") as refused:
        perfquarry("pulls", str(repository.folder), "--home", str(tmp_path / "home"), "--settings", chosen)
    texts = [path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert texts and not any(b"ghp_not_the_right" in text for text in [*texts, str(refused.value).encode()])
