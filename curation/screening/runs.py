"""Checks that run code on the base of a task: memos, mutations, chance, depth of calls.

A solver may put a cache on a target, and a workload may not look at what it computes. Both are tried: the
targets are altered in the process (`harness.contracts.Alteration`), and the workloads are run as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Literal

from perfquarry.curation.screening.found import FoundProblem
from perfquarry.curation.settings import ScreenSettings
from perfquarry.data.records import Severity, Task
from perfquarry.data.records.task import TaskWorkload
from perfquarry.harness.contracts import Alteration, BuiltSide, Files, Limits, ProbeItem, ProbeMode, ProbeRequest
from perfquarry.harness.measuring.comparison import Compared, compare
from perfquarry.harness.probing.prober import Prober

CHECKS = ("memo-survives", "memo-between-calls", "mutation-survives", "non-determinism", "call-depth")
Mutation = Literal["damage", "skip"]
_MUTATIONS: dict[Mutation, str] = {"damage": "its result is changed", "skip": "it does nothing"}
WITHIN, BETWEEN = "within", "between"
"""Memos: begun anew in each call, or kept between calls."""
_MEMOS = (WITHIN, BETWEEN)
_AS_GOOD = 0.95
"""Share of the expert's speedup from which a memo is as good (GSO's threshold)."""
_TEST_SECONDS = 20.0
_MODULE = "<module>"


def try_out(
    task: Task,
    base: BuiltSide,
    prober: Prober,
    settings: ScreenSettings,
    tools: Path | None = None,
    machine: AbstractContextManager[int | None] | None = None,
    guards: Sequence[str] = (),
) -> list[FoundProblem]:
    """Findings of the checks that run code.

    At most 4 · rounds + 2 · functions + 4 processes, each within `process_seconds`. Targets in native code and
    at the top level of modules cannot be altered: nothing is said of them.

    Args:
        task: an accepted task.
        base: its built base.
        prober: runs the processes.
        settings: limits.
        tools: folder with yappi for the base's interpreter; None: it is in the environment.
        machine: entered while anything is timed, it gives the core for it (`measurement_lock`).
        guards: node ids of other unit tests that execute the change and pass on both sides.

    Raises:
        SandboxUnavailable: the sandbox itself could not start.
    """
    runs = _Runs(task, base, prober, settings, tools, guards)
    with machine or nullcontext() as runs.core:
        timed = runs.timed()
    return [*_fails(runs, timed), *_memos(runs, timed), *_mutations(runs, timed), *_depth(runs)]


Items = dict[str, ProbeItem]


@dataclass
class _Timed:
    """Rounds in which the base as it is takes turns with the base with memos: begun anew in each call, or kept."""

    failed: list[dict[str, str]] = field(default_factory=list)
    """Of each round, why workloads did not pass on the base as it is."""
    gains: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    """By kind of memo and round: how many times faster each workload is; 0 where the memo made it fail."""
    calls: dict[str, Items] = field(default_factory=dict)
    """By kind of memo: calls of the targets, counted in a process that is not timed."""

    def gain(self, kind: str, node: str, rounds: int) -> float:
        """The least of all rounds; 0 where a round is missing or does not pass."""
        found = [one[node] for one in self.gains.get(kind, ())]
        return min(found) if len(found) == rounds else 0.0


@dataclass
class _Runs:
    """Processes of one task's workloads on its base."""

    task: Task
    base: BuiltSide
    prober: Prober
    settings: ScreenSettings
    tools: Path | None
    guards: Sequence[str]
    core: int | None = None
    references: dict[str, Files] = field(default_factory=dict)
    passing: set[str] = field(default_factory=set)
    """Workloads that passed on the base as it is."""

    @property
    def targets(self) -> list[str]:
        """Oracle targets that are functions."""
        return [name for name in self.task.oracle_targets if not name.endswith(_MODULE)]

    def timed(self) -> _Timed:
        """Rounds of pairs of processes; a memo that does not win in the first round is given up."""
        plain = self.run("check", 1, store=True)
        self.passing = {node for node, item in plain.items() if item.outcome == "passed"}
        timed = _Timed()
        memos = {kind: self._memo(kind) for kind in _MEMOS} if self.targets else {}
        timed.calls = {kind: self.run("check", 1, memo) for kind, memo in memos.items()}
        for seed in range(1, self.settings.rounds + 1):
            failed: dict[str, str] = {}
            asked: list[tuple[str, Alteration | None]] = [*memos.items()] or [("", None)]
            for kind, memo in asked:
                found = self._compare(seed, memo)
                failed |= {node: one.first_failed for node, one in found.items() if one.first_failed}
                gains = {node: math.exp(one.log) if one.log is not None else 0.0 for node, one in found.items()}
                timed.gains.setdefault(kind, []).append(gains)
                if max(gains.values()) < self.settings.memo_gain:
                    memos.pop(kind, None)
            timed.failed.append(failed)
        return timed

    def _memo(self, kind: str) -> Alteration:
        return Alteration(kind="memo", functions=self.targets, forget=kind == WITHIN)

    def _compare(self, seed: int, memo: Alteration | None) -> dict[str, Compared]:
        """The base as it is and the base with a memo (None: as it is once more), by workload."""
        requests = self._request("turns", None), self._request("turns", memo)
        limits = Limits(wall_seconds=self.settings.process_seconds, memory_bytes=self.settings.memory_bytes)
        nodes = [one.node for one in self.task.workloads]
        return compare(
            self.prober,
            self.base,
            requests,
            nodes,
            limits=limits,
            seed=seed,
            core=self.core,
            fewest_turns=self.settings.calls,
        )

    def run(
        self,
        mode: ProbeMode,
        seed: int,
        alteration: Alteration | None = None,
        *,
        more: Sequence[str] = (),
        store: bool = False,
    ) -> Items:
        """One process over all workloads; those that a crash took along are missing."""
        request = self._request(mode, alteration, more)
        if store:
            request = request.model_copy(update={"store": bool(request.scripts), "references": {}})
        limits = Limits(wall_seconds=self.settings.process_seconds, memory_bytes=self.settings.memory_bytes)
        report = self.prober.run(self.base, request, limits=limits, hash_seed=seed, core=self.core)
        if store:
            self.references = report.results
        return {item.node: item for item in report.items}

    def _request(self, mode: ProbeMode, alteration: Alteration | None, more: Sequence[str] = ()) -> ProbeRequest:
        return ProbeRequest(
            mode=mode,
            arguments=[*(one.node for one in self.task.workloads if one.source == "unit-test"), *more],
            scripts={one.node: one.code for one in self.task.workloads if one.source != "unit-test"},
            references=self.references,
            test_timeout=_TEST_SECONDS,
            alteration=alteration,
            extra_paths=[str(self.tools)] if self.tools and mode == "profile" else [],
        )


