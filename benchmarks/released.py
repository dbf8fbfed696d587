"""The tasks of a release, with their classes and what Harbor's runs of them gave.

    python -m benchmarks.released RELEASE [JOBS ...]

JOBS are Harbor's folders of jobs (`harbor run -o JOBS`), of its agents oracle and nop. Writes the section A release of
real tasks of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.report import machine_facts, replace_section, table
from perfquarry.curation.release.folder import configurations_of, read_table
from perfquarry.curation.release.task_folders import TaskManifest
from perfquarry.data.records import ReleasedTask

AGENTS = ("oracle", "nop")
CLASSES = ("default", "side_effect", "behaviour_changed")


@dataclass(frozen=True)
class Trial:
    """One run of a task by Harbor."""

    task_id: str
    agent: str
    reward: float | None
    """None: Harbor reports an error."""
    seconds: float


def main() -> None:
    """Reads the release and the jobs, and writes the section."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("release", type=Path)
    parser.add_argument("jobs", type=Path, nargs="*")
    options = parser.parse_args()
    text = section(options.release, [one for folder in options.jobs for one in trials(folder)])
    replace_section("A release of real tasks", text)
    print(text)


def trials(jobs: Path) -> Iterator[Trial]:
    """The finished runs in a folder of jobs."""
    for file in sorted(jobs.glob("*/*/result.json")):
        said = json.loads(file.read_text(encoding="utf-8"))
        if said["finished_at"] is None:
            continue
        begun, ended = (datetime.fromisoformat(said[name]) for name in ("started_at", "finished_at"))
        reward = ((said["verifier_result"] or {}).get("rewards") or {}).get("reward")
        yield Trial(
            said["task_name"].rpartition("/")[2], said["agent_info"]["name"], reward, (ended - begun).total_seconds()
        )


def section(release: Path, runs: Sequence[Trial]) -> str:
    """What is in the release, a row for each task, and what Harbor's runs took."""
    manifest = TaskManifest.read(release)
    tasks = [
        (kind, ReleasedTask.model_validate(row))
        for kind in CLASSES
        if kind in configurations_of(release)
        for row in read_table(release, kind).to_pylist()
    ]
    by_task = defaultdict(list)
    for run in runs:
        by_task[run.task_id].append(run)
    rows = [_row(kind, task, by_task[task.task_id]) for kind, task in sorted(tasks, key=lambda one: one[1].task_id)]
    kinds = Counter(kind for kind, _ in tasks)
    lines = [
        f"{machine_facts()}. {manifest.name} {manifest.version}: {len(tasks)} tasks of "
        f"{len({task.repo for _, task in tasks})} repositories ({_counted(kinds)}); {len(manifest.tasks)} folders, "
        f"whose images are {manifest.image_bytes / 2**20:.0f} MiB together, each blob counted once. The classes are "
        "the heuristic's. Harbor took the tasks from a git server and the images from a registry, of this machine.",
        "",
        table(("task", "what", "speedup", "workloads", "class", *(f"{agent}: rewards" for agent in AGENTS)), rows),
    ]
    for agent in AGENTS:
        if times := [run.seconds for run in runs if run.agent == agent]:
            lines += [
                "",
                f"A trial of {agent}: median {median(times):.0f} s, at most {max(times):.0f} s ({len(times)}).",
            ]
    return "\n".join(lines)


def _row(kind: str, task: ReleasedTask, runs: Iterable[Trial]) -> list[str]:
    given = {agent: [run.reward for run in runs if run.agent == agent] for agent in AGENTS}
    sources = Counter(one.source for one in task.workloads)
    return [
        task.task_id,
        task.title.replace("|", "\\|")[:70],
        f"{task.speedup:.2f} [{task.low:.2f}, {task.high:.2f}]",
        _counted(sources),
        kind.replace("default", "intended"),
        *(", ".join("error" if one is None else f"{one:g}" for one in given[agent]) for agent in AGENTS),
    ]


def _counted(counts: Counter[Any]) -> str:
    return ", ".join(f"{number} {name.replace('default', 'intended')}" for name, number in sorted(counts.items()))


if __name__ == "__main__":
    main()
