"""GitHub's nodes as rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Literal

from perfquarry.data.records import Issue, Link, Pull, PullCommit, Reason, Remark, Stamp
from perfquarry.miners.pulls.links import closing_words, commits_in, mentions, strongest
from perfquarry.miners.pulls.results import quoted_results

Node = Mapping[str, Any]


def pull_of(node: Node, cursor: str, codebase: str, stamp: Stamp, cut: list[str]) -> Pull:
    """The row of a pull request whose lists are complete."""
    remarks = sorted(_remarks(node), key=lambda remark: remark.at.timestamp() if remark.at else 0.0)
    body = _clean(node["body"])
    text = "\n".join([body, *(remark.body for remark in remarks)])
    return Pull(
        **stamp.fields(),
        number=node["number"],
        origin="github",
        title=_clean(node["title"]),
        body=body,
        state=node["state"].lower(),
        draft=node["isDraft"],
        author=_login(node),
        opened_at=_time(node["createdAt"]),
        updated_at=_time(node["updatedAt"]),
        closed_at=_time(node["closedAt"]),
        merged_at=_time(node["mergedAt"]),
        base_ref=_clean(node["baseRefName"]),
        head_ref=_clean(node["headRefName"]),
        base_sha=node["baseRefOid"],
        head_sha=node["headRefOid"],
        merge_sha=(node["mergeCommit"] or {}).get("oid"),
        labels=[_clean(label["name"]) for label in nodes(node, "labels")],
        commits=[
            PullCommit(sha=one["commit"]["oid"], title=_clean(one["commit"]["messageHeadline"]))
            for one in nodes(node, "commits")
        ],
        files=[_clean(one["path"]) for one in nodes(node, "files")],
        added=node["additions"],
        deleted=node["deletions"],
        remarks=remarks,
        issues=_issues(node, body, codebase),
        linked_commits=list(dict.fromkeys([*_referring(node), *commits_in(text)])),
        results=quoted_results(text),
        cut=cut,
        cursor=cursor,
    )


def issue_of(number: int, node: Node | None, stamp: Stamp, cut: list[str]) -> Issue:
    """The row of an issue or pull request; a rejected one where there is none of that number."""
    if node is None:
        reason = Reason.NO_SUCH_ISSUE.value
        return Issue(**stamp.fields(), number=number, status="rejected", reason=reason)
    body = _clean(node["body"])
    remarks = list(_remarks(node))
    return Issue(
        **stamp.fields(),
        number=number,
        is_pull=node["__typename"] == "PullRequest",
        title=_clean(node["title"]),
        body=body,
        state=str(node.get("issueState") or node.get("pullState") or "").lower(),
        author=_login(node),
        opened_at=_time(node["createdAt"]),
        updated_at=_time(node["updatedAt"]),
        closed_at=_time(node["closedAt"]),
        labels=[_clean(label["name"]) for label in nodes(node, "labels")],
        remarks=remarks,
        results=quoted_results("\n".join([body, *(remark.body for remark in remarks)])),
        cut=cut,
    )


def nodes(node: Node, name: str) -> list[Node]:
    """The nodes of a list of an object: without those GitHub hides, none where the list itself is null."""
    return [one for one in (node.get(name) or {}).get("nodes") or [] if one is not None]


def _remarks(node: Node) -> Iterator[Remark]:
    for comment in nodes(node, "comments"):
        yield _remark("comment", comment)
    for review in nodes(node, "reviews"):
        state, body = str(review["state"]), _clean(review["body"])
        if body or state != "COMMENTED":
            at = _time(review["submittedAt"])
            yield Remark(kind="review", author=_login(review), at=at, body=body, state=state)
        for comment in nodes(review, "comments"):
            yield _remark("review_comment", comment)


def _remark(kind: Literal["comment", "review_comment"], node: Node) -> Remark:
    return Remark(kind=kind, author=_login(node), at=_time(node["createdAt"]), body=_clean(node["body"]))


def _issues(node: Node, body: str, codebase: str) -> list[Link]:
    closing = [_link(one, codebase, "closing") for one in nodes(node, "closingIssuesReferences")]
    connected: dict[tuple[str, int], Link] = {}
    crossing = []
    for event in nodes(node, "timelineItems"):
        other = event.get("subject") or event.get("source") or {}
        if other.get("__typename") != "Issue":
            continue
        if event["__typename"] == "CrossReferencedEvent":
            crossing.append(_link(other, codebase, "cross_reference"))
        else:
            link = _link(other, codebase, "connected")
            connected.pop((link.codebase, link.number), None)
            if event["__typename"] == "ConnectedEvent":
                connected[link.codebase, link.number] = link
    headlines = [str(one["commit"]["messageHeadline"]) for one in nodes(node, "commits")]
    words = closing_words("\n".join([body, *headlines]), codebase)
    mentioned = mentions(f"{node['title']}\n{body}", node["number"], codebase)
    found = strongest([*closing, *connected.values(), *words, *crossing, *mentioned])
    return [link for link in found if link.codebase or link.number != node["number"]]


def _link(node: Node, codebase: str, kind: Literal["closing", "connected", "cross_reference"]) -> Link:
    other = str(node["repository"]["nameWithOwner"])
    return Link(number=node["number"], codebase="" if other.lower() == codebase.lower() else other, kind=kind)


def _referring(node: Node) -> Iterable[str]:
    events = (one for one in nodes(node, "timelineItems") if one["__typename"] == "ReferencedEvent")
    return [event["commit"]["oid"] for event in events if event["commit"]]


def _login(node: Node) -> str:
    return str((node.get("author") or {}).get("login", ""))


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _clean(text: str | None) -> str:
    """Text that a table can hold: JSON can carry lone surrogates."""
    return (text or "").encode("utf-8", "backslashreplace").decode()
