"""What was said of a change: its pull request, the issues it is about, the discussion, measurements, release notes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfquarry.data.records import Change, Issue, Pull, QuotedResult, Remark
from perfquarry.llm.fences import Piece
from perfquarry.miners.pulls.notes import ReleaseNotes
from perfquarry.miners.pulls.policies import linked
from perfquarry.miners.pulls.results import quoted_results

_BOTS = ("[bot]", "-bot", "codecov", "coveralls")
_HIDDEN = re.compile(r"<!--.*?-->", re.S)
"""Instructions of templates, which nobody sees."""
_SHORTEST = 20
"""Characters of a remark that says something."""
_ISSUES = 5
_COMMITS = 20


@dataclass(frozen=True)
class Discussion:
    """Texts of strangers, in pieces that make sense alone; to be cut and fenced."""

    pull: list[Piece]
    issues: list[Piece]
    remarks: list[Piece]
    results: list[Piece]
    notes: list[Piece]


@dataclass(frozen=True)
class Discussions:
    """Looks up what was said of changes."""

    pull: Callable[[int], Pull | None]
    """The row of a pull request by number."""
    issue: Callable[[int], Issue | None]
    by_pull: Mapping[int, Sequence[QuotedResult]]
    """By pull request, the measurements quoted in it."""
    notes: ReleaseNotes
    titles: Callable[[Sequence[str]], list[str]]
    """Ids and titles of commits by id, of those that are there."""

    def results(self, change: Change) -> Sequence[QuotedResult]:
        """Measurements quoted in the discussion of the change's pull request."""
        return self.by_pull.get(change.pull_number, ()) if change.pull_number else ()

    def of(self, change: Change) -> Discussion | None:
        """What was said of a change; None where nothing is known."""
        pull = self.pull(change.pull_number) if change.pull_number else None
        numbers = dict.fromkeys([*(linked([one.model_dump() for one in pull.issues]) if pull else ()), *change.issues])
        found = (self.issue(number) for number in list(numbers)[:_ISSUES])
        issues = [issue for issue in found if issue is not None and issue.status == "kept"]
        notes = self.notes.about([*filter(None, [change.pull_number]), *(issue.number for issue in issues)])
        if pull is None and not issues and not notes:
            return None
        results = [*(pull.results if pull else ()), *(one for issue in issues for one in issue.results)]
        return Discussion(
            pull=[*_about(pull), *self._commits(pull)] if pull else [],
            issues=[piece for issue in issues for piece in _issue(issue)],
            remarks=list(_remarks(pull.remarks)) if pull else [],
            results=[Piece(_measured(one), one.speedup or 0.0, one.name) for one in results],
            notes=[Piece(note, -at, "") for at, note in enumerate(notes)],
        )

    def _commits(self, pull: Pull) -> list[Piece]:
        """Its own by title, and those that it is linked with."""
        own = [commit.title for commit in pull.commits[:_COMMITS]]
        others = self.titles(pull.linked_commits[:_COMMITS])
        groups = [("Commits", own if len(own) > 1 else []), ("Linked commits", others)]
        return [Piece("\n".join([f"{name}:", *titles]), -1.5, name) for name, titles in groups if titles]


def _about(pull: Pull) -> list[Piece]:
    head = [pull.title, f"[labels: {', '.join(pull.labels)}]" if pull.labels else ""]
    return [Piece("\n".join(filter(None, head)), 1.0, ""), *_paragraphs(pull.body)]


def _issue(issue: Issue) -> list[Piece]:
    title = Piece(f"Issue {issue.number}: {issue.title}", 1.0, "")
    return [title, *_paragraphs(issue.body), *_remarks(issue.remarks)]


def _paragraphs(text: str) -> Iterator[Piece]:
    """Those at the front say most, those with measurements as much."""
    plain = _HIDDEN.sub("", text.replace("\r\n", "\n"))
    for at, part in enumerate(part for part in plain.split("\n\n") if part.strip()):
        yield Piece(part.strip(), 0.9 if quoted_results(part) else -at, "")


def _remarks(remarks: Sequence[Remark]) -> Iterator[Piece]:
    for at, remark in enumerate(remarks):
        body = remark.body.strip()
        if len(body) >= _SHORTEST and not any(mark in remark.author.lower() for mark in _BOTS):
            yield Piece(f"{remark.author or 'somebody'}: {body}", 0.9 if quoted_results(body) else -at, "")


def _measured(one: QuotedResult) -> str:
    sides = " -> ".join(f"{side:.3g} s" for side in (one.before, one.after) if side is not None)
    factor = f"{one.speedup:.2f} times faster" if one.speedup else ""
    return f"{one.name or one.form}: {'; '.join(filter(None, (sides, factor)))}"
