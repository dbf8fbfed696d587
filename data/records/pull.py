"""Tables `pulls` and `issues`: what a forge, or git alone, knows of pull requests and what they were about."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Literal

from pydantic import Field

from perfquarry.data.records.row import Record, Row

LinkKind = Literal["closing", "connected", "word", "cross_reference", "mention"]
"""closing: GitHub closes it with the pull request; connected: linked by hand; word: 'fixes #12' in a text;
cross_reference: it mentions the pull request; mention: a number in the title or a text. The strongest counts."""
RESOLVING: tuple[LinkKind, ...] = ("closing", "connected", "word")
"""Links that say that the pull request resolves the issue."""
Policy = Literal["off", "all", "merged", "labelled", "sweperf", "swebench"]


class PullCommit(Record):
    """A commit of the pull request's own branch."""

    sha: str
    title: str = ""


class Remark(Record):
    """Something said in a discussion."""

    kind: Literal["comment", "review", "review_comment"]
    author: str = Field(default="", description="Login; empty for deleted accounts.")
    at: datetime | None = None
    body: str = ""
    state: str = Field(default="", description="Reviews: APPROVED, CHANGES_REQUESTED, …")


class Link(Record):
    """An issue or pull request that has to do with it."""

    number: int
    codebase: str = Field(default="", description="'owner/name' where it is another repository's.")
    kind: LinkKind


class QuotedResult(Record):
    """A measurement that somebody quoted, as numbers."""

    form: Literal["asv", "pyperf", "table", "timeit", "prose"]
    name: str = Field(default="", description="Benchmark, test or statement; empty where none is given.")
    before: float | None = Field(default=None, description="Seconds.")
    after: float | None = Field(default=None, description="Seconds.")
    speedup: float | None = Field(default=None, description="before / after; null where one of them is not given.")
    line: str = Field(description="Where it was read.")


class Pull(Row):
    """One pull request. Which of them go on is decided when they are used (`miners.pulls.policies`)."""

    TABLE: ClassVar[str] = "pulls"
    KEY: ClassVar[tuple[str, ...]] = ("number",)

    number: int
    origin: Literal["github", "git"] = Field(description="git: reconstructed from merge and squash commits.")
    title: str
    body: str = ""
    state: Literal["open", "closed", "merged"]
    draft: bool = False
    author: str = Field(default="", description="Login.")
    opened_at: datetime | None = None
    updated_at: datetime | None = None
    closed_at: datetime | None = None
    merged_at: datetime | None = None
    base_ref: str = Field(default="", description="Branch it was opened against.")
    head_ref: str = ""
    base_sha: str = ""
    head_sha: str = Field(default="", description="Last commit of its own branch; empty where git does not know it.")
    merge_sha: str | None = Field(default=None, description="Commit that brought it: merge, squash, last of a rebase.")
    labels: list[str] = Field(default_factory=list)
    commits: list[PullCommit] = Field(default_factory=list)
    files: list[str] = Field(default_factory=list, description="Paths it changes.")
    added: int | None = Field(default=None, description="Lines.")
    deleted: int | None = Field(default=None, description="Lines.")
    remarks: list[Remark] = Field(default_factory=list, description="Comments, reviews and their comments, by time.")
    issues: list[Link] = Field(default_factory=list, description="Each once, with the strongest kind of link.")
    linked_commits: list[str] = Field(default_factory=list, description="Ids of commits that refer to it or are named.")
    results: list[QuotedResult] = Field(default_factory=list, description="Measurements quoted in body and remarks.")
    cut: list[str] = Field(default_factory=list, description="Lists read only up to the limit: 'files', 'comments', …")
    cursor: str | None = Field(default=None, description="GitHub's cursor of the row: a crawl goes on after the last.")


class Issue(Row):
    """One issue that a pull request is linked with; rejected when the number stands for none."""

    TABLE: ClassVar[str] = "issues"
    KEY: ClassVar[tuple[str, ...]] = ("number",)

    number: int
    is_pull: bool = False
    title: str = ""
    body: str = ""
    state: str = Field(default="", description="open, closed or merged.")
    author: str = Field(default="", description="Login.")
    opened_at: datetime | None = None
    updated_at: datetime | None = None
    closed_at: datetime | None = None
    labels: list[str] = Field(default_factory=list)
    remarks: list[Remark] = Field(default_factory=list)
    results: list[QuotedResult] = Field(default_factory=list)
    cut: list[str] = Field(default_factory=list)
