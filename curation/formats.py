"""Tasks as rows of GSO's and SWE-Perf's datasets, and the export to Parquet.

Columns and their types are those of the published datasets: GSO (gso-bench/gso), fifteen;
SWE-Perf (SWE-Perf/SWE-Perf), fifteen, `duration_changes`, `patch_functions` and
`test_functions` being JSON strings there.
"""

from __future__ import annotations

import ast
import json
import platform
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from statistics import fmean
from string import Template
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from perfquarry.curation import Columns
from perfquarry.curation.targets import realistic_problem
from perfquarry.data import syntax
from perfquarry.data.errors import InputError
from perfquarry.data.files import writing
from perfquarry.data.records import Task
from perfquarry.data.records.task import TaskWorkload
from perfquarry.data.schema import to_table

UNIT_TEST = "unit-test"
_TEXTS = pa.list_(pa.string())


def _schema(*columns: tuple[str, pa.DataType, str]) -> pa.Schema:
    """A schema of columns with what each of them is."""
    return pa.schema([pa.field(name, kind, metadata={"description": what}) for name, kind, what in columns])


GSO_SCHEMA = _schema(
    ("instance_id", pa.string(), "`task_id`."),
    ("repo", pa.string(), "'owner/name' of the repository."),
    ("base_commit", pa.string(), "Commit the solver starts from."),
    ("opt_commit", pa.string(), "Commit of the expert."),
    ("api", pa.string(), "A public API that shows the change, else the first target."),
    ("prob_script", pa.string(), "The performance test that a solver may see: the visible one of the smallest id."),
    ("tests", _TEXTS, "Performance tests under GSO's contract, `prob_script` first."),
    ("hints_text", pa.string(), "The expert's message; reveals the fix."),
    ("setup_commands", _TEXTS, "Shell commands that fetch the base from upstream."),
    ("install_commands", _TEXTS, "Shell commands that make the environment and the native parts."),
    ("created_at", pa.string(), "When the fix became public, UTC."),
    ("gt_commit_message", pa.string(), "Equal to `hints_text`."),
    ("gt_diff", pa.string(), "The expert's whole diff."),
    ("arch", pa.string(), "Architecture of the machine."),
    ("instance_image_tag", pa.string(), "Always 'latest'."),
)
"""Columns of GSO's dataset."""

SWEPERF_SCHEMA = _schema(
    ("repo", pa.string(), "'owner/name' of the repository."),
    ("instance_id", pa.string(), "`task_id`."),
    ("patch", pa.string(), "The expert's patch without test files."),
    ("test_patch", pa.string(), "The part of the expert's diff that touches test files."),
    ("base_commit", pa.string(), "Commit the solver starts from."),
    ("head_commit", pa.string(), "Commit of the expert."),
    ("created_at", pa.string(), "When the fix became public, UTC."),
    ("version", pa.string(), "Version of the package at the base."),
    (
        "duration_changes",
        pa.string(),
        "JSON: one element, {test: {'base': [s…], 'head': [s…]}}, block values of the confirming session.",
    ),
    ("efficiency_test", _TEXTS, "Node ids of the unit tests that are timed."),
    ("patch_functions", pa.string(), "JSON: functions that the patch changes, by file."),
    ("problem_statement_oracle", pa.string(), "Problem text that names the functions to make faster."),
    ("test_functions", pa.string(), "JSON: functions that the tests call, by file."),
    ("problem_statement_realistic", pa.string(), "Problem text that names only what end users call."),
    ("human_performance", pa.float64(), "Mean δ over `efficiency_test`."),
)
"""Columns of SWE-Perf's dataset."""


def gso_row(task: Task) -> dict[str, Any]:
    """The task as a row of GSO's dataset.

    `tests` are runnable scripts; where the task has script workloads, these alone. The first is `prob_script`,
    the one a solver sees: of the visible ones that of the smallest id. Its speedup plays no part: the test
    that happened to be timed fastest would overstate the task and show where to look.
    """
    scripted = [workload for workload in task.workloads if workload.source != UNIT_TEST]
    workloads = sorted(scripted or task.workloads, key=lambda one: (one.role == "hidden", one.workload_id))
    scripts = [script(workload) for workload in workloads]
    names = [*task.apis, *task.realistic_targets, *task.oracle_targets]
    return {
        "instance_id": task.task_id,
        "repo": task.codebase,
        "base_commit": task.base_sha,
        "opt_commit": task.head_sha,
        "api": names[0].rpartition("::")[2] if names else "",
        "prob_script": scripts[0] if scripts else "",
        "tests": scripts,
        "hints_text": task.message,
        "setup_commands": task.setup_commands,
        "install_commands": task.install_commands,
        "created_at": f"{_utc(task):%Y-%m-%d %H:%M:%S}",
        "gt_commit_message": task.message,
        "gt_diff": task.patch + task.test_patch,
        "arch": {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine()),
        "instance_image_tag": "latest",
    }


