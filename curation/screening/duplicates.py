"""One task a change: which tasks are the same improvement, which of them stays, and why.

Of two tasks that are strongly related one stays: equal patches (git's patch id), a merge and its
commits, cherry-picks and backports, re-landings, patches that share most of their lines. Tasks that
only touch the same functions within a window of time are noted. So are changes that are no tasks:
the same patch elsewhere in the history, and later reverts.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import combinations
from typing import NamedTuple

from perfquarry.curation.patch import changed_lines
from perfquarry.curation.screening.found import FoundProblem
from perfquarry.curation.settings import ScreenSettings
from perfquarry.data.records import Task

_CHERRY = re.compile(r"(?i)\(cherry[- ]picked from commit ([0-9a-f]{7,40})\)")
_BACKPORT = re.compile(r"(?i)\bbackport(?:s|ed|ing)?\b[^\n#]{0,40}#(\d+)")
_REVERTS = re.compile(r"(?i)\bthis reverts commit ([0-9a-f]{7,40})")
_UNDO = re.compile(r"(?i)^\s*(?:revert(?:ed|ing|s)?\b[:\s]*(?:of\s)?)[\"'“]?\s*")
_AGAIN = re.compile(r"(?i)^\s*(?:re-?(?:apply|land|instate|introduce)\b(?:ing)?[:\s]*)[\"'“]?\s*")
_DECORATION = re.compile(r"^\s*\[[\w.\- ]+\]\s*|\s*\(#\d+\)|\s*\(backport[^)]*\)|[\"'”]\s*$", re.I)
_FEWEST_LINES = 3
"""Changed lines with which patches can be near-duplicates."""
_CONTAINED = 0.9
_WHY = ("it was reverted later", "its patch is larger", "it is the merge")
"""Why a task goes, in the order of its rank."""


class Landing(NamedTuple):
    """What duplicates need to know of any change of the history."""

    head_sha: str
    parents: tuple[str, ...]
    title: str
    message: str
    patch_id: str | None
    merged_at: datetime


class Relation(NamedTuple):
    """Why two tasks are one."""

    check: str
    why: str


def relations(
    tasks: Sequence[Task], history: Iterable[Landing], settings: ScreenSettings
) -> dict[str, list[FoundProblem]]:
    """Findings on duplicates by task id; every task has an entry."""
    past = list(history)
    by_head = {one.head_sha: one for one in past}
    merged = {task.head_sha: merged_by(task.head_sha, by_head) for task in tasks}
    reverted = _reverts(tasks, past)
    found: dict[str, list[FoundProblem]] = {task.task_id: [] for task in tasks}
    joined: dict[frozenset[str], Relation] = {}
    for one, other in combinations(sorted(tasks, key=lambda task: task.created_at_commit), 2):
        relation = _strong(one, other, by_head, merged, settings)
        if relation:
            joined[frozenset((one.task_id, other.task_id))] = relation
        else:
            for task, weak in zip((one, other), _same_functions(one, other, settings), strict=False):
                found[task.task_id].append(weak)
    for task_id, settled in _settle(tasks, joined, reverted, by_head):
        found[task_id].append(settled)
    for task in tasks:
        found[task.task_id] += [*reverted.get(task.task_id, []), *_elsewhere(task, tasks, past, by_head)]
    return found


def merged_by(head: str, by_head: dict[str, Landing]) -> frozenset[str]:
    """Heads of the commits that a merge brought in: reachable from its other parents, not from its first."""
    merge = by_head.get(head)
    if merge is None or len(merge.parents) < 2:
        return frozenset()
    return frozenset(_reachable(merge.parents[1:], by_head) - _reachable(merge.parents[:1], by_head))


def _reachable(heads: Iterable[str], by_head: dict[str, Landing]) -> set[str]:
    seen: set[str] = set()
    waiting = list(heads)
    while waiting:
        head = waiting.pop()
        if head not in seen and head in by_head:
            seen.add(head)
            waiting += by_head[head].parents
    return seen


def core_title(title: str) -> str:
    """A title without what backports, re-landings and squash merges put around it."""
    before = None
    while before != title:
        before, title = title, _DECORATION.sub("", _AGAIN.sub("", title)).strip()
        once = _UNDO.sub("", title)
        twice = _UNDO.sub("", once)
        title = twice if twice != once != title else title
    return " ".join(title.lower().split())


def _strong(
    one: Task, other: Task, by_head: dict[str, Landing], merged: dict[str, frozenset[str]], settings: ScreenSettings
) -> Relation | None:
    """Why `other`, the later one, is the same improvement as `one`."""
    first, second = by_head.get(one.head_sha), by_head.get(other.head_sha)
    if first and second and first.patch_id and first.patch_id == second.patch_id:
        return Relation("duplicate", f"equal patches (patch id {first.patch_id[:12]})")
    for merge, commit in ((one, other), (other, one)):
        if commit.head_sha in merged[merge.head_sha]:
            return Relation(
                "duplicate", f"the merge {merge.head_sha[:10]} brought in the commit {commit.head_sha[:10]}"
            )
    if any(one.head_sha.startswith(sha) for sha in _CHERRY.findall(other.message)):
        return Relation("duplicate", f"{other.head_sha[:10]} is cherry-picked from {one.head_sha[:10]}")
    if one.pull_number and str(one.pull_number) in _BACKPORT.findall(other.message):
        return Relation("duplicate", f"{other.head_sha[:10]} is a backport of #{one.pull_number}")
    shared, contained = _shared(one.patch, other.patch)
    if core_title(one.title) == core_title(other.title) and shared >= settings.same_functions:
        return Relation("duplicate", f"landed again: the titles say the same, {shared:.0%} of the lines are shared")
    if shared >= settings.near_patch:
        return Relation("near-duplicate", f"{shared:.0%} of the changed lines are the same")
    if contained >= _CONTAINED:
        return Relation("near-duplicate", f"{contained:.0%} of the smaller patch's lines are in the larger one")
    return None


def _shared(one: str, other: str) -> tuple[float, float]:
    """Shares of the changed lines that two patches have in common: of all (Jaccard), of the smaller patch's."""
    lines, others = changed_lines(one), changed_lines(other)
    if min(len(lines), len(others)) < _FEWEST_LINES:
        return 0.0, 0.0
    both = len(lines & others)
    return both / len(lines | others), both / min(len(lines), len(others))


