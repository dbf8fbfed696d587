"""Runs of the probe on the two sides of a change, at the same time and past crashes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from pathlib import Path

from perfquarry.data.records import Side
from perfquarry.harness.contracts import BuiltSide, Limits, ProbeItem, ProbeMode, ProbeReport, ProbeRequest
from perfquarry.harness.probing.prober import Prober
from perfquarry.testgen.settings import GenerateSettings

Results = Future[dict[str, ProbeItem]]
"""Items by node id of a process that may still be running."""
COVERAGE_SEED = 1
FILES_SHARE, FIRST_SHARE = 0.5, 0.15
"""Of `search_seconds`: CPU seconds of a run of test files, after which no further test of a slow one is begun; and of
their first run, which often shows enough.
"""
MAX_RESTARTS = 3
"""Processes started again without the test that ended the one before."""


@dataclass(frozen=True)
class Runner:
    """Probe processes of one change with the limits of its settings."""

    prober: Prober
    sides: Mapping[Side, BuiltSide]
    tools: Mapping[Side, Path]
    """Folder with coverage and yappi for each side's interpreter; without, the environment must have them."""
    settings: GenerateSettings
    pool: Executor

    def files(
        self,
        mode: ProbeMode,
        arguments: Mapping[Side, Sequence[str]],
        include: Mapping[Side, Sequence[str]],
        left_out: Mapping[Side, Sequence[str]],
    ) -> dict[Side, ProbeReport]:
        """One process a side, both at once, over test files: whole ones, unless they take long.

        Where tests are left out, since they ran before, the others have more time.
        """
        share = FILES_SHARE if any(left_out.values()) else FIRST_SHARE
        seconds = share * self.settings.search_seconds
        started: dict[Side, Future[ProbeReport]] = {
            side: self.pool.submit(self._files, side, mode, arguments[side], include[side], seconds, left_out[side])
            for side in self.sides
        }
        return {side: report.result() for side, report in started.items()}

    def _files(
        self,
        side: Side,
        mode: ProbeMode,
        files: Sequence[str],
        include: Sequence[str],
        seconds: float,
        left_out: Sequence[str],
    ) -> ProbeReport:
        """Runs them again without a test that ended the process: what all others executed is lost with it."""
        spent = 0.0
        items: dict[str, ProbeItem] = {}
        for _ in range(MAX_RESTARTS + 1):
            fatal = {node: item for node, item in items.items() if item.outcome == "crashed"}
            report = self._run(side, mode, files, COVERAGE_SEED, include, seconds, [*left_out, *fatal])
            items, spent = fatal | {item.node: item for item in report.items}, spent + report.cpu_seconds
            if report.outcome != "crashed" or all(item.outcome != "crashed" for item in report.items):
                break
        return report.model_copy(update={"items": list(items.values()), "cpu_seconds": spent})

    def start(self, side: Side, mode: ProbeMode, nodes: Sequence[str], seed: int) -> Results:
        """One item for each of the nodes; those that a dying process did not come to run again without its last."""
        return self.pool.submit(self._nodes, side, mode, list(nodes), seed)

    def _nodes(self, side: Side, mode: ProbeMode, nodes: list[str], seed: int) -> dict[str, ProbeItem]:
        items: dict[str, ProbeItem] = {}
        for _ in range(MAX_RESTARTS + 1):
            missing = [node for node in nodes if node not in items]
            report = self._run(side, mode, missing, seed)
            items.update((item.node, item) for item in report.items)
            if report.outcome == "finished" or not report.items:
                break
        return items | {node: missing_item(node, report) for node in nodes if node not in items}

    def _run(
        self,
        side: Side,
        mode: ProbeMode,
        arguments: Sequence[str],
        seed: int,
        include: Sequence[str] = (),
        files_seconds: float = 0.0,
        left_out: Sequence[str] = (),
    ) -> ProbeReport:
        if not arguments:
            return ProbeReport(outcome="finished")
        request = ProbeRequest(
            mode=mode,
            arguments=list(arguments),
            left_out=list(left_out),
            include=list(include),
            files_seconds=files_seconds,
            test_timeout=self.settings.test_timeout,
            extra_paths=[str(self.tools[side])] if side in self.tools else [],
        )
        limits = Limits(wall_seconds=self.settings.timeout, memory_bytes=self.settings.memory_bytes)
        return self.prober.run(self.sides[side], request, limits=limits, hash_seed=seed)


def missing_item(node: str, report: ProbeReport) -> ProbeItem:
    """What to hold of a test that a process ended without reporting."""
    path = node.partition("::")[0]
    message = report.collect_errors.get(path) or report.output or "the test was not found"
    outcome = "timeout" if report.outcome == "timeout" else "error"
    return ProbeItem.model_validate({"node": node, "outcome": outcome, "message": message[-2048:]})