def _fails(runs: _Runs, timed: _Timed) -> Iterator[FoundProblem]:
    """Workloads that do not always pass on the base as it is."""
    for one in runs.task.workloads:
        messages = [failed[one.node] for failed in timed.failed if one.node in failed]
        if one.node not in runs.passing:
            messages.append("it did not pass in the first process")
        if messages:
            rounds = len(timed.failed) + 1
            text = f"{len(messages)} of {rounds} runs of the base do not pass: {messages[0][-300:]}"
            yield FoundProblem("non-determinism", text, one.node, "warning", {"runs": rounds, "failed": len(messages)})


def _memos(runs: _Runs, timed: _Timed) -> Iterator[FoundProblem]:
    rounds, settings = runs.settings.rounds, runs.settings
    within = {one.node: timed.gain(WITHIN, one.node, rounds) for one in runs.task.workloads}
    enough = {one.node: max(_AS_GOOD * one.speedup, settings.memo_gain) for one in runs.task.workloads}
    all_as_good = all(gain >= enough[node] for node, gain in within.items())
    for one in runs.task.workloads:
        gain = within[one.node]
        if gain >= settings.memo_gain:
            text = (
                f"a memo on {_names(timed.calls[WITHIN], one.node)}, cleared at each call, makes it {gain:.2f}× as "
                f"fast and the check passes (expert {one.speedup:.2f}×): inputs repeat within a call"
            )
            text += "; so in every workload of the task" if all_as_good else ""
            severity: Severity = "blocking" if all_as_good else "warning"
            yield FoundProblem("memo-survives", text, one.node, severity, _facts(timed.calls[WITHIN], one, gain))
        between = timed.gain(BETWEEN, one.node, rounds)
        if between >= max(settings.memo_gain, gain * settings.memo_gain):
            text = (
                f"a memo on {_names(timed.calls[BETWEEN], one.node)} that outlives a call makes it {between:.2f}× as "
                f"fast and the check passes (expert {one.speedup:.2f}×): calls of one process have the same inputs"
            )
            yield FoundProblem("memo-between-calls", text, one.node, "info", _facts(timed.calls[BETWEEN], one, between))


