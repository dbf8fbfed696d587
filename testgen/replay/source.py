"""Call replay as a source of workloads."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import ClassVar

from perfquarry.data.records import LATE, Reason, Source, Workload
from perfquarry.harness.contracts import ProbeItem
from perfquarry.harness.probing.recording import Recorded
from perfquarry.testgen.case import Case
from perfquarry.testgen.changed_lines import definitions_in
from perfquarry.testgen.imports import parse
from perfquarry.testgen.replay.expressions import Unwritable, Way
from perfquarry.testgen.replay.recordings import Recordings, record
from perfquarry.testgen.replay.texts import Replay, has_own_outcome
from perfquarry.testgen.replay.variants import choose, run_scripts
from perfquarry.testgen.scripts import Script
from perfquarry.testgen.traced import content_of, is_python_source, path_at
from perfquarry.testgen.trials import Trial, rows_of, try_scripts

MAX_ROWS = 30
"""Rows of calls that could not be replayed."""


class ReplaySource:
    """Scripts that make recorded calls of the changed functions again, as recorded and scaled up."""

    name: ClassVar[Source] = "replay"

    def workloads(self, case: Case) -> list[Workload]:
        """Implements `testgen.sources.WorkloadSource`."""
        if not case.trace.functions:
            return [case.row(self.name, reason=Reason.NOT_RECORDED, detail="no Python function changed")]
        recordings = record(case)
        if not recordings.calls:
            reason = Reason.TEST_TIMEOUT if recordings.late else Reason.NOT_RECORDED
            return [case.row(self.name, reason=reason, detail=_why(recordings))]
        replays, failed = _verified(case, _nearest(recordings.calls, case.settings.replay.functions))
        chosen = choose(case, replays)
        scripts = [Script(code=one.script(), source="replay", note=one.note) for one in chosen]
        rows = rows_of(case, _sound(chosen, try_scripts(case, scripts)))
        rejected = [case.row(self.name, code, reason=_reason(why), detail=why) for code, why in failed[:MAX_ROWS]]
        if not scripts:
            why = "; ".join(dict.fromkeys(why for _, why in failed)) or _why(recordings)
            rejected.insert(0, case.row(self.name, reason=_reason(why), detail=why))
        return rows + rejected


def _sound(replays: Sequence[Replay], trials: Sequence[Trial]) -> list[Trial]:
    """The trials with the replayed functions as targets; none is usable of a function that does other things now.

    Calls that tests made and that have other results at the head show it: what other calls save may be
    work that is no longer done.
    """
    pairs = list(zip(replays, trials, strict=True))
    altered = {
        name
        for replay, trial in pairs
        if replay.as_recorded and trial.reason in (Reason.DIFFERS, Reason.SCRIPT_FAILS_ON_HEAD)
        for name in replay.functions
    }
    found = []
    for replay, trial in pairs:
        if trial.reason is None and altered.intersection(replay.functions):
            trial = replace(trial, reason=Reason.DIFFERS, detail="the calls as recorded have other results at the head")
        found.append(replace(trial, calls=replay.functions))
    return found


def _why(recordings: Recordings) -> str:
    return f"{recordings.reasons() or 'no test calls them'}; test files: {', '.join(recordings.files) or 'none'}"


def _reason(why: str) -> Reason:
    """Too long, where a time limit alone kept a call from being made again."""
    return Reason.TOO_LONG if why.startswith(LATE) else Reason.NOT_REPLAYED


def _nearest(calls: Sequence[Recorded], limit: int) -> list[list[Recorded]]:
    """Calls by function: first those nearest to what changed, of these the ones that hit most of it.

    Callers of what changed whose calls hit nothing else than those of nearer functions are left out.
    """
    groups: dict[str, list[Recorded]] = {}
    for call in calls:
        groups.setdefault(call.function, []).append(call)
    left, covered = list(groups.values()), set[tuple[str, int]]()
    found: list[list[Recorded]] = []
    while left and len(found) < limit:
        left.sort(
            key=lambda group: (_level(group), -len(_hits(group) - covered), -len(_hits(group)), group[0].function)
        )
        group = left.pop(0)
        own = any(name == group[0].function for name, _ in _hits(group))
        if not found or _hits(group) - covered or (own and _level(group) == 0):
            covered |= _hits(group)
            found.append(group)
    return found


def _level(group: Iterable[Recorded]) -> int:
    return min(call.level for call in group)


def _hits(group: Iterable[Recorded]) -> set[tuple[str, int]]:
    return {hit for call in group for hit in call.hits}


def _verified(case: Case, groups: Sequence[Sequence[Recorded]]) -> tuple[list[list[Replay]], list[tuple[str, str]]]:
    """Calls that have the recorded outcome when they are made again, in each of the ways in which they do.

    Attributes are set directly only where no other way does.

    Returns:
        single calls by function, and (text, why) of those that cannot be replayed.
    """
    failed: dict[tuple[int, int], tuple[str, str]] = {}
    found: dict[tuple[int, int], list[Replay]] = {}
    calls = {(number, place): call for number, group in enumerate(groups) for place, call in enumerate(group)}
    steps: tuple[tuple[Way, ...], ...] = ("made", "contents"), ("state",)
    for ways in steps:
        waiting = {key: call for key, call in calls.items() if key not in found}
        tried = [(key, Replay((call,), way)) for key, call in waiting.items() for way in ways]
        texts: dict[str, str] = {}
        for key, replay in tried:
            try:
                texts.update(_text(case, replay, texts))
            except Unwritable as error:
                failed.setdefault(key, (f"# {replay.calls[0].function}", str(error)))
        items = run_scripts(case, "base", texts, calls=0)
        for key, replay in tried:
            item = items.get(replay.name)
            if item is not None and item.outcome == "passed":
                found.setdefault(key, []).append(replay)
            elif replay.name in texts:
                failed[key] = texts[replay.name], _failure(item)
    by_group = [
        [one for key in calls if key[0] == number for one in found.get(key, ())] for number in range(len(groups))
    ]
    return by_group, [one for key, one in failed.items() if key not in found]


def _failure(item: ProbeItem | None) -> str:
    if item is None:
        return "it did not run"
    return f"{LATE}: {item.message}" if item.outcome == "timeout" else item.message


def _text(case: Case, replay: Replay, known: dict[str, str]) -> dict[str, str]:
    """The text that checks a single call, by its name; none where another way has the same.

    Raises:
        Unwritable: it cannot be made in this way.
    """
    changed = [name for _, name in replay.classes() if not _is_unchanged(case, name)]
    if changed:
        raise Unwritable(f"the change may alter the attributes of {changed[0]}")
    text = replay.script(replay.calls[0].digest if has_own_outcome(replay.calls[0]) else "")
    return {} if text in known.values() else {replay.name: text}


def _is_unchanged(case: Case, name: str) -> bool:
    """Whether no changed file defines a class of this qualified name otherwise than before.

    Setting attributes directly is sound only then: who changes a class may change what its
    attributes mean.
    """
    for file in filter(is_python_source, case.change.files):
        before = _definitions(content_of(case.base.tree, path_at(file, "base")), name)
        if before != _definitions(content_of(case.head.tree, path_at(file, "head")), name):
            return False
    return True


def _definitions(content: bytes, name: str) -> list[str]:
    """What a file defines under a class's qualified name."""
    tree = parse(content)
    nodes: list[ast.AST] = [tree] if tree else []
    for part in name.split("."):
        inner = [child for node in nodes for child in definitions_in(ast.iter_child_nodes(node))]
        nodes = [child for child in inner if child.name == part]
    return [ast.dump(node) for node in nodes]
