"""A released task made from the release alone, and run: with the expert's patch, and with none."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import harmonic_mean

from perfquarry.curation.evidence import decide
from perfquarry.curation.release.check import GoldRun
from perfquarry.curation.release.selection import as_task
from perfquarry.curation.release.sources import pack_of, patched, unpack
from perfquarry.curation.revalidation import workloads_of
from perfquarry.curation.sessions import measure
from perfquarry.curation.settings import MakingSettings
from perfquarry.data.errors import EnvironmentFailed
from perfquarry.data.home import Home
from perfquarry.data.records import Build, Evidence, ReleasedTask, Side, Stamp
from perfquarry.data.registry import Repository, names, resolve
from perfquarry.harness.building.builder import STAGE_VERSION, Builder
from perfquarry.harness.contracts import BuiltSide, Files, Limits, ProbeItem, ProbeRequest
from perfquarry.harness.measuring.machine import measurement_lock
from perfquarry.harness.runtime import Runtime
from perfquarry.testgen.runs import Runner, missing_item

_SEEDS = (1, 2, 3)
"""PYTHONHASHSEED of the runs of tests: a test fails when it fails in all."""


@dataclass(frozen=True)
class ExpertRuns:
    """Runs tasks of one release; implements `curation.release.check.GoldRunner`."""

    folder: Path
    """Of the release: all that is taken of the task."""
    home: Home
    """Where environments and trees are made; may be empty."""
    settings: MakingSettings

    def run_gold(self, task: ReleasedTask) -> GoldRun:
        """Makes the base and the patched base in the base's environment, runs the tests and measures the workloads.

        Raises:
            InputError: the release's sources are damaged.
            InfrastructureError: the machine's own fault.
        """
        began = time.monotonic()
        try:
            base, expert = self.sides(task)
        except EnvironmentFailed as error:
            return _unrun(task, _brief(str(error)))
        wrong = self.failures(task, base, expert)
        gold = self.measured(task, base, expert) if not wrong else []
        null = self.measured(task, base, base)
        kept = [row for row in gold if row.status == "kept"]
        scored = [row for row in null if row.status == "kept"]
        return GoldRun(
            task_id=task.task_id,
            gold=bool(kept),
            gold_detail=wrong or _details(gold),
            null=not scored and len(null) == len(task.workloads),
            null_detail=_details(null),
            speedup=harmonic_mean([row.speedup or 0.0 for row in kept]) if kept else None,
            low=harmonic_mean([row.low or 0.0 for row in kept]) if kept else None,
            high=harmonic_mean([row.high or 0.0 for row in kept]) if kept else None,
            accepted=len(kept),
            workloads=len(task.workloads),
            seconds=time.monotonic() - began,
        )

    def sides(self, task: ReleasedTask) -> tuple[BuiltSide, BuiltSide]:
        """The base and the base with the expert's patch, both in the environment of the recipe.

        Raises:
            EnvironmentFailed: one cannot be made here, or the patch does not apply.
            InputError: the release's sources are damaged.
        """
        builder, rows = self.builds(task)
        return builder.reopen(rows)

    def builds(self, task: ReleasedTask) -> tuple[Builder, list[Build]]:
        """What makes both sides, and their rows, the base's first.

        Raises:
            EnvironmentFailed: the patch does not apply.
            InputError: the release's sources are damaged.
        """
        clone, recipe = self.home.clone(task.repo), task.recipe
        unpack(pack_of(self.folder, task.repo), clone)
        head = patched(clone, recipe.tree, task.patch)
        if head is None:
            raise EnvironmentFailed("its patch does not apply to its base")
        builder = Builder(
            self.home,
            clone,
            _repository(task),
            self.runtime.sandbox,
            self.settings.build,
            _stamp(task),
            version=recipe.build_version,
        )
        trees: dict[Side, str] = {"base": recipe.tree, "head": head}
        rows = [
            Build(
                **_stamp(task).fields(),
                build_id=recipe.environment_id,
                change_id=task.task_id,
                side=side,
                sha=tree,
                python=recipe.python,
                environment_id=recipe.environment_id,
                requirements=recipe.requirements,
                commands=recipe.install_commands,
                source_roots=recipe.source_roots,
                writable_tree=recipe.writable_tree,
            )
            for side, tree in trees.items()
        ]
        return builder, rows

    def failures(self, task: ReleasedTask, base: BuiltSide, head: BuiltSide) -> str:
        """What fails at the head, or at the base already; empty when all tests pass and scripts agree on results."""
        references: dict[str, Files] = {}
        for built in (base, head):
            items, results = self._correctness(task, built, references)
            for item in items:
                if item.outcome != "passed":
                    return f"{item.node}: {item.outcome} at the {built.side}: {item.message}"
            references = results
        return ""

    def _correctness(
        self, task: ReleasedTask, built: BuiltSide, references: dict[str, Files]
    ) -> tuple[list[ProbeItem], dict[str, Files]]:
        """Tests; scripts in a process of their own, their results stored at the base and compared at the head."""
        settings = self.settings.generate
        limits = Limits(wall_seconds=settings.timeout, memory_bytes=settings.memory_bytes)
        items = self._tests(task, built)
        results: dict[str, Files] = {}
        if scripts := _scripts(task):
            calls = dict.fromkeys(scripts, 1)
            request = ProbeRequest(
                mode="time", scripts=scripts, store=not references, references=references, warmups=1, calls=calls
            )
            report = self.runtime.prober.run(built, request, limits=limits, hash_seed=_SEEDS[0])
            found = {item.node: item for item in report.items}
            items += [found.get(name) or missing_item(name, report) for name in scripts]
            results = report.results
        return items, results

    def _tests(self, task: ReleasedTask, built: BuiltSide) -> list[ProbeItem]:
        """The tests; those that fail once more in fresh processes: some of upstream's assert times of their own."""
        items: dict[str, ProbeItem] = {}
        with ThreadPoolExecutor(max_workers=1) as pool:
            runner = Runner(self.runtime.prober, {built.side: built}, {}, self.settings.generate, pool)
            for seed in _SEEDS:
                left = [node for node in task.tests if node not in items or items[node].outcome != "passed"]
                items |= runner.start(built.side, "check", left, seed).result()
        return list(items.values())

    def measured(self, task: ReleasedTask, base: BuiltSide, head: BuiltSide) -> list[Evidence]:
        """Both sessions of all workloads, and the decision on each by the rule that makes tasks."""
        settings, stamp = self.settings, _stamp(task)
        with measurement_lock() as core:
            timings = measure(
                task.task_id,
                workloads_of(as_task(task), stamp),
                base,
                head,
                self.runtime.prober,
                self.runtime.machine,
                settings.measure,
                settings.select,
                stamp,
                core=core,
            )
        return decide(timings, settings.select, stamp)

    @cached_property
    def runtime(self) -> Runtime:
        """Runs the tasks' programs."""
        return Runtime(self.home, self.settings.sandbox)


def _brief(text: str) -> str:
    """What failed and how it ended: a log between them may be long."""
    lines = text.splitlines()
    return "\n".join(lines if len(lines) <= 8 else [*lines[:2], "…", *lines[-5:]])


def _unrun(task: ReleasedTask, why: str) -> GoldRun:
    return GoldRun(
        task_id=task.task_id, gold=False, gold_detail=why, null=False, null_detail=why, workloads=len(task.workloads)
    )


def _details(evidence: Sequence[Evidence]) -> str:
    return "; ".join(row.detail for row in evidence) or "nothing could be timed"


def _stamp(task: ReleasedTask) -> Stamp:
    return Stamp(repo=task.repo, stage_version=STAGE_VERSION, config_hash="release")


def _repository(task: ReleasedTask) -> Repository:
    if task.repo in names():
        return resolve(task.repo)
    return Repository(name=task.repo, codebase=task.codebase, url=task.url, licence=task.licence)


def _scripts(task: ReleasedTask) -> dict[str, str]:
    return {one.node: one.code for one in task.workloads if one.source != "unit-test"}