def _names(items: Items, node: str) -> str:
    item = items.get(node)
    used = [name.rpartition("::")[2] for name, (_, kept) in item.altered.items() if kept] if item else []
    return ", ".join(used) or "the targets"


def _facts(items: Items, one: TaskWorkload, gain: float) -> dict[str, Any]:
    calls = items[one.node].altered if one.node in items else {}
    return {"gain": round(gain, 3), "expert": round(one.speedup, 3), "calls": calls}


def _mutations(runs: _Runs, timed: _Timed) -> Iterator[FoundProblem]:
    """Targets that can be broken without any workload that calls them noticing, and whether other tests would."""
    calls: dict[str, int] = {}
    for item in timed.calls.get(BETWEEN, {}).values():
        for name, (count, _) in item.altered.items():
            calls[name] = calls.get(name, 0) + count
    workloads = runs.passing
    broken = [
        _Broken.of(runs, name, workloads)
        for name in sorted(calls, key=lambda one: (-calls[one], one))[: runs.settings.functions]
    ]
    noticed = any(one.noticing for one in broken)
    guarded = any(one.guards for one in broken)
    for one in (one for one in broken if one.survived):
        text = f"{one.name.rpartition('::')[2]} is broken, {'; '.join(one.survived)}"
        if not one.noticing:
            text += (
                f"; {one.guards} other test(s) of the change fail" if one.guards else "; no test of the change fails"
            )
        severity: Severity = "info" if one.noticing else "warning" if noticed or guarded else "blocking"
        yield FoundProblem("mutation-survives", text, one.name, severity, {"workloads": one.unaware})


@dataclass(frozen=True)
class _Broken:
    """What became of the workloads while one target was broken."""

    name: str
    survived: list[str]
    unaware: list[str]
    """Workloads that passed although it was broken while they ran."""
    noticing: bool
    """Whether any workload failed."""
    guards: int
    """Other tests of the change that failed."""

    @classmethod
    def of(cls, runs: _Runs, name: str, workloads: set[str]) -> _Broken:
        survived, unaware, noticing, guards = [], set[str](), False, 0
        for kind, words in _MUTATIONS.items():
            items = runs.run("check", 1, Alteration(kind=kind, functions=[name]), more=runs.guards)
            reached = {node for node, item in items.items() if item.altered.get(name, (0, 0))[1]}
            reached |= (workloads | set(runs.guards)) - items.keys()  # what took the process along had noticed
            passing = {node for node in reached & workloads if node in items and items[node].outcome == "passed"}
            noticing = noticing or bool((reached & workloads) - passing)
            failed = [node for node in reached - workloads if node not in items or items[node].outcome != "passed"]
            guards = max(guards, len(failed))
            if passing:
                survived.append(f"{words}: {len(passing)} of {len(reached & workloads)} workloads pass")
                unaware |= passing
        return cls(name, survived, sorted(unaware), noticing, guards)


def _depth(runs: _Runs) -> Iterator[FoundProblem]:
    """Calls from a workload down to the nearest changed function, by yappi on the base."""
    items = runs.run("profile", 1)
    depths = {node: depth for node, item in items.items() if (depth := depth_of(item, runs.task)) is not None}
    if depths:
        depth = int(median(depths.values()))
        text = (
            f"{depth} call(s) from a workload down to the nearest changed function, median of {len(depths)} workloads"
        )
        yield FoundProblem("call-depth", text, "", "info", {"depth": depth, "workloads": depths})


def depth_of(item: ProbeItem, task: Task) -> int | None:
    """Calls from a workload to the nearest changed function; 1: it calls one itself.

    None where none ran, or only through what has no name (comprehensions, lambdas), whose callers are not known.
    """
    targets, level = set(task.oracle_targets), 1
    reached = set(task.realistic_targets) & set(item.functions)
    seen: set[str] = set()
    while reached - seen:
        if reached & targets:
            return level
        seen |= reached
        reached = {name for name, callers in item.callers.items() if reached.intersection(callers)} - seen
        level += 1
    return None
