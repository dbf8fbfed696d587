"""Counts instructions of workloads on both sides of a change (docs/counts.md)."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import median_low

from perfquarry.data.records import Side
from perfquarry.data.records.count import FunctionCount, SeedCount
from perfquarry.harness.contracts import BuiltSide, Limits, ProbeItem, ProbeReport, ProbeRequest
from perfquarry.harness.measuring.callgrind import Callgrind
from perfquarry.harness.probing.prober import Prober
from perfquarry.harness.settings import CountSettings

MESSAGE_CHARACTERS = 1000
_SIDES: tuple[Side, Side] = ("base", "head")


@dataclass
class PairCount:
    """What was counted of one workload."""

    node: str
    seeds: list[SeedCount] = field(default_factory=list)
    """Of those seeds with which both sides passed, while there was time."""
    functions: list[FunctionCount] = field(default_factory=list)
    """Those that execute fewer or more instructions; empty where the workload executes as many as before."""
    problem: str = ""
    """Why it could not be counted; empty where all seeds were."""


@dataclass(frozen=True)
class Counter:
    """Counts workloads of one change.

    Args:
        prober: runs the processes; valgrind must be installed where they run.
        targets: 'path::Class.method' of the functions that the change edits, with the base's paths.
    """

    prober: Prober
    callgrind: Callgrind
    base: BuiltSide
    head: BuiltSide
    settings: CountSettings
    targets: Sequence[str] = ()

    def count(self, nodes: Sequence[str], scripts: Mapping[str, str]) -> list[PairCount]:
        """Counts of all workloads: for each seed one process a side, both at once, since counts bear company.

        Raises:
            SandboxUnavailable: the sandbox itself could not start.
        """
        wanted = [*nodes, *scripts]
        found = {node: PairCount(node) for node in wanted}
        first: dict[Side, dict[str, ProbeItem]] = {}
        began, longest = time.monotonic(), 0.0
        for seed in self.settings.seeds:
            left = [node for node in wanted if not found[node].problem]
            past = time.monotonic() - began
            if not left or (first and past + 2 * longest > self.settings.change_seconds):  # one more is by function
                break
            sides = self._both(left, scripts, seed, ())
            longest = max(longest, time.monotonic() - began - past)
            first = first or sides
            for node in left:
                self._add(found[node], seed, {side: sides[side].get(node) for side in _SIDES})
        self._explain(found, scripts, first)
        return list(found.values())

    def _add(self, pair: PairCount, seed: int, items: Mapping[Side, ProbeItem | None]) -> None:
        counts = {}
        for side, item in items.items():
            if item is None or item.outcome != "passed" or not item.instructions:
                said = f"{item.outcome}: {item.message}" if item else "it was not run"
                pair.problem = f"{side}, seed {seed}: {said}"[:MESSAGE_CHARACTERS]
                return
            counts[side] = median_low(item.instructions)
        pair.seeds.append(SeedCount(seed=seed, ir_base=counts["base"], ir_head=counts["head"]))

    def _explain(
        self, found: Mapping[str, PairCount], scripts: Mapping[str, str], whole: Mapping[Side, Mapping[str, ProbeItem]]
    ) -> None:
        """Counts once more by function, where the workload executes more or less."""
        touched = [node for node, pair in found.items() if not pair.problem and self._is_touched(pair)]
        python = [name for name in self.targets if name.partition("::")[0].endswith(".py") and "<" not in name]
        inside: dict[Side, dict[str, ProbeItem]] = {"base": {}, "head": {}}
        if touched and python:
            inside = self._both(self._most_telling(touched, found), scripts, self.settings.seeds[0], python)
        for node in touched:
            functions = by_function(
                {side: whole[side][node] for side in _SIDES},
                {side: item for side in _SIDES if (item := inside[side].get(node)) and item.outcome == "passed"},
                self.targets,
            )
            found[node].functions = functions[: self.settings.functions]

    def _most_telling(self, touched: Sequence[str], found: Mapping[str, PairCount]) -> list[str]:
        """Those with the largest effects, as many as can be counted by function soon, and one at least."""

        def effect(node: str) -> float:
            return max(abs(math.log(max(1, one.ir_base) / max(1, one.ir_head))) for one in found[node].seeds)

        chosen: list[str] = []
        left = self.settings.explained
        for node in sorted(touched, key=effect, reverse=True):
            longest = max(max(one.ir_base, one.ir_head) for one in found[node].seeds)
            if not chosen or longest <= left:
                chosen.append(node)
                left -= longest
        return [node for node in touched if node in chosen]

    def _is_touched(self, pair: PairCount) -> bool:
        least = self.settings.touched
        return any(abs(math.log(max(1, one.ir_base) / max(1, one.ir_head))) > least for one in pair.seeds)

    def _both(
        self, nodes: Sequence[str], scripts: Mapping[str, str], seed: int, functions: Sequence[str]
    ) -> dict[Side, dict[str, ProbeItem]]:
        settings = self.settings
        request = ProbeRequest(
            mode="count",
            arguments=[node for node in nodes if node not in scripts],
            scripts={node: scripts[node] for node in nodes if node in scripts},
            warmups=settings.warmups,
            max_calls=settings.calls if not functions else 2,
            max_seconds=min(
                settings.process_seconds * 0.6, settings.workload_seconds * len(nodes), settings.change_seconds / 3
            ),
            test_timeout=settings.process_seconds * 0.3,
            functions=list(functions),
        )
        with ThreadPoolExecutor(max_workers=2) as pool:
            base, head = pool.map(partial(self._side, request, seed), (self.base, self.head))
        return {"base": base, "head": head}

    def _side(self, request: ProbeRequest, seed: int, built: BuiltSide) -> dict[str, ProbeItem]:
        """What one side's processes say; those after a workload that ends the process run in the next one."""
        prober = replace(self.prober, under=self.callgrind)
        limits = Limits(wall_seconds=self.settings.process_seconds, memory_bytes=self.settings.memory_bytes)
        items: dict[str, ProbeItem] = {}
        while True:
            tests = [node for node in request.arguments if node not in items]
            scripts = {node: text for node, text in request.scripts.items() if node not in items}
            left = [*tests, *scripts]
            if not left:
                return items
            wanted = request.model_copy(update={"arguments": tests, "scripts": scripts})
            report = prober.run(built, wanted, limits=limits, hash_seed=seed)
            seen = {item.node: item for item in report.items if item.node in left}
            if report.outcome == "finished" or not seen:  # else: those after what ended it run in the next process
                seen.update({node: _lost(node, report) for node in left if node not in seen})
            items.update(seen)


