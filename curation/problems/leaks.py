"""What of a fix a text contains: its vocabulary, its lines, its number."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from perfquarry.data.records import Task

_WORD = re.compile(r"[^\W\d]\w{2,}")
_HASH = re.compile(r"\b[0-9a-f]{7,40}\b")
_PULL = re.compile(r"(?i)(?:#|\bGH-|\bpull(?:\s+request|/)?\s*#?|\bPR\s*#?|/(?:pull|issues)/)(\d+)\b")
_SHINGLE = 6
"""Words of the commit's message in a row that are no accident."""
_TITLE_WORDS = 4


@dataclass(frozen=True)
class Fix:
    """What a text must not contain."""

    head_sha: str = ""
    title: str = ""
    message: str = ""
    numbers: frozenset[int] = frozenset()
    """Of its pull request and its issues."""
    identifiers: frozenset[str] = frozenset()
    """That only the head has."""
    literals: frozenset[str] = frozenset()
    lines: frozenset[str] = frozenset()
    """That only the head has, with single spaces."""

    @classmethod
    def of(
        cls, task: Task, identifiers: Collection[str] = (), literals: Collection[str] = (), lines: Collection[str] = ()
    ) -> Fix:
        """The fix of a task, with what only its head says (`miners.vocabulary.only_at_head`)."""
        numbers = frozenset([*task.issues, *([task.pull_number] if task.pull_number else [])])
        words = frozenset(identifiers), frozenset(literals), frozenset(lines)
        return cls(task.head_sha, task.title, task.message, numbers, *words)

    def leaks_in(self, text: str, exempt: Collection[str] = ()) -> list[str]:
        """What of the fix the text contains, in words; `exempt` are words that say nothing (of our own templates)."""
        words = set(_WORD.findall(text))
        found = [f"identifier {word}" for word in sorted(words & self.identifiers) if word not in exempt]
        found += [f"literal {one!r}" for one in sorted(self.literals) if _bounded(one, text) and one not in exempt]
        flat = "\n".join(" ".join(line.split()) for line in text.splitlines())
        found += [f"line of the patch: {line[:120]}" for line in sorted(self.lines) if line in flat]
        if self.head_sha:
            found += [f"commit {one}" for one in _HASH.findall(text.lower()) if self.head_sha.startswith(one)]
        found += [f"number #{number}" for number in map(int, _PULL.findall(text)) if number in self.numbers]
        return [*found, *self._message_in(text)]

    def _message_in(self, text: str) -> list[str]:
        spoken = f" {' '.join(_plain(text))} "
        title = _plain(self.title)
        if len(title) >= _TITLE_WORDS and f" {' '.join(title)} " in spoken:
            return [f"title of the commit: {self.title[:120]}"]
        words = _plain(self.message)
        for at in range(len(words) - _SHINGLE + 1):
            shingle = " ".join(words[at : at + _SHINGLE])
            if f" {shingle} " in spoken:
                return [f"words of the commit's message: {shingle}"]
        return []


def _bounded(literal: str, text: str) -> bool:
    """Whether a literal stands in a text by itself, not as a part of a longer word or number."""
    return literal in text and re.search(rf"(?<![\w.]){re.escape(literal)}(?!\w|\.\d)", text) is not None


def _plain(text: str) -> list[str]:
    return [word.lower() for word in re.findall(r"\w+", text)]
