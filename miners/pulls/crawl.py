"""The crawl of a repository's pull requests and of the issues they are linked with.

Pages come in the order of the last update, each after the cursor of the last row that was kept. So a crawl that
was ended goes on where it stopped, one that is repeated reads what is new, and what is updated meanwhile comes
again at the end: the later row counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from perfquarry.data.errors import GithubFailed
from perfquarry.data.records import Issue, Pull, Stamp
from perfquarry.miners.pulls.client import GitHubClient
from perfquarry.miners.pulls.queries import OF_ISSUE, OF_PULL, PULLS, REVIEW_COMMENTS, Connection, issues_query, rest_of
from perfquarry.miners.pulls.reading import issue_of, nodes, pull_of
from perfquarry.miners.settings import PullSettings

_SMALLEST = 5
"""Pull requests of a page that was made lighter."""
_ISSUES = 50
"""Issues of one query."""


class PullPage(NamedTuple):
    """Rows of one page."""

    rows: list[Pull]
    total: int
    """Pull requests the repository has in all."""


class Newest(NamedTuple):
    """The pull request or issue that was updated last."""

    etag: str
    updated_at: str
    """As GitHub writes it; empty where there is none."""


@dataclass(frozen=True)
class Crawl:
    """Reads one repository."""

    client: GitHubClient
    codebase: str
    """'owner/name'."""
    stamp: Stamp
    settings: PullSettings

    @property
    def _place(self) -> dict[str, Any]:
        owner, _, name = self.codebase.partition("/")
        return {"owner": owner, "name": name}

    def pulls(self, after: str | None = None) -> Iterator[PullPage]:
        """Pages of pull requests updated later than the row with the cursor `after`; of all without one.

        Raises:
            InputError, GithubFailed: see `GitHubClient.query`.
        """
        size, wanted = self.settings.page_size, self.settings.page_size
        while True:
            variables: dict[str, Any] = {**self._place, "size": size, "after": after}
            data = self.client.query(PULLS, variables, partial(_lighten, variables))
            page = data["repository"]["pullRequests"]
            edges = [edge for edge in page["edges"] or [] if edge and edge["node"]]
            codebase = data["repository"]["nameWithOwner"]
            yield PullPage([self._pull(edge, codebase) for edge in edges], page["totalCount"])
            if not page["pageInfo"]["hasNextPage"]:
                return
            if page["pageInfo"]["endCursor"] in (None, after):
                raise GithubFailed(f"GitHub's pages of {self.codebase} do not go on after {after}")
            after = page["pageInfo"]["endCursor"]
            size = min(wanted, 2 * variables["size"])

    def issues(self, numbers: Sequence[int]) -> Iterator[list[Issue]]:
        """Issues by number, some at a time; rejected rows for numbers that stand for none.

        Raises:
            InputError, GithubFailed: see `GitHubClient.query`.
        """
        for start in range(0, len(numbers), _ISSUES):
            asked = list(numbers[start : start + _ISSUES])
            data = self.client.query(issues_query(asked), self._place)
            found = data["repository"]
            yield [self._issue(number, found.get(f"i{number}")) for number in asked]

    def newest(self, path: str, etag: str = "") -> Newest | None:
        """The newest of /pulls or /issues; None where it is what it was when it had the ETag."""
        newest = {"state": "all", "sort": "updated", "direction": "desc", "per_page": 1}
        page = self.client.get(f"/repos/{self.codebase}/{path}", newest, etag)
        return Newest(page.etag, page.value[0]["updated_at"] if page.value else "") if page.modified else None

    def updated_issues(self, since: datetime) -> set[int]:
        """Numbers of issues and pull requests updated since then."""
        numbers: set[int] = set()
        options: dict[str, Any] = {"state": "all", "sort": "updated", "direction": "asc", "per_page": 100}
        options["since"] = since.strftime("%Y-%m-%dT%H:%M:%SZ")
        number, more = 1, True
        while more:
            page = self.client.get(f"/repos/{self.codebase}/issues", {**options, "page": number})
            numbers.update(one["number"] for one in page.value)
            number, more = number + 1, page.more
        return numbers

    def _pull(self, edge: dict[str, Any], codebase: str) -> Pull:
        node = edge["node"]
        cut = self._complete("PullRequest", node, OF_PULL)
        for review in nodes(node, "reviews"):
            cut += self._complete("PullRequestReview", dict(review), (REVIEW_COMMENTS,))
        return pull_of(node, edge["cursor"], codebase, self.stamp, list(dict.fromkeys(cut)))

    def _issue(self, number: int, node: dict[str, Any] | None) -> Issue:
        cut = self._complete(node["__typename"], node, OF_ISSUE) if node else []
        return issue_of(number, node, self.stamp, cut)

    def _complete(self, kind: str, node: dict[str, Any], connections: Sequence[Connection]) -> list[str]:
        """Follows the lists of an object that go on, in place; returns the names of those that are too long."""
        cut = []
        for connection in connections:
            found = node.get(connection.name)
            while found and found["pageInfo"]["hasNextPage"]:
                if len(found["nodes"]) >= self.settings.most:
                    cut.append(connection.name)
                    break
                variables = {"id": node["id"], "after": found["pageInfo"]["endCursor"]}
                answer = self.client.query(rest_of(kind, connection), variables)["node"]
                if not answer:  # deleted meanwhile
                    break
                further = answer[connection.name]
                found["nodes"] += further["nodes"]
                found["pageInfo"] = further["pageInfo"]
        return cut


def _lighten(variables: dict[str, Any]) -> None:
    variables["size"] = max(min(_SMALLEST, variables["size"]), variables["size"] // 2)
