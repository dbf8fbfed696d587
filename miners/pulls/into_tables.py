"""Pull requests into the tables, from GitHub, or as far as git alone knows them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow.compute as pc
from filelock import FileLock
from pydantic import Field

from perfquarry.data.display import current
from perfquarry.data.output import Listing, Report
from perfquarry.data.own_rows import OwnRows, append_in_parts
from perfquarry.data.records import Issue, Pull, Record
from perfquarry.data.registry import Repository
from perfquarry.miners.pulls.client import GitHubClient
from perfquarry.miners.pulls.crawl import Crawl
from perfquarry.miners.pulls.forge import Etags, codebase_of
from perfquarry.miners.pulls.graph import Graph
from perfquarry.miners.pulls.identities import base_url_of, identities
from perfquarry.miners.pulls.joined import pulls_in_git
from perfquarry.miners.pulls.policies import linked
from perfquarry.miners.pulls.summary import Summary, summary
from perfquarry.miners.settings import PullSettings

_SKEW = timedelta(hours=1)
"""GitHub's clock and ours may differ."""


class Crawled(Record):
    """What one run of the crawl did."""

    source: str = Field(description="Address of the API, or 'git'.")
    pulls: int = Field(description="Rows written to `pulls`.")
    issues: int = Field(default=0, description="Rows written to `issues`.")
    unchanged: bool = Field(default=False, description="GitHub said that nothing has changed since the last run.")
    calls: dict[str, int] = Field(default_factory=dict, description="graphql, rest; of these not_modified, retried, …")
    calls_one_by_one: int = Field(default=0, description="Calls it takes at least to read each row by one of its own.")
    waited: float = Field(default=0.0, description="Seconds spent on rate limits.")
    seconds: float


def crawl(rows: OwnRows, repository: Repository, source: str | None, settings: PullSettings) -> Crawled:
    """Reads what is new on GitHub: pull requests, then the issues they are linked with.

    Raises:
        InputError: the repository is not on GitHub, there is no key, or every key is refused.
        GithubFailed: GitHub fails or refuses; what was read is kept.
    """
    began = time.monotonic()
    codebase, host = codebase_of(repository, source, settings)
    address = base_url_of(settings, host)
    client = GitHubClient(identities(settings, address, codebase), settings, current().note)
    reader = Crawl(client, codebase, rows.stamp("pulls"), settings)
    with _alone(rows):
        current().stage("github", None)
        file = rows.home.cache / "github" / f"{rows.name}-{rows.hashes['pulls']}.json"
        etags = Etags(file, trusted=bool(rows.store.count(Pull, rows.name, **rows.where("pulls"))))
        unchanged = etags.ask(reader)
        current().finish("nothing is new" if unchanged else f"there is something new at {address}")
        pulls = 0 if unchanged else _crawl_pulls(rows, reader)
        issues = 0 if unchanged else _crawl_issues(rows, reader, etags.until)
        etags.keep()
    return Crawled(
        source=address,
        pulls=pulls,
        issues=issues,
        unchanged=unchanged,
        calls=dict(client.calls),
        calls_one_by_one=pulls + issues,
        waited=round(client.waited, 1),
        seconds=round(time.monotonic() - began, 1),
    )


def _crawl_pulls(rows: OwnRows, reader: Crawl) -> int:
    known = rows.store.scan(Pull, rows.name, columns=["cursor"], **rows.where("pulls"))["cursor"]
    after = known[-1].as_py() if len(known) else None

    def new() -> Iterator[Pull]:
        for number, page in enumerate(reader.pulls(after)):
            if number == 0:
                current().stage("pulls", max(0, page.total - len(known)))
            yield from page.rows
            current().advance(len(page.rows))

    read = append_in_parts(rows, new())
    current().finish(f"{read} read, {len(known)} known")
    return read