def sweperf_row(task: Task) -> dict[str, Any]:
    """The task as a row of SWE-Perf's dataset, which knows unit tests only.

    `duration_changes` holds the confirming session alone: SWE-Perf's evaluation pools all
    elements of the list, and the first session was selected for being fast.
    """
    tests = unit_tests(task)
    nodes = [workload.node for workload in tests]
    last = json.loads(task.durations)[-1:]
    realistic = list(dict.fromkeys(call for workload in tests for call in workload.calls))
    return {
        "repo": task.codebase,
        "instance_id": task.task_id,
        "patch": task.patch,
        "test_patch": task.test_patch,
        "base_commit": task.base_sha,
        "head_commit": task.head_sha,
        "created_at": f"{_utc(task):%Y-%m-%dT%H:%M:%SZ}",
        "version": task.version,
        "duration_changes": json.dumps(
            [{node: session[node] for node in nodes if node in session} for session in last]
        ),
        "efficiency_test": nodes,
        "patch_functions": json.dumps(_by_file(task.oracle_targets)),
        "problem_statement_oracle": task.problem_oracle,
        "test_functions": json.dumps(_by_file(realistic)),
        "problem_statement_realistic": realistic_problem(task.codebase, realistic),
        "human_performance": fmean(workload.delta for workload in tests) if tests else None,
    }


def unit_tests(task: Task) -> list[TaskWorkload]:
    """The workloads of a task that are unit tests."""
    return [workload for workload in task.workloads if workload.source == UNIT_TEST]


def harness_texts() -> str:
    """What `script` adds to the repository's own words in any task."""
    return _template("gso_unit_test.txt") + _template("gso_main.txt")


def script(workload: TaskWorkload) -> str:
    """A runnable test under GSO's contract; for a unit test it runs the node in-process and times its call.

    The contract: `setup`, `experiment`, `store_result`, `load_result`, `check_equivalence`,
    `run_test(eqcheck, reference, prefix) -> seconds`, and a main that appends
    'Execution time: …' to a file.
    """
    if workload.source != UNIT_TEST:
        return _without_main(workload.code).rstrip() + "\n" + _template("gso_main.txt")
    # A node id may hold any character (parameters): as JSON within a literal it stays one line of plain ASCII.
    text = Template(_template("gso_unit_test.txt")).substitute(node_json=ascii(json.dumps(workload.code)))
    return text + _template("gso_main.txt")


def _template(name: str) -> str:
    return (resources.files("perfquarry.curation") / "templates" / name).read_text(encoding="utf-8")


def _without_main(code: str) -> str:
    """A script without its own `if __name__ == "__main__"`."""
    lines = code.splitlines(keepends=True)
    for node in reversed(syntax.parse(code).body):
        if isinstance(node, ast.If) and "__name__" in {getattr(part, "id", "") for part in ast.walk(node.test)}:
            del lines[node.lineno - 1 : node.end_lineno]
    return "".join(lines)


def export(tasks: Iterable[Task], path: Path, format: Columns = "native") -> int:
    """Writes the kept tasks to one Parquet file (zstd), replaced only when whole; returns the number of its rows.

    SWE-Perf's format has no row for a task without unit tests.

    Raises:
        InputError: the file cannot be written.
    """
    kept = [task for task in tasks if task.status == "kept" and (format != "sweperf" or unit_tests(task))]
    try:
        with writing(path) as file:
            pq.write_table(_table(kept, format), file, compression="zstd")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
    return len(kept)


def _table(tasks: Sequence[Task], format: Columns) -> pa.Table:
    if format == "gso":
        return pa.Table.from_pylist([gso_row(task) for task in tasks], schema=GSO_SCHEMA)
    if format == "sweperf":
        return pa.Table.from_pylist([sweperf_row(task) for task in tasks], schema=SWEPERF_SCHEMA)
    return to_table(tasks, Task)


def _utc(task: Task) -> datetime:
    return task.created_at_commit.astimezone(UTC)


def _by_file(targets: Iterable[str]) -> dict[str, list[str]]:
    """Functions by file, from 'path::function'."""
    files: dict[str, list[str]] = {}
    for target in targets:
        path, _, name = target.partition("::")
        files.setdefault(path, []).append(name)
    return files
