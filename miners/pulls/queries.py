"""The GraphQL queries. A page holds everything of its pull requests that fits; longer lists are followed one by one.

Fields as in GitHub's public schema; a page of 50 asks for some 64,000 nodes of the 500,000 allowed.
"""

from __future__ import annotations

from typing import NamedTuple

_REMARK = "author { login } body createdAt"
_INFO = "pageInfo { hasNextPage endCursor }"
_EVENTS = "CONNECTED_EVENT, DISCONNECTED_EVENT, CROSS_REFERENCED_EVENT, REFERENCED_EVENT"
_SUBJECT = "__typename ... on Issue { number repository { nameWithOwner } }"


class Connection(NamedTuple):
    """A list within an object."""

    name: str
    first: int
    """Asked for within a page."""
    nodes: str
    options: str = ""

    def within(self) -> str:
        """Its selection within a page."""
        return f"{self.name}(first: {self.first}{self.options}) {{ {_INFO} nodes {{ {self.nodes} }} }}"


REVIEW_COMMENTS = Connection("comments", 20, _REMARK)
COMMENTS = Connection("comments", 50, _REMARK)
LABELS = Connection("labels", 20, "name")
OF_PULL = (
    LABELS,
    Connection("commits", 100, "commit { oid messageHeadline }"),
    Connection("files", 100, "path"),
    COMMENTS,
    Connection("reviews", 30, f"id author {{ login }} body state submittedAt {REVIEW_COMMENTS.within()}"),
    Connection("closingIssuesReferences", 20, "number repository { nameWithOwner }"),
    Connection(
        "timelineItems",
        50,
        f"__typename ... on ConnectedEvent {{ subject {{ {_SUBJECT} }} }} "
        f"... on DisconnectedEvent {{ subject {{ {_SUBJECT} }} }} "
        f"... on CrossReferencedEvent {{ source {{ {_SUBJECT} }} }} "
        "... on ReferencedEvent { commit { oid } }",
        f", itemTypes: [{_EVENTS}]",
    ),
)
OF_ISSUE = (LABELS, COMMENTS)

_PULL = (
    "id number title body state isDraft createdAt updatedAt closedAt mergedAt baseRefName baseRefOid headRefName "
    "headRefOid additions deletions author { login } mergeCommit { oid } "
    + " ".join(connection.within() for connection in OF_PULL)
)
_OF_BOTH = "id number title body createdAt updatedAt closedAt author { login } " + " ".join(
    connection.within() for connection in OF_ISSUE
)
_ISSUE = (
    f"fragment issue on Issue {{ issueState: state {_OF_BOTH} }} "
    f"fragment pull on PullRequest {{ pullState: state {_OF_BOTH} }}"
)

PULLS = f"""query($owner: String!, $name: String!, $size: Int!, $after: String) {{
  repository(owner: $owner, name: $name) {{
    nameWithOwner
    pullRequests(first: $size, after: $after, orderBy: {{field: UPDATED_AT, direction: ASC}}) {{
      totalCount {_INFO} edges {{ cursor node {{ {_PULL} }} }}
    }}
  }}
}}"""
"""A page in the order of the last update: what changes while we read comes again at the end."""


def issues_query(numbers: list[int]) -> str:
    """Several issues at once, each under the name 'i' and its number."""
    each = " ".join(
        f"i{number}: issueOrPullRequest(number: {number}) {{ __typename ...issue ...pull }}" for number in numbers
    )
    return f"query($owner: String!, $name: String!) {{ repository(owner: $owner, name: $name) {{ {each} }} }} {_ISSUE}"


def rest_of(kind: str, connection: Connection) -> str:
    """Further nodes of a list of the object with an id; `kind` is its GraphQL type."""
    return (
        "query($id: ID!, $after: String) { node(id: $id) { "
        f"... on {kind} {{ {connection.name}(first: 100, after: $after{connection.options}) "
        f"{{ {_INFO} nodes {{ {connection.nodes} }} }} }} }} }}"
    )