def _same_functions(one: Task, other: Task, settings: ScreenSettings) -> tuple[FoundProblem, FoundProblem] | tuple[()]:
    functions, others = set(one.oracle_targets), set(other.oracle_targets)
    days = abs((one.created_at_commit - other.created_at_commit).total_seconds()) / 86400
    shared = len(functions & others) / len(functions | others) if functions | others else 0.0
    if shared < settings.same_functions or days > settings.window_days:
        return ()
    names = sorted(name.rpartition("::")[2] for name in functions & others)
    text = f"touch {', '.join(names[:4])} {days:.0f} days apart ({shared:.0%} of the functions of both)"
    details = {"functions": names, "days": round(days, 1), "share": round(shared, 3)}
    return (
        FoundProblem("same-functions", f"it and {other.task_id} {text}", other.task_id, "info", details),
        FoundProblem("same-functions", f"it and {one.task_id} {text}", one.task_id, "info", details),
    )


def _settle(
    tasks: Sequence[Task],
    joined: dict[frozenset[str], Relation],
    reverted: Collection[str],
    by_head: dict[str, Landing],
) -> Iterator[tuple[str, FoundProblem]]:
    """Says of related tasks which stay; no measured figure decides it.

    From the best rank on, a task stays unless it is the same improvement as one that stays: two commits stay,
    the merge of both goes.
    """

    def rank(task: Task) -> tuple[bool, int, bool, datetime, str]:
        merge = len(by_head[task.head_sha].parents) > 1 if task.head_sha in by_head else False
        return task.task_id in reverted, task.lines_changed, merge, task.created_at_commit, task.task_id

    staying: list[Task] = []
    others: dict[str, list[str]] = defaultdict(list)
    for task in sorted(tasks, key=rank):
        same = [one for one in staying if frozenset((one.task_id, task.task_id)) in joined]
        if not same:
            staying.append(task)
            continue
        stays, relation = same[0], joined[frozenset((same[0].task_id, task.task_id))]
        ranks = zip(_WHY, rank(task), rank(stays), strict=False)
        why = next((text for text, mine, its in ranks if mine != its), "it came later")
        text = f"{relation.why}. {stays.task_id} stays; this one goes: {why}"
        details = {"stays": [one.task_id for one in same], "why": why}
        yield task.task_id, FoundProblem(relation.check, text, stays.task_id, "blocking", details)
        for one in same:
            others[one.task_id].append(task.task_id)
    for task_id, names in others.items():
        text = f"stays for what {', '.join(names)} show, too"
        yield task_id, FoundProblem("stands-for", text, "", "info", {"others": names})


def _reverts(tasks: Sequence[Task], past: Sequence[Landing]) -> dict[str, list[FoundProblem]]:
    """Tasks whose change a later one undoes; undoing that again takes it back."""
    found: dict[str, list[FoundProblem]] = {}
    suspects = [one for one in past if _REVERTS.search(one.message) or _UNDO.match(one.title)]
    for task in tasks:
        for one in suspects:
            named = any(task.head_sha.startswith(sha) for sha in _REVERTS.findall(one.message))
            undone = _UNDO.match(one.title)
            titled = undone is not None and _bare(one.title[undone.end() :]) == _bare(task.title)
            if (named or titled) and one.merged_at > task.created_at_commit:
                text = f"{one.head_sha[:10]} of {one.merged_at:%Y-%m-%d} undoes it: {one.title}"
                row = FoundProblem(
                    "reverted", text, one.head_sha[:10], "warning", {"head_sha": one.head_sha, "title": one.title}
                )
                found.setdefault(task.task_id, []).append(row)
    return found


def _bare(title: str) -> str:
    return " ".join(re.sub(r"[\"'“”]|\s*\(#\d+\)", "", title).lower().split())


def _elsewhere(
    task: Task, tasks: Sequence[Task], past: Sequence[Landing], by_head: dict[str, Landing]
) -> Iterator[FoundProblem]:
    """Changes that are no tasks and have the same patch."""
    own = by_head.get(task.head_sha)
    patch_id = own.patch_id if own else None
    known = {one.head_sha for one in tasks}
    for one in past if patch_id else ():
        if patch_id and one.patch_id == patch_id and one.head_sha not in known:
            text = f"the same patch (patch id {patch_id[:12]}) is also {one.head_sha[:10]}: {one.title}"
            details = {"head_sha": one.head_sha, "merged_at": one.merged_at, "title": one.title}
            yield FoundProblem("landed-again", text, one.head_sha[:10], "info", details)
