"""Numbers of pull requests and issues in commit messages."""

from __future__ import annotations

import re

_MERGE = re.compile(r"Merge (?:pull request|PR) #(\d{1,7})\b", re.I)
_SQUASH = re.compile(r"\((?:#|GH-)(\d{1,7})\)\s*$", re.I)
_NUMBER = re.compile(
    r"(?<![\w/&#.-])(?P<mark>gh-|#)(?P<number>[1-9]\d{0,6})(?![\w#])|/issues/(?P<url>[1-9]\d{0,6})\b", re.I
)
_REFERS = re.compile(r"(?:fix(?:e[sd])?|close[sd]?|resolve[sd]?|see|issues?|bugs?|tickets?|gh|pr)[\s:]*$", re.I)
_COLOUR = re.compile(r"colou?r|background|rgb|\bhex\b|css|\bfill|stroke", re.I)


def squash_number(title: str) -> int | None:
    """The number of a squash-merged pull request: '(#12)' at the end of the title."""
    found = _SQUASH.search(title)
    return int(found.group(1)) if found else None


def pull_number(title: str) -> int | None:
    """The pull request a commit belongs to: a merge's 'Merge pull request #12' or a squash's '(#12)'."""
    found = _MERGE.match(title)
    return int(found.group(1)) if found else squash_number(title)


def issue_numbers(message: str, pull: int | None = None) -> list[int]:
    """Numbers a message refers to, in order of appearance, without the pull request itself.

    '#12', 'gh-12', 'GH-12' and '…/issues/12' count. Numbers of other repositories ('owner/name#12') and
    colours do not: six digits after '#' without a word such as 'fixes', or a line that speaks of colours.
    """
    if "#" not in message and "h-" not in message and "H-" not in message and "/issues/" not in message:
        return []
    numbers: dict[int, None] = {}
    for found in _NUMBER.finditer(message):
        number = int(found["url"] or found["number"])
        if number != pull and not _is_colour(message, found):
            numbers[number] = None
    return list(numbers)


def _is_colour(message: str, found: re.Match[str]) -> bool:
    digits = found["number"]
    if (
        found["mark"] != "#"
        or len(digits) not in (3, 6)
        or _REFERS.search(message[max(0, found.start() - 20) : found.start()])
    ):
        return False
    line = message[message.rfind("\n", 0, found.start()) + 1 : found.start()]
    return len(digits) == 6 or bool(_COLOUR.search(line))