def _crawl_issues(rows: OwnRows, reader: Crawl, until: str) -> int:
    """Those linked that are missing, and those updated since the crawl before began (no `until`: it did not end)."""
    wanted: dict[int, None] = {}
    pulls = rows.store.scan(Pull, rows.name, columns=["issues"], **rows.where("pulls"))
    for batch in pulls.to_batches(max_chunksize=2048):
        wanted.update(dict.fromkeys(number for row in batch.to_pylist() for number in linked(row["issues"])))
    known = rows.store.scan(Issue, rows.name, columns=["number", "created_at"], **rows.where("pulls"))
    first = pc.min(known["created_at"]).as_py()
    since = datetime.fromisoformat(until) if until else first and first - _SKEW
    stale = reader.updated_issues(since) if first else set()
    there = set(known["number"].to_pylist()) - stale
    numbers = sorted(wanted.keys() - there)
    current().stage("issues", len(numbers))

    def new() -> Iterator[Issue]:
        for issues in reader.issues(numbers):
            yield from issues
            current().advance(len(issues))

    read = append_in_parts(rows, new())
    current().finish(f"{read} read, {len(there)} known")
    return read


def reconstruct(rows: OwnRows, clone: Path, repository: Repository) -> Crawled:
    """Pull requests from merge and squash commits of the branch, those that are missing in the table.

    Raises:
        InputError, GitFailed: the repository cannot be cloned or read.
    """
    began = time.monotonic()
    with _alone(rows):
        known = rows.store.scan(Pull, rows.name, columns=["number", "merge_sha"], **rows.where("pulls-git"))
        there = set(zip(known["number"].to_pylist(), known["merge_sha"].to_pylist(), strict=True))
        in_git = pulls_in_git(rows, clone, repository, Graph(clone, repository.branch or None))
        new = [row for row in in_git if (row.number, row.merge_sha) not in there]
        current().stage("pulls", len(new))
        append_in_parts(rows, new)
        current().finish(f"{len(new)} read from git, {len(known)} known")
    return Crawled(source="git", pulls=len(new), seconds=round(time.monotonic() - began, 1))


def _alone(rows: OwnRows) -> FileLock:
    """One crawl a repository and home at a time."""
    return FileLock(rows.home.locks / f"pulls-{rows.name}.lock")


def report(
    rows: OwnRows, crawled: Crawled, settings: PullSettings, places: tuple[str, ...], policy: str | None
) -> Report:
    """What the crawl did, and how many pull requests each policy keeps, or the one that was asked for."""
    counts = summary(rows, settings.labels, places)
    facts = {**counts.model_dump(), "run": crawled, "tables": str(rows.home.tables)}
    more = f"{counts.issues} issues read; measurements quoted in {counts.with_results} discussions"
    place = f"Parquet: {rows.home.tables}/pulls/repo={rows.name}/"
    return Report(facts, [_crawl_in_words(crawled), _table(counts, policy), more, place])


def _crawl_in_words(crawled: Crawled) -> str:
    if crawled.unchanged:
        return f"nothing new at {crawled.source} ({crawled.calls.get('not_modified', 0)} answers 'not modified')"
    if not crawled.calls:
        return f"{crawled.pulls} pull requests from {crawled.source} in {crawled.seconds} s"
    made = crawled.calls.get("graphql", 0) + crawled.calls.get("rest", 0)
    text = f"{crawled.pulls} pull requests and {crawled.issues} issues from {crawled.source}: {made} calls"
    if crawled.calls_one_by_one > made:
        text += f", {crawled.calls_one_by_one / made:.0f} times fewer than one each"
    waits = f", {crawled.waited:.0f} s of these for rate limits" if crawled.waited else ""
    return f"{text}, {crawled.calls.get('retried', 0)} retried, in {crawled.seconds} s{waits}"


def _table(counts: Summary, policy: str | None) -> Listing:
    states = ", ".join(f"{count} {state}" for state, count in counts.states.items()) or "none"
    table = Listing(
        ("policy", ">kept", "why the rest were rejected"), f"Pull requests of {counts.repository}: {states}"
    )
    for name, reasons in counts.policies.items():
        if policy in (None, "off", "all", name):
            others = ", ".join(f"{reason} {count}" for reason, count in reasons.items() if reason != "kept")
            table.add(name, str(reasons.get("kept", 0)), others)
    return table
