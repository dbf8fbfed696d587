"""Pull requests into the tables: from GitHub, or as far as git alone knows them."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow.compute as pc
from filelock import FileLock
from pydantic import Field

from perfquarry.data.errors import InputError
from perfquarry.data.files import write_whole
from perfquarry.data.records import Issue, Policy, Pull, Record
from perfquarry.flows.display import current
from perfquarry.flows.joining import from_git, graph_of, plain_pulls
from perfquarry.flows.run import Run
from perfquarry.flows.stages import append_in_parts
from perfquarry.miners.pulls.client import GitHubClient
from perfquarry.miners.pulls.crawl import Crawl, Newest
from perfquarry.miners.pulls.identities import base_url_of, identities
from perfquarry.miners.pulls.policies import COLUMNS, POLICIES, linked, rejection

_CODEBASE = re.compile(r"[\w.-]+/[\w.-]+")
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


def crawl(run: Run) -> Crawled:
    """Reads what is new on GitHub: pull requests, then the issues they are linked with.

    Raises:
        InputError: the repository is not on GitHub, there is no key, or every key is refused.
        GithubFailed: GitHub fails or refuses; what was read is kept.
    """
    began = time.monotonic()
    settings = run.options.settings.pulls
    codebase, host = _codebase(run)
    address = base_url_of(settings, host)
    client = GitHubClient(identities(settings, address, codebase), settings, current().note)
    reader = Crawl(client, codebase, run.stamp("pulls"), settings)
    with _alone(run):
        current().stage("github", None)
        etags = _Etags(run)
        unchanged = etags.ask(reader)
        current().finish("nothing is new" if unchanged else f"there is something new at {address}")
        pulls = 0 if unchanged else _crawl_pulls(run, reader)
        issues = 0 if unchanged else _crawl_issues(run, reader, etags.until)
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


def _crawl_pulls(run: Run, reader: Crawl) -> int:
    known = run.store.scan(Pull, run.name, columns=["cursor"], **run.where("pulls"))["cursor"]
    after = known[-1].as_py() if len(known) else None
    read = 0

    def rows() -> Iterator[Pull]:
        nonlocal read
        for page in reader.pulls(after):
            if read == 0:
                current().stage("pulls", max(0, page.total - len(known)))
            for pull in page.rows:
                yield pull
                read += 1
            current().advance(len(page.rows))

    append_in_parts(run, rows())
    current().finish(f"{read} read, {len(known)} known")
    return read


def _crawl_issues(run: Run, reader: Crawl, until: str) -> int:
    """Those linked that are missing, and those updated since the crawl before began (no `until`: it did not end)."""
    wanted: dict[int, None] = {}
    pulls = run.store.scan(Pull, run.name, columns=["issues"], **run.where("pulls"))
    for batch in pulls.to_batches(max_chunksize=2048):
        wanted.update(dict.fromkeys(number for row in batch.to_pylist() for number in linked(row["issues"])))
    known = run.store.scan(Issue, run.name, columns=["number", "created_at"], **run.where("pulls"))
    first = pc.min(known["created_at"]).as_py()
    since = datetime.fromisoformat(until) if until else first and first - _SKEW
    stale = reader.updated_issues(since) if first else set()
    there = set(known["number"].to_pylist()) - stale
    numbers = sorted(wanted.keys() - there)
    current().stage("issues", len(numbers))
    read = 0

    def rows() -> Iterator[Issue]:
        nonlocal read
        for issues in reader.issues(numbers):
            yield from issues
            read += len(issues)
            current().advance(len(issues))

    append_in_parts(run, rows())
    current().finish(f"{read} read, {len(there)} known")
    return read


class _Etags:
    """The newest pull request and issue when the last crawl that came to its end began."""

    def __init__(self, run: Run) -> None:
        self._file = run.home.cache / "github" / f"{run.name}-{run.hashes['pulls']}.json"
        self._noted: dict[str, Newest] = {}
        if run.store.count(Pull, run.name, **run.where("pulls")):  # else there is nothing that could be unchanged
            with suppress(OSError, ValueError, TypeError):
                self._noted = {path: Newest(*one) for path, one in json.loads(self._file.read_text()).items()}
        self.until = self._noted["issues"].updated_at if "issues" in self._noted else ""

    def ask(self, reader: Crawl) -> bool:
        """Whether nothing changed, by the ETags: free of quota as long as that is so."""
        changed = False
        for path in ("pulls", "issues"):
            newest = reader.newest(path, self._noted[path].etag if path in self._noted else "")
            if newest is not None:
                self._noted[path], changed = newest, True
        return not changed

    def keep(self) -> None:
        """Notes them: everything up to them is in the tables."""
        write_whole(self._file, json.dumps(self._noted))


def _alone(run: Run) -> FileLock:
    """One crawl a repository and home at a time."""
    return FileLock(run.home.locks / f"pulls-{run.name}.lock")


def _codebase(run: Run) -> tuple[str, str]:
    """'owner/name' and the host of its forge."""
    address = run.options.source or run.repository.url
    host = urlsplit(address).hostname or "" if "://" in address else address.partition("@")[2].partition(":")[0]
    codebase = run.options.settings.pulls.codebase or run.repository.codebase
    if not _CODEBASE.fullmatch(codebase):
        raise InputError(
            f"{run.name} names no owner on GitHub: set codebase = 'owner/name' under [pulls] in the settings, "
            "or use --offline"
        )
    local = Path(address).exists() or host in ("", "localhost")
    return codebase, "" if local else host


class Summary(Record):
    """What the table holds."""

    repository: str
    states: dict[str, int]
    origins: dict[str, int]
    issues: int = Field(description="Issues read.")
    with_results: int = Field(description="Pull requests in whose discussion a measurement is quoted.")
    policies: dict[str, dict[str, int]] = Field(description="By policy: 'kept', and the others by reason.")


def summary(run: Run) -> Summary:
    """Counts over the newest row of each pull request: GitHub's before git's."""
    labels = run.options.settings.pulls.labels
    states: Counter[str] = Counter()
    origins: Counter[str] = Counter()
    policies: dict[Policy, Counter[str]] = {policy: Counter() for policy in POLICIES if policy not in ("off", "all")}
    measured = 0
    for row in plain_pulls(run, (*COLUMNS, "origin", "results")):
        states[row["state"]] += 1
        origins[row["origin"]] += 1
        measured += bool(row["results"])
        for policy, counts in policies.items():
            counts[str(rejection(row, policy, labels, run.places) or "kept")] += 1
    return Summary(
        repository=run.name,
        states=dict(states.most_common()),
        origins=dict(origins),
        issues=run.store.count(Issue, run.name, where=pc.field("status") == "kept", **run.where("pulls")),
        with_results=measured,
        policies={policy: dict(counts.most_common()) for policy, counts in policies.items()},
    )


def reconstruct(run: Run) -> Crawled:
    """Pull requests from merge and squash commits of the branch, those that are missing in the table.

    Raises:
        InputError, GitFailed: the repository cannot be cloned or read.
    """
    began = time.monotonic()
    with _alone(run):
        known = run.store.scan(Pull, run.name, columns=["number", "merge_sha"], **run.where("pulls-git"))
        there = set(zip(known["number"].to_pylist(), known["merge_sha"].to_pylist(), strict=True))
        rows = [row for row in from_git(run, graph_of(run)) if (row.number, row.merge_sha) not in there]
        current().stage("pulls", len(rows))
        append_in_parts(run, rows)
        current().finish(f"{len(rows)} read from git, {len(known)} known")
    return Crawled(source="git", pulls=len(rows), seconds=round(time.monotonic() - began, 1))
