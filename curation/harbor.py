"""Tasks in Harbor's format (schema 1.4): the texts of a task's folder, and what its grader is given.

The trees come from `harness.grading.task_folder`; docs/harbor.md says what the reward means.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from perfquarry.curation import Network
from perfquarry.data.records import Record, Setting, Task
from perfquarry.harness.grading.task_folder import TESTBED, ExpertFiles
from perfquarry.harness.settings import MeasureSettings

WORK = "/perfquarry"
"""Where the grader puts its trees, in a container of its own."""
ARTIFACT = "/logs/verifier"
SIDE_SECONDS = 1.0
"""Seconds of turns of one side in a pair, of all workloads together: a grading should take well under a minute."""
FEWEST_SECONDS = 0.08
"""The same of one workload, at least."""
LOAD_SECONDS = 2.0
"""Seconds in which a process has loaded its workloads, generously."""
ROLES = 4
"""Processes of a pair at most: base, expert's side, candidate, the base again."""
_UNIT_TEST = "unit-test"
_SCHEMA = "1.4"


class RunnableTask(Record):
    """How a task's base is run."""

    python: str
    """The environment's interpreter, in the image."""
    source_roots: list[str]
    """Folders for sys.path, relative to the tree."""
    tests: list[str]
    """Test files that have to pass."""
    protected: str
    """Expression of the paths that stay the base's."""
    writable_tree: bool = False
    """Each process has a copy of its side's tree, into which it may write."""


