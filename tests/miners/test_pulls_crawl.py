"""The crawl against a server that speaks GitHub's APIs: faults, limits, keys, long lists, what is new."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from github_server import FAULTS, GithubServer, serving
from github_world import World, moment, oid, said

from perfquarry.data.errors import GithubFailed, InputError
from perfquarry.data.records import Pull, Stamp
from perfquarry.miners.pulls.client import GitHubClient
from perfquarry.miners.pulls.crawl import Crawl
from perfquarry.miners.pulls.identities import base_url_of, identities
from perfquarry.miners.settings import PullSettings

STAMP = Stamp(repo="sample", stage_version="1", config_hash="test")
Start = Callable[..., GithubServer]


@pytest.fixture(autouse=True)
def one_token(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TOKENS", "APP_ID", "APP_PRIVATE_KEY", "APP_PRIVATE_KEY_PATH", "APP_INSTALLATION_ID"):
        monkeypatch.delenv(f"GITHUB_{name}", raising=False)
    monkeypatch.setenv("GITHUB_TOKEN", "token-one")


@pytest.fixture
def start() -> Iterator[Start]:
    opened = []

    def begin(**options: Any) -> GithubServer:
        context = serving(GithubServer(**options))
        opened.append(context)
        return context.__enter__()

    yield begin
    for context in opened:
        context.__exit__(None, None, None)


def crawl(server: GithubServer, reports: Callable[[str], None] = lambda text: None, **options: Any) -> Crawl:
    settings = PullSettings(base_url=server.url, **{"backoff": 0.01, "page_size": 20, "secondary_wait": 0.2, **options})
    client = GitHubClient(identities(settings, server.url, server.world.codebase), settings, reports)
    return Crawl(client, server.world.codebase, STAMP, settings)


def read(reader: Crawl, after: str | None = None) -> list[Pull]:
    return [row for page in reader.pulls(after) for row in page.rows]


def test_every_pull_request_once_in_few_calls(start: Start) -> None:
    server = start(world=World(1000))
    rows = read(crawl(server, page_size=50))
    assert [row.number for row in rows] == list(range(1, 1001))
    assert len(server.calls) == 20  # 50 times fewer than one a pull request
    one = rows[29]
    assert (one.state, one.merge_sha, one.labels, one.files) == (
        "merged", oid("merge", 30), ["performance"], ["pkg/core.py", "tests/test_core.py"],
    )  # fmt: skip
    assert [(link.number, link.kind) for link in one.issues] == [(1030, "closing")]
    assert [(result.before, result.after, result.speedup) for result in one.results] == [(0.012, 0.003, 4.0)]
    assert rows[3].state == "closed" and rows[3].merge_sha is None and rows[3].merged_at is None


def test_no_fault_loses_or_doubles_a_row(start: Start) -> None:
    faults = [*FAULTS, "429"]
    server = start(
        world=World(300), fault=lambda number: faults[number // 3 % len(faults)] if number % 3 == 0 else None
    )
    reports: list[str] = []
    rows = read(crawl(server, reports.append))
    assert [row.number for row in rows] == list(range(1, 301))
    assert set(server.faults) == set(faults)
    assert any("GitHub's rate limit (graphql, token 1 of 1): 1 s left" in text for text in reports)


def test_a_crawl_goes_on_after_any_row_and_reads_what_is_new(start: Start) -> None:
    server = start(world=World(90))
    first = next(crawl(server).pulls()).rows
    rest = read(crawl(server), first[-1].cursor)
    assert [row.number for row in (*first, *rest)] == list(range(1, 91))
    assert read(crawl(server), rest[-1].cursor) == []
    server.world.touch(7, title="A better title", state="MERGED")
    (again,) = read(crawl(server), rest[-1].cursor)
    assert (again.number, again.title) == (7, "A better title")


def test_what_is_updated_meanwhile_comes_again_at_the_end(start: Start) -> None:
    server = start(world=World(60))
    rows = []
    for number, page in enumerate(crawl(server).pulls()):
        rows += page.rows
        if number == 0:
            server.world.touch(5, title="seen before")
            server.world.touch(50, title="not seen yet")
    assert len(rows) == 61 and {row.number for row in rows} == set(range(1, 61))
    assert {row.number: row.title for row in rows}[5] == "seen before"
    assert [row.title for row in rows if row.number == 50] == ["not seen yet"]


def test_long_lists_are_followed_to_their_end_or_the_limit(start: Start) -> None:
    review = {**World.review(1, comments=45), "body": ""}
    long = {
        "commits": [{"commit": {"oid": oid(at), "messageHeadline": f"c{at}"}} for at in range(230)],
        "files": [{"path": f"pkg/{at}.py"} for at in range(450)],
        "comments": [said(f"remark {at}", at) for at in range(130)],
        "reviews": [review],
    }
    server = start(world=World(1, pulls={1: long}))
    (row,) = read(crawl(server, most=300))
    assert [commit.title for commit in row.commits] == [f"c{at}" for at in range(230)]
    assert len([remark for remark in row.remarks if remark.kind == "comment"]) == 130
    assert len([remark for remark in row.remarks if remark.kind == "review_comment"]) == 45
    assert (len(row.files), row.cut) == (300, ["files"])


def test_links_of_every_kind_the_strongest_once(start: Start) -> None:
    def event(kind: str, number: int, role: str = "subject") -> dict[str, Any]:
        return {"__typename": kind, role: world.issue(number)}

    world = World(codebase="owner/name", issues={number: {} for number in range(10, 20)})
    elsewhere = {**world.issue(19), "number": 5, "repository": {"nameWithOwner": "other/name"}}  # type: ignore[dict-item]
    world = World(
        1,
        issues=world.issues,
        pulls={
            1: {
                "title": "Faster (see #16)",
                "body": "Closes #11, resolves owner/name#12 and fixes https://github.com/x/y/issues/3.\nAbout #10.",
                "closingIssuesReferences": [10, elsewhere],
                "timelineItems": [
                    event("ConnectedEvent", 13),
                    event("ConnectedEvent", 14),
                    event("DisconnectedEvent", 14),
                    event("CrossReferencedEvent", 15, "source"),
                    {"__typename": "CrossReferencedEvent", "source": {"__typename": "PullRequest"}},
                    {"__typename": "ReferencedEvent", "commit": {"oid": oid("later")}},
                ],
            }
        },
    )
    (row,) = read(crawl(start(world=world)))
    assert {(link.codebase, link.number): link.kind for link in row.issues} == {
        ("", 10): "closing", ("other/name", 5): "closing", ("", 13): "connected", ("", 11): "word", ("", 12): "word",
        ("x/y", 3): "word", ("", 15): "cross_reference", ("", 16): "mention",
    }  # fmt: skip
    assert row.linked_commits == [oid("later")]


def test_issues_come_many_at_once_and_missing_ones_are_reported(start: Start) -> None:
    world = World(9, issues={40: {"comments": [said(f"c{at}") for at in range(70)], "body": "Slow: 2 s"}})
    server = start(world=world)
    found = [issue for part in crawl(server).issues([40, 41, 3]) for issue in part]
    assert [(issue.number, issue.status, issue.reason, issue.is_pull) for issue in found] == [
        (40, "kept", None, False), (41, "rejected", "no_such_issue", False), (3, "kept", None, True),
    ]  # fmt: skip
    assert len(found[0].remarks) == 70 and len(server.calls) == 2


def test_an_etag_says_that_nothing_changed_and_costs_no_quota(start: Start) -> None:
    server = start(world=World(30, issues={50: {"updatedAt": moment(3)}}))
    reader = crawl(server)
    before = reader.newest("pulls")
    assert before is not None and before.updated_at == moment(30)
    left = server.bucket("token-one", "core").remaining
    assert reader.newest("pulls", before.etag) is None
    assert server.bucket("token-one", "core").remaining == left
    server.world.touch(3)
    assert reader.newest("pulls", before.etag) is not None


def test_updated_issues_are_listed_page_by_page(start: Start) -> None:
    server = start(world=World(250))
    (since,) = [row.updated_at for row in read(crawl(server)) if row.number == 30]
    assert since is not None
    assert crawl(server).updated_issues(since) == set(range(30, 251))
    assert server.count("core") == 3


def test_tokens_are_used_by_what_they_have_left(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKENS", "token-two, token-three")
    server = start(world=World(180), tokens=("token-one", "token-two", "token-three"), limit=3)
    assert len(read(crawl(server))) == 180
    used = [token for token, _, _ in server.calls]
    assert {token: used.count(token) for token in set(used)} == {"token-one": 3, "token-two": 3, "token-three": 3}


def test_a_spent_quota_is_waited_for(start: Start) -> None:
    server = start(world=World(100), limit=3, window=2.0)
    reports: list[str] = []
    reader = crawl(server, reports.append)
    assert len(read(reader)) == 100
    assert reports and all("graphql" in text for text in reports)


def test_a_wait_beyond_the_limit_is_an_error_that_keeps_what_was_read(start: Start) -> None:
    server = start(world=World(100), limit=3, window=3600.0)
    pages = crawl(server, longest_wait=5.0).pulls()
    assert [len(next(pages).rows) for _ in range(3)] == [20, 20, 20]
    with pytest.raises(GithubFailed, match="run again after that"):
        next(pages)


def test_secondary_limits_without_a_time_wait_longer_and_longer(start: Start) -> None:
    server = start(world=World(20), retry_after="soon", fault=lambda number: "secondary" if number < 2 else None)
    reader = crawl(server, secondary_wait=0.15)
    assert len(read(reader)) == 20
    assert round(reader.client.waited, 1) >= 0.4 and reader.client.calls["limited"] == 2


def test_too_heavy_pages_become_lighter(start: Start) -> None:
    server = start(world=World(100), too_heavy=10)
    assert len(read(crawl(server))) == 100


def test_faults_that_last_are_an_error(start: Start) -> None:
    server = start(world=World(20), fault=lambda number: "502")
    with pytest.raises(GithubFailed, match=r"failed 3 times in a row.*502.*run again"):
        read(crawl(server, retries=2))
    assert len(server.calls) == 3


def test_refused_keys_are_left_out_and_all_refused_is_bad_input(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKENS", "not-a-token-1")
    assert len(read(crawl(start(world=World(40))))) == 40
    with pytest.raises(InputError, match="refuses every key") as refused:
        read(crawl(start(world=World(40), tokens=())))
    assert "token-one" not in str(refused.value) and "not-a-token" not in str(refused.value)


def test_no_repository_and_no_key_are_bad_input(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    server = start(world=World(5))
    settings = PullSettings(base_url=server.url)
    client = GitHubClient(identities(settings, server.url, "owner/other"), settings)
    with pytest.raises(InputError, match="no such repository"):
        read(Crawl(client, "owner/other", STAMP, settings))
    with pytest.raises(InputError, match="no such repository"):
        Crawl(client, "owner/other", STAMP, settings).newest("pulls")
    monkeypatch.delenv("GITHUB_TOKEN")
    with pytest.raises(InputError, match=r"set GITHUB_TOKEN.*--offline"):
        identities(settings, server.url, "owner/name")


def test_an_app_asks_as_its_installation(start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    server = start(world=World(30), tokens=(), app_key=public.decode())
    monkeypatch.delenv("GITHUB_TOKEN")
    monkeypatch.setenv("GITHUB_APP_ID", "5")
    with pytest.raises(InputError, match="without GITHUB_APP_PRIVATE_KEY"):
        crawl(server)
    (tmp_path / "key.pem").write_bytes(pem)
    monkeypatch.setenv("GITHUB_APP_PRIVATE_KEY_PATH", str(tmp_path / "key.pem"))
    assert len(read(crawl(server))) == 30
    assert {token for token, _, _ in server.calls} == {"ghs_installation"}


def test_addresses_of_hosts() -> None:
    assert base_url_of(PullSettings(), "github.com") == "https://api.github.com"
    assert base_url_of(PullSettings(), "git.example.org") == "https://git.example.org/api/v3"
    with pytest.raises(ValueError, match="without credentials"):
        PullSettings(base_url="https://me:secret@host/api")
