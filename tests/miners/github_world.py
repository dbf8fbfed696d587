"""A repository as GitHub's APIs see it: pull requests and issues by number, made when they are asked for."""

from __future__ import annotations

import hashlib
from bisect import bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

_BEGIN = datetime(2015, 1, 1, tzinfo=UTC)
_ZERO = {"labels": [], "comments": []}
Place = tuple[str, int]


def oid(*parts: object) -> str:
    return hashlib.sha1(repr(parts).encode()).hexdigest()


def moment(minutes: int) -> str:
    return (_BEGIN + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")


def user(login: str) -> dict[str, Any]:
    return {"__typename": "User", "login": login}


def said(body: str, number: int = 0, login: str = "ann") -> dict[str, Any]:
    return {"author": user(login), "body": body, "createdAt": moment(number)}


@dataclass
class World:
    """`count` ordinary pull requests, numbered from 1; `pulls` and `issues` stand beside them or in place of them.

    Every third pull request resolves an issue, of numbers beyond `count`.
    """

    count: int = 0
    codebase: str = "owner/name"
    pulls: dict[int, dict[str, Any]] = field(default_factory=dict)
    issues: dict[int, dict[str, Any]] = field(default_factory=dict)
    _updated: dict[int, str] = field(default_factory=dict)
    _order: list[Place] = field(default_factory=list)

    def __post_init__(self) -> None:
        for number in dict.fromkeys([*range(1, self.count + 1), *self.pulls]):
            self._updated[number] = self.pulls.get(number, {}).get("updatedAt", moment(number))
        self._order = sorted((at, number) for number, at in self._updated.items())

    def touch(self, number: int, **changes: Any) -> None:
        """The pull request changes now."""
        self._order.remove((self._updated[number], number))
        latest = max([at for at, _ in self._order[-1:]] + [moment(self.count)])
        self._updated[number] = (datetime.fromisoformat(latest) + timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.pulls[number] = {**self.pulls.get(number, {}), **changes}
        insort(self._order, (self._updated[number], number))

    def repository(self) -> dict[str, Any]:
        return {"nameWithOwner": self.codebase}

    def numbers(self) -> list[int]:
        return sorted(self._updated)

    def after(self, place: Place | None, size: int) -> list[Place]:
        start = bisect_right(self._order, place) if place else 0
        return self._order[start : start + size]

    def newest(self) -> list[tuple[str, int]]:
        """Pull requests and issues, the latest update first."""
        issues = [(one.get("updatedAt", moment(0)), number) for number, one in self.issues.items()]
        return sorted([*self._order, *issues], reverse=True)

    def last_place(self) -> Place | None:
        return self._order[-1] if self._order else None

    def pull(self, number: int) -> dict[str, Any] | None:
        if number not in self._updated:
            return None
        issue = self.count + number
        ordinary = number <= self.count and number % 3 == 0
        node: dict[str, Any] = {
            "__typename": "PullRequest", "id": f"PR_{number}", "number": number, "title": f"Change {number}",
            "body": f"Does something.\n\nFixes #{issue}" if ordinary else "Does something.",
            "state": "MERGED" if number % 4 else "CLOSED", "isDraft": False, "author": user(f"user{number % 50}"),
            "createdAt": moment(number - 1), "closedAt": moment(number), "baseRefName": "main",
            "mergedAt": moment(number) if number % 4 else None, "baseRefOid": oid("base", number),
            "headRefName": f"topic-{number}", "headRefOid": oid("head", number), "additions": 3, "deletions": 1,
            "mergeCommit": {"oid": oid("merge", number), "messageHeadline": "m"} if number % 4 else None,
            "labels": [{"name": "performance"}] if number % 10 == 0 else [],
            "commits": [{"commit": {"oid": oid("head", number), "messageHeadline": f"Change {number}"}}],
            "files": [{"path": "pkg/core.py"}, {"path": "tests/test_core.py"}],
            "comments": [said(f"before: 12.0 ms -> 3.0 ms ({number})", number)] if number % 5 == 0 else [],
            "reviews": [self.review(number)] if number % 7 == 0 else [],
            "closingIssuesReferences": [issue] if ordinary else [],
            "timelineItems": [],
        }  # fmt: skip
        node |= self.pulls.get(number, {})
        node |= {"updatedAt": self._updated[number], "repository": self.repository()}
        node["closingIssuesReferences"] = list(self._subjects(node["closingIssuesReferences"]))
        return node

    @staticmethod
    def review(number: int, comments: int = 1) -> dict[str, Any]:
        return {
            "__typename": "PullRequestReview", "id": f"PRR_{number}", "author": user("bob"), "body": "Looks good.",
            "state": "APPROVED", "submittedAt": moment(number), "comments": [said("nit", number)] * comments,
        }  # fmt: skip

    def issue(self, number: int) -> dict[str, Any] | None:
        made = self.count < number <= 2 * self.count and (number - self.count) % 3 == 0
        if not made and number not in self.issues:
            return None
        node = {
            "__typename": "Issue", "id": f"I_{number}", "number": number, "title": f"Issue {number}",
            "body": "It is slow.", "state": "CLOSED", "author": None, "createdAt": moment(0), "updatedAt": moment(0),
            "closedAt": None, "repository": self.repository(), **_ZERO,
        }  # fmt: skip
        return node | self.issues.get(number, {})

    def subject(self, number: int) -> dict[str, Any] | None:
        return self.issue(number) or self.pull(number)

    def by_id(self, name: str) -> dict[str, Any] | None:
        kind, _, number = name.partition("_")
        if kind == "PRR":
            pull = self.pull(int(number))
            return next((one for one in pull["reviews"] if one["id"] == name), None) if pull else None
        return self.pull(int(number)) if kind == "PR" else self.issue(int(number))

    def _subjects(self, numbers: list[Any]) -> Iterator[dict[str, Any]]:
        for number in numbers:
            yield self.subject(number) or {} if isinstance(number, int) else number
