"""Checks that run code on the base of a task: memos, mutations, chance, depth of calls.

A solver may put a cache on a target, and a workload may not look at what it computes. Both are tried: the
targets are altered in the process (`harness.contracts.Alteration`), and the workloads are run as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Literal

from curation.screening.found import Found
from data.records import Severity, Task
from data.records.task import TaskWorkload
from data.settings import ScreenSettings
from harness.contracts import Alteration, BuiltSide, Files, Limits, ProbeItem, ProbeMode, Prober, ProbeRequest

CHECKS = ("memo-survives", "memo-between-calls", "mutation-survives", "non-determinism", "call-depth")
Mutation = Literal["damage", "skip"]
_MUTATIONS: dict[Mutation, str] = {"damage": "its result is changed", "skip": "it does nothing"}
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
    core: int | None = None,
    guards: Sequence[str] = (),
    machine: AbstractContextManager[object] | None = None,
) -> list[Found]:
    """Findings of the checks that run code.

    At most 3 · rounds + 2 · functions + 1 processes, each within `process_seconds`. Targets in native code and
    at the top level of modules cannot be altered: nothing is said of them.

    Args:
        task: an accepted task.
        base: its built base.
        prober: runs the processes.
        settings: limits.
        tools: folder with yappi for the base's interpreter; None: it is in the environment.
        core: to pin the timed processes to.
        guards: node ids of other unit tests that execute the change and pass on both sides.
        machine: entered while anything is timed (`harness.machine.measurement_lock`).

    Raises:
        SandboxUnavailable: the sandbox itself could not start.
    """
    runs = _Runs(task, base, prober, settings, tools, core, guards)
    with machine or nullcontext():
        timed = runs.timed()
    return [*_fails(runs, timed), *_memos(runs, timed), *_mutations(runs, timed), *_depth(runs)]


Items = dict[str, ProbeItem]


@dataclass
class _Timed:
    """Rounds of the base as it is, with memos that are forgotten before each call, and with memos that stay."""

    plain: list[Items] = field(default_factory=list)
    forgetting: list[Items] = field(default_factory=list)
    keeping: list[Items] = field(default_factory=list)


@dataclass
class _Runs:
    """Processes of one task's workloads on its base."""

    task: Task
    base: BuiltSide
    prober: Prober
    settings: ScreenSettings
    tools: Path | None
    core: int | None
    guards: Sequence[str]
    references: dict[str, Files] = field(default_factory=dict)

    @property
    def targets(self) -> list[str]:
        """Oracle targets that are functions."""
        return [name for name in self.task.oracle_targets if not name.endswith(_MODULE)]

    def timed(self) -> _Timed:
        """Pairs of processes under the same hash seeds; a memo that does not win in the first round is given up."""
        timed = _Timed()
        memos = [(timed.forgetting, True), (timed.keeping, False)] if self.targets else []
        for seed in range(1, self.settings.rounds + 1):
            timed.plain.append(self.run("time", seed, store=not self.references))
            for rounds, forget in memos:
                if seed == 1 or self._wins(timed.plain[0], rounds[0]):
                    memo = Alteration(kind="memo", functions=self.targets, forget=forget)
                    rounds.append(self.run("time", seed, memo))
        return timed

    def _wins(self, plain: Items, memo: Items) -> bool:
        return any(_ratio(plain, memo, one.node) >= self.settings.memo_gain for one in self.task.workloads)

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
        scripts = {one.node: one.code for one in self.task.workloads if one.source != "unit-test"}
        request = ProbeRequest(
            mode=mode,
            arguments=[*(one.node for one in self.task.workloads if one.source == "unit-test"), *more],
            scripts=scripts,
            store=store and bool(scripts),
            references={} if store else self.references,
            warmups=1,
            calls={one.node: self.settings.calls for one in self.task.workloads},
            max_seconds=self.settings.process_seconds / 2,
            test_timeout=_TEST_SECONDS,
            alteration=alteration,
            extra_paths=[str(self.tools)] if self.tools and mode == "profile" else [],
        )
        limits = Limits(wall_seconds=self.settings.process_seconds, memory_bytes=self.settings.memory_bytes)
        report = self.prober.run(self.base, request, limits=limits, hash_seed=seed, core=self.core)
        if store:
            self.references = report.results
        return {item.node: item for item in report.items}


def _ratio(plain: Items, altered: Items, node: str) -> float:
    """How many times faster a workload is; 0 where either did not pass."""
    before, after = plain.get(node), altered.get(node)
    if not before or not after or {before.outcome, after.outcome} != {"passed"}:
        return 0.0
    return median(before.samples) / max(median(after.samples), 1e-9)


def _fails(runs: _Runs, timed: _Timed) -> Iterator[Found]:
    """Workloads that do not always pass on the base as it is."""
    for one in runs.task.workloads:
        items = [items.get(one.node) for items in timed.plain]
        failed = [item for item in items if item is None or item.outcome != "passed"]
        if failed:
            message = failed[0].message if failed[0] else "the process ended before it"
            text = f"{len(failed)} of {len(items)} runs of the base do not pass: {message[-300:]}"
            yield Found("non-determinism", text, one.node, "warning", {"runs": len(items), "failed": len(failed)})