def task_toml(
    task: Task,
    image: str,
    network: Network,
    version: str,
    settings: MeasureSettings | None = None,
    org: str = "perfquarry",
) -> str:
    """`task.toml`; nothing of it is shown to the solver.

    The verifier's container is a fresh one of the same image, and the folder the solver worked in is brought into it as
    an artifact: no program of the solver's container has a part in that. (With `exclude`, that container's tar would
    pack it.) `image` has the base at `TESTBED`, and is
    named by digest where others are to pull it.
    """
    published = {"speedup": task.speedup, "low": task.low, "high": task.high, "delta": task.delta}
    hidden = sum(one.role == "hidden" for one in task.workloads)
    provenance = {
        "repo": task.codebase,
        "url": task.url,
        "base_sha": task.base_sha,
        "head_sha": task.head_sha,
        "created_at": task.created_at_commit.isoformat(),
        "licence": task.licence,
        "python": task.python,
        "requirements": task.requirements,
        "workloads": len(task.workloads),
        "hidden_workloads": hidden,
        "machine_id": task.machine_id,
        "perfquarry": version,
        **{name: value for name, value in published.items() if value is not None},
    }
    environment = {"docker_image": image, "network_mode": network, "cpus": 2, "memory_mb": 8192, "workdir": TESTBED}
    tables: dict[str, Mapping[str, Any]] = {
        "task": {
            "name": f"{org}/{task.task_id}",
            "description": f"Make code of {task.codebase} faster",
            "keywords": ["performance", "python"],
        },
        "metadata": provenance,
        "agent": {"timeout_sec": 3600.0},
        "verifier": {"environment_mode": "separate", "timeout_sec": time_limit(task, settings or MeasureSettings())},
        "environment": environment,
    }
    top = {"schema_version": _SCHEMA, "artifacts": [TESTBED]}
    lines = [f"{key} = {_toml(value)}" for key, value in top.items()]
    for name, table in tables.items():
        lines += ["", f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def instruction(task: Task, problem: str = "", setting: Setting = "realistic") -> str:
    """What the solver reads: the problem and the rules; a visible script, where the task has one.

    Args:
        task: the task.
        problem: a text that names the problem; empty: the task's own, end to end where it has one.
        setting: of the text; gso brings the script itself, and fuzzy is shown none.
    """
    text = problem or task.problem_realistic or task.problem_oracle
    visible = [one for one in task.workloads if one.role == "visible" and setting in ("oracle", "realistic")]
    scripts = [one.code.rstrip() for one in visible if one.source != _UNIT_TEST][:1]
    tests = [f"- `{one.code}`" for one in visible if one.source == _UNIT_TEST]
    parts = [text.rstrip(), f"The repository is `{TESTBED}`; `python` there has what it needs."]
    if scripts:
        parts.append(f"One script that is timed (its `experiment`):\n\n```python\n{scripts[0]}\n```")
    elif tests:
        parts.append("\n".join(["Tests that are timed:", "", *tests]))
    if any(one.role == "hidden" for one in task.workloads):
        parts.append("Others are timed as well, with other inputs.")
    parts.append(_GRADING)
    return "\n\n".join(parts) + "\n"


_GRADING = """\
How it is graded: your folder is compared with the base; changes of tests and of their configuration, \
and compiled files, do not count. Base, your version and the version of the project's own developers are \
timed in alternating turns on one core. The change has to make first calls faster, too, where theirs does \
(a memo of earlier calls does not), must give the same results for data drawn anew, and must reach 95 % of \
their speedup."""


def dockerfile(image: str) -> str:
    """The environment for programs that build it: the image, and nothing more."""
    return f"FROM {image}\nWORKDIR {TESTBED}\n"


def test_script(runnable: RunnableTask) -> str:
    """`tests/test.sh`: the grader, by the environment's interpreter without anything of the environment."""
    python = shlex.quote(runnable.python)
    return f"#!/bin/sh\nchmod 700 /tests\ncd /\nexec {python} -E -s -S /tests/grader/grade.py /tests/task.json\n"


def solution(files: ExpertFiles) -> str:
    """`solution/solve.sh`: the expert's files put in place."""
    lines = [f"rm -f {shlex.quote(path)}" for path in files.deleted]
    if files.written:
        parts = " ".join(f'"$here/{name}"' for name in files.archive)
        lines.append(f"cat {parts} | base64 -d | tar -xz --no-same-owner")
    return "\n".join(["#!/bin/sh", "set -e", 'here=$(cd "$(dirname "$0")" && pwd)', f"cd {TESTBED}", *lines]) + "\n"


def grading(
    task: Task, runnable: RunnableTask, base: Sequence[str], expert: ExpertFiles, settings: MeasureSettings
) -> dict[str, Any]:
    """`tests/task.json`: all that the grader (`harness/grader`) is given; `base` names the files that hold the base."""
    workloads = [
        {
            "node": one.node,
            "script": one.source != _UNIT_TEST,
            "code": one.code if one.source != _UNIT_TEST else "",
            "hidden": one.role == "hidden",
        }
        for one in task.workloads
    ]
    return {
        "task_id": task.task_id,
        "testbed": TESTBED,
        "work": WORK,
        "logs": ARTIFACT,
        "base": list(base),
        "gold": list(expert.archive),
        "gold_deleted": list(expert.deleted),
        "python": runnable.python,
        "source_roots": runnable.source_roots,
        "protected": runnable.protected,
        "writable_tree": runnable.writable_tree,
        "tests": runnable.tests,
        "workloads": workloads,
        "threshold": 0.95,
        "schedule": {
            "pairs": settings.pairs,
            "most_pairs": settings.max_pairs,
            "turn_seconds": _turn_seconds(task, settings),
            "fewest_turns": settings.fewest_turns,
            "most_turns": settings.most_turns,
            "turn_error": settings.turn_error,
        },
        "wall_seconds": settings.max_process_seconds,
        "memory_bytes": settings.memory_bytes,
        "limits": {
            "warmups": settings.warmups,
            "test_timeout": settings.call_seconds,
            "result_bytes": 16 * 1024**2,
        },
    }


def _turn_seconds(task: Task, settings: MeasureSettings) -> float:
    """Seconds of turns of one side in a pair, for each workload: the fewer, the more workloads there are."""
    return round(min(settings.turn_seconds, max(FEWEST_SECONDS, SIDE_SECONDS / max(1, len(task.workloads)))), 3)


def time_limit(task: Task, settings: MeasureSettings) -> float:
    """Time limit of a grading, seconds: three times what all pairs should take; most end after a third of them."""
    calls = sum(one.base_seconds for one in task.workloads) * (settings.fewest_turns + settings.warmups)
    turns = 2 * len(task.workloads) * _turn_seconds(task, settings)  # what is around a call is in it, and the warm-ups
    return round(300 + 3 * settings.max_pairs * ROLES * (LOAD_SECONDS + turns + calls))


def _toml(value: Any) -> str:
    """A value of TOML; JSON's texts, numbers and lists are TOML's, too, but for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
