"""Lines of a tree's change log that mention pull requests or issues."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from perfquarry.data.errors import GitFailed
from perfquarry.miners.blobs import contents_of, tree_files
from perfquarry.miners.diff import text

_FILE = re.compile(
    r"(?:.*/)?(?:change[-_]?(?:log|s)|history|news|releases?|what'?s?[-_]?new|release[-_]?notes?)(?:[-_.v\d]*)"
    r"(?:\.(?:md|rst|txt))?|(?:.*/)?(?:changes|release|releases|whatsnew|whats_new|news|newsfragments|release_notes|"
    r"changelog(?:\.d)?|upcoming_changes)/[^/]+\.(?:md|rst|txt)",
    re.I,
)
_LARGEST = 4 * 1024 * 1024
_NUMBER = re.compile(
    r"(?:(?<![\w&])#|\bgh-|:(?:issue|pr|pull|ghpull|gh|bug):`|/(?:pull|issues)/)([1-9]\d{0,6})\b", re.I
)
_FRAGMENT = re.compile(r"([1-9]\d{0,6})\.[\w.]+")
_LONGEST = 400


class ReleaseNotes:
    """The change log at HEAD, read once, when it is first asked for."""

    def __init__(self, clone: Path) -> None:
        self._clone = clone

    def about(self, numbers: Iterable[int]) -> list[str]:
        """Items that mention one of the numbers, each once."""
        return list(dict.fromkeys(item for number in numbers for item in self._by_number.get(number, ())))

    @cached_property
    def _by_number(self) -> dict[int, list[str]]:
        found: dict[int, list[str]] = defaultdict(list)
        for path, content in self._files():
            fragment = _FRAGMENT.fullmatch(path.rpartition("/")[2])
            if fragment:  # towncrier's: the file's name is the number
                found[int(fragment[1])].append(" ".join(content.split())[:_LONGEST])
                continue
            for item in _items(content):
                for number in dict.fromkeys(map(int, _NUMBER.findall(item))):
                    found[number].append(item[:_LONGEST])
        return found

    def _files(self) -> list[tuple[str, str]]:
        try:
            files = [one for one in tree_files(self._clone, "HEAD") if one.size <= _LARGEST]
        except GitFailed:  # objects are missing: no notes
            return []
        contents = contents_of(self._clone, [one for one in files if _FILE.fullmatch(one.path)])
        return [(path, text(content)) for path, content in sorted(contents.items())]


def _items(content: str) -> list[str]:
    """Items of lists and paragraphs, each as one line."""
    items: list[list[str]] = []
    for line in content.splitlines():
        stripped = line.strip()
        begins = re.match(r"\s*(?:[-*+•]|\d+[.)])\s", line) is not None
        if not stripped:
            items.append([])
        elif begins or not items:
            items.append([stripped])
        else:
            items[-1].append(stripped)
    return [" ".join(item) for item in items if item]