def _memos(runs: _Runs, timed: _Timed) -> Iterator[Found]:
    within = {one.node: _gain(timed.plain, timed.forgetting, one.node) for one in runs.task.workloads}
    enough = {one.node: max(_AS_GOOD * one.speedup, runs.settings.memo_gain) for one in runs.task.workloads}
    all_as_good = all(gain >= enough[node] for node, gain in within.items())
    for one in runs.task.workloads:
        gain = within[one.node]
        if gain >= runs.settings.memo_gain:
            text = (
                f"a memo on {_names(timed.forgetting, one.node)}, begun anew in each call, makes it {gain:.2f}× as "
                f"fast and the check passes (expert {one.speedup:.2f}×): inputs repeat within a call"
            )
            text += "; so in every workload of the task" if all_as_good else ""
            severity: Severity = "blocking" if all_as_good else "warning"
            yield Found("memo-survives", text, one.node, severity, _facts(timed.forgetting, one, gain))
        between = _gain(timed.plain, timed.keeping, one.node)
        if between >= max(runs.settings.memo_gain, gain * runs.settings.memo_gain):
            text = (
                f"a memo on {_names(timed.keeping, one.node)} that outlives a call makes it {between:.2f}× as fast and "
                f"the check passes (expert {one.speedup:.2f}×): calls of one process have the same inputs"
            )
            yield Found("memo-between-calls", text, one.node, "info", _facts(timed.keeping, one, between))


def _gain(plain: Sequence[Items], altered: Sequence[Items], node: str) -> float:
    """The least of all rounds; 0 where a round is missing or does not pass."""
    ratios = [_ratio(before, after, node) for before, after in zip(plain, altered, strict=False)]
    return min(ratios) if len(ratios) == len(plain) else 0.0


def _names(rounds: Sequence[Items], node: str) -> str:
    used = [name.rpartition("::")[2] for name, (_, kept) in rounds[0][node].altered.items() if kept]
    return ", ".join(used) or "the targets"


def _facts(rounds: Sequence[Items], one: TaskWorkload, gain: float) -> dict[str, Any]:
    return {"gain": round(gain, 3), "expert": round(one.speedup, 3), "calls": rounds[0][one.node].altered}


def _mutations(runs: _Runs, timed: _Timed) -> Iterator[Found]:
    """Targets that can be broken without any workload that calls them noticing, and whether other tests would."""
    calls: dict[str, int] = {}
    for item in timed.keeping[0].values() if timed.keeping else ():
        for name, (count, _) in item.altered.items():
            calls[name] = calls.get(name, 0) + count
    workloads = {node for node, item in timed.plain[0].items() if item.outcome == "passed"}
    broken = [
        _Broken.of(runs, name, workloads)
        for name in sorted(calls, key=lambda one: (-calls[one], one))[: runs.settings.functions]
    ]
    noticed = any(one.noticing for one in broken)
    guarded = any(one.guards for one in broken)
    for one in (one for one in broken if one.told):
        text = f"{one.name.rpartition('::')[2]} is broken, {'; '.join(one.told)}"
        if not one.noticing:
            text += (
                f"; {one.guards} other test(s) of the change fail" if one.guards else "; no test of the change fails"
            )
        severity: Severity = "info" if one.noticing else "warning" if noticed or guarded else "blocking"
        yield Found("mutation-survives", text, one.name, severity, {"workloads": one.unaware})


@dataclass(frozen=True)
class _Broken:
    """What became of the workloads while one target was broken."""

    name: str
    told: list[str]
    unaware: list[str]
    """Workloads that passed although it was broken while they ran."""
    noticing: bool
    """Whether any workload failed."""
    guards: int
    """Other tests of the change that failed."""

    @classmethod
    def of(cls, runs: _Runs, name: str, workloads: set[str]) -> _Broken:
        told, unaware, noticing, guards = [], set[str](), False, 0
        for kind, words in _MUTATIONS.items():
            items = runs.run("check", 1, Alteration(kind=kind, functions=[name]), more=runs.guards)
            reached = {node for node, item in items.items() if item.altered.get(name, (0, 0))[1]}
            reached |= (workloads | set(runs.guards)) - items.keys()  # what took the process along had noticed
            passing = {node for node in reached & workloads if node in items and items[node].outcome == "passed"}
            noticing = noticing or bool((reached & workloads) - passing)
            failed = [node for node in reached - workloads if node not in items or items[node].outcome != "passed"]
            guards = max(guards, len(failed))
            if passing:
                told.append(f"{words}: {len(passing)} of {len(reached & workloads)} workloads pass")
                unaware |= passing
        return cls(name, told, sorted(unaware), noticing, guards)


def _depth(runs: _Runs) -> Iterator[Found]:
    """Calls from a workload down to the nearest changed function, by yappi on the base."""
    items = runs.run("profile", 1)
    depths = {node: depth for node, item in items.items() if (depth := depth_of(item, runs.task)) is not None}
    if depths:
        depth = int(median(depths.values()))
        text = (
            f"{depth} call(s) from a workload down to the nearest changed function, median of {len(depths)} workloads"
        )
        yield Found("call-depth", text, "", "info", {"depth": depth, "workloads": depths})


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
