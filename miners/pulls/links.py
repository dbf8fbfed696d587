"""Issues and commits that texts refer to."""

from __future__ import annotations

import re
from collections.abc import Iterable

from perfquarry.data.records import Link, LinkKind
from perfquarry.miners.references import issue_numbers

_CLOSES = re.compile(
    r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)\s*:?\s+"
    r"(?:(?P<codebase>[\w.-]+/[\w.-]+)?(?:#|\bgh-)|https?://[\w.-]+/(?P<url>[\w.-]+/[\w.-]+)/issues/)"
    r"(?P<number>[1-9]\d{0,6})\b",
    re.I,
)
"""GitHub's own words: https://docs.github.com/en/issues/tracking-your-work-with-issues/using-issues/linking-a-pull-request-to-an-issue"""
_ADDRESS = re.compile(r"https?://[\w.-]+/([\w.-]+/[\w.-]+)/issues/\d+")
_COMMIT = re.compile(r"/commit/([0-9a-f]{7,40})\b|(?<![\w/#-])([0-9a-f]{40})\b")
_ORDER: tuple[LinkKind, ...] = ("closing", "connected", "word", "cross_reference", "mention")


def closing_words(text: str, codebase: str) -> list[Link]:
    """Issues that a text says it closes."""
    found = []
    for match in _CLOSES.finditer(text):
        other = match["codebase"] or match["url"] or ""
        foreign = other if other.lower() != codebase.lower() else ""
        found.append(Link(number=int(match["number"]), codebase=foreign, kind="word"))
    return found


def mentions(text: str, own: int, codebase: str) -> list[Link]:
    """Numbers of the repository's issues and pull requests that a text refers to."""
    home = _ADDRESS.sub(lambda found: found[0] if found[1].lower() == codebase.lower() else "", text)
    return [Link(number=number, kind="mention") for number in issue_numbers(home, own)]


def strongest(links: Iterable[Link]) -> list[Link]:
    """Each issue once, with the strongest kind of link, in the order of the kinds."""
    found: dict[tuple[str, int], Link] = {}
    for link in sorted(links, key=lambda link: _ORDER.index(link.kind)):
        found.setdefault((link.codebase, link.number), link)
    return list(found.values())


def commits_in(text: str) -> list[str]:
    """Ids of commits that a text names by link or in full."""
    return list(dict.fromkeys(linked or full for linked, full in _COMMIT.findall(text)))
