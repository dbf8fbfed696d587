"""The decision on all timings of a repository together, because q-values need the whole family."""

from __future__ import annotations

from pathlib import Path

from perfquarry.curation.assembly import ChangeTexts, assemble
from perfquarry.curation.evidence import decide
from perfquarry.curation.rows_of_run import timings_in_force
from perfquarry.curation.settings import SelectSettings
from perfquarry.data.own_rows import OwnRows
from perfquarry.data.records import Build, Evidence, Task, Workload
from perfquarry.data.registry import Repository
from perfquarry.miners.judge.verdicts import verdict_with_functions
from perfquarry.miners.patches import licence_at, split, version_at


def decided(
    rows: OwnRows, clone: Path, repository: Repository, settings: SelectSettings, family: str
) -> tuple[list[Evidence], list[Task]]:
    """What the timings in force show, and of each change its task, accepted or rejected.

    `family` is the configuration hash of the decision (`rows_of_run.family`).
    """
    stamp = rows.stamp("select").model_copy(update={"config_hash": family})
    timings = timings_in_force(rows)
    evidence = decide(timings, settings, stamp)
    tasks = []
    for change_id in dict.fromkeys(row.change_id for row in evidence):
        change = rows.change(change_id)
        patches = split(clone, change)
        texts = ChangeTexts(
            patch=patches.patch,
            test_patch=patches.test_patch,
            version=version_at(clone, change.base_sha),
            licence=licence_at(clone, change.head_sha),
        )
        verdict, builds = verdict_with_functions(rows, clone, change), rows.rows_of(Build, "build", change_id)
        kept = kept_workloads(rows, change_id)
        tasks.append(assemble(change, verdict, builds, kept, evidence, timings, texts, repository, settings, stamp))
    return evidence, tasks


def kept_workloads(rows: OwnRows, change_id: str) -> list[Workload]:
    """Those of a change that are timed."""
    return [row for row in rows.rows_of(Workload, "generate", change_id) if row.status == "kept"]