def _lost(node: str, report: ProbeReport) -> ProbeItem:
    errors = "; ".join(report.collect_errors.values())
    message = errors or f"the process said nothing of it and ended ({report.outcome}): {report.output.strip()[-500:]}"
    return ProbeItem(node=node, outcome="error", message=message)


def by_function(
    whole: Mapping[Side, ProbeItem], inside: Mapping[Side, ProbeItem], targets: Sequence[str]
) -> list[FunctionCount]:
    """Functions that execute another number of instructions at the head, by the difference, largest first.

    Python functions are those of the patch and those of the tree that they call, each with all that it
    calls; functions of libraries and of the interpreter are counted by themselves.

    Args:
        whole: counts of the whole call, by side.
        inside: counts inside the patch's functions, by side; a side may be missing.
        targets: names of the functions of the patch.
    """
    found = []
    python = {name for item in inside.values() for name in item.python}
    for name in python:
        base, head = (inside[side].python.get(name) if side in inside else None for side in _SIDES)
        patch = name in targets
        found.append(_function(name, base, head, native=False, patch=patch, called=not patch))
    patched = {
        name.rpartition("::")[2].rpartition(".")[2] for name in targets if not name.partition("::")[0].endswith(".py")
    }
    called = {name for item in inside.values() for name, count in item.native.items() if count}
    for name in {*whole["base"].native, *whole["head"].native}:
        base, head = (whole[side].native.get(name) for side in _SIDES)
        patch = name.partition(":")[2] in patched
        found.append(_function(name, base, head, native=True, patch=patch, called=not patch and name in called))
    changed = [one for one in found if one.ir_base != one.ir_head]
    return sorted(changed, key=lambda one: (not one.in_patch, -abs((one.ir_head or 0) - (one.ir_base or 0)), one.name))


def _function(
    name: str, base: int | None, head: int | None, *, native: bool, patch: bool, called: bool
) -> FunctionCount:
    return FunctionCount(name=name, ir_base=base, ir_head=head, native=native, in_patch=patch, called_from_patch=called)
