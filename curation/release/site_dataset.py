"""The index of a release's tasks, and the page of the whole dataset."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import Markup

from perfquarry.curation.plots.strips import Strip, strips
from perfquarry.curation.release.card import measured_again, statistics_of
from perfquarry.curation.release.plots import release_plots
from perfquarry.curation.release.site_data import PageSource
from perfquarry.curation.release.site_task import kind_of
from perfquarry.curation.review.rendering import inline
from perfquarry.data.records import ReleasedTask

_LOAD = """\
from datasets import load_dataset

load_dataset("RELEASE", split="test")             # one row per task
load_dataset("RELEASE", "gso", split="test")      # the columns of GSO
load_dataset("RELEASE", "sweperf", split="test")  # the columns of SWE-Perf
load_dataset("RELEASE", "timings", split="test")  # every timed process
"""
_TEXT = 4000
"""Characters of a message that are searched."""


def index_page(source: PageSource) -> dict[str, Any]:
    """What the template of the list gets."""
    axis = strips([(task.low, task.speedup, task.high) for task in source.tasks])
    rows: list[dict[str, Any]] = [
        {
            "task": task,
            "strip": strip,
            "date": f"{task.created_at:%Y-%m-%d}",
            "kinds": sorted({one.source for one in task.workloads}),
            "kind": kind_of(task),
        }
        for task, strip in zip(source.tasks, axis.strips, strict=True)
    ]
    finite = [task.speedup for task, strip in zip(source.tasks, axis.strips, strict=True) if strip]
    return {
        "rows": rows,
        "axis": axis,
        "classes": any(row["kind"] for row in rows),
        "choices": [
            ("repo", "Repository", _counts(task.codebase for task in source.tasks)),
            ("year", "Year", _counts(f"{task.created_at:%Y}" for task in source.tasks)),
            ("kind", "Class", _counts(kind_of(task) for task in source.tasks if kind_of(task))),
            ("workload", "Workloads", _counts(kind for row in rows for kind in row["kinds"])),
        ],
        "least": f"{math.floor(10 * min(finite)) / 10:g}" if finite else "",
        "most": f"{math.ceil(10 * max(finite)) / 10:g}" if finite else "",
        "index_json": _json([_searched(**row) for row in rows]),
    }


def _searched(task: ReleasedTask, strip: Strip | None, date: str, kinds: list[str], kind: str) -> dict[str, Any]:
    """What the page filters by; a speedup that is no number is left to the row."""
    texts = [task.task_id, task.title, task.codebase, task.head_commit, *task.oracle_targets, *task.apis]
    return {
        "repo": task.codebase,
        "at": f"{date} {task.created_at:%H:%M}",
        "kind": kind,
        "workloads": kinds,
        "speedup": task.speedup if strip else None,
        "title": task.title,
        "text": " ".join([*texts, task.message[:_TEXT]]).lower(),
    }


def _json(value: object) -> Markup:
    """JSON that nothing can end within a page's script element."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)  # noqa: S704 - nothing of it is markup


def _counts(values: Iterable[str]) -> list[tuple[str, int]]:
    return sorted(Counter(values).items())


def dataset_page(source: PageSource) -> dict[str, Any]:
    """What the template of the dataset's page gets."""
    manifest, tasks = source.manifest, source.tasks
    facts = [
        ("tasks", f"{len(tasks):,}"),
        ("repositories", f"{len(manifest.sources):,}"),
        ("made by", manifest.made_by),
        ("made on", f"{manifest.made_at:%Y-%m-%d}"),
        (
            "fixes public",
            f"{manifest.oldest:%Y-%m-%d} to {manifest.newest:%Y-%m-%d}" if manifest.oldest and manifest.newest else "–",
        ),
        ("expected false", f"at most {manifest.expected_false:.2g}"),
        ("accepted by curators", f"{manifest.accepted_by_curators} of {len(tasks)}"),
    ]
    tables = [_repositories(source), _funnel(source), _machines(source), _again(source), _configurations(source)]
    drawn = release_plots(tasks, manifest.sources, headline=False)
    plots = [{"id": one.name, "title": one.title, "svg": inline(one.svg)} for one in drawn]
    return {"facts": facts, "tables": tables, "plots": plots, "load": _LOAD}


def _repositories(source: PageSource) -> dict[str, Any]:
    heads = ["repository", "licence", "tasks", "median speedup", "range", "median δ", "workloads", "tests", "counted",
             "clock and count agree"]  # fmt: skip
    found = [
        statistics_of(one, [task for task in source.tasks if task.repo == one.repo]) for one in source.manifest.sources
    ]
    keys = ("codebase", "licence", "tasks", "median", "range", "delta", "workloads", "tests", "counted", "agree")
    note = "Patches, tests and sources are under the licences of their repositories."
    return _table("repositories", "Repositories", heads, [[one[key] for key in keys] for one in found], note)


def _funnel(source: PageSource) -> dict[str, Any]:
    stages = list(dict.fromkeys(stage.stage for one in source.manifest.sources for stage in one.funnel.stages))
    lines = []
    for one in source.manifest.sources:
        kept = {stage.stage: stage.kept for stage in one.funnel.stages}
        until = f"{one.mined_until:%Y-%m-%d}"
        lines.append([one.codebase, *(f"{kept[name]:,}" if name in kept else "–" for name in stages), one.tasks])
        lines[-1] += [f"{one.funnel.pending:,}", until]
    heads = ["repository", *stages, "released", "not yet tried", "looked at until"]
    note = "Changes that each stage kept; those not yet tried wait for one of the stages."
    return _table("funnel", "How they were found", heads, lines, note)


def _machines(source: PageSource) -> dict[str, Any]:
    """Which machine measured what, by the timings that are released."""
    found: dict[str, tuple[int, int]] = {}
    if source.timings.num_rows:
        machines = pc.struct_field(source.timings["machine"], "machine_id")
        pairs = pa.table({"machine": machines, "task": source.timings["task_id"]}).group_by("machine")
        counted = pairs.aggregate([("task", "count_distinct"), ("task", "count")])
        found = {row["machine"]: (row["task_count_distinct"], row["task_count"]) for row in counted.to_pylist()}
    lines = [
        [
            f"{one.cpu} ({one.machine_id})", one.cores, f"{one.memory_bytes / 2**30:.0f} GiB",
            f"{one.system} {one.kernel}", one.governor or "unknown", one.sandbox,
            *(f"{count:,}" for count in found.get(one.machine_id, (0, 0))),
        ]
        for one in source.manifest.machines
    ]  # fmt: skip
    heads = ["machine", "cores", "memory", "system", "governor", "sandbox", "tasks", "timed processes"]
    return _table("machines", "What was measured where", heads, lines)


def _again(source: PageSource) -> dict[str, Any]:
    heads = ["when", "machine", "load of others", "tasks", "held", "of this release", "held"]
    lines = [
        [
            f"{one['at']:%Y-%m-%d %H:%M}", f"{one['machine'].cpu} ({one['machine'].machine_id})", f"{one['load']:.2f}",
            one["tasks"], one["held"], one["released"], one["released_held"],
        ]
        for one in measured_again(source.revalidations, {task.task_id for task in source.tasks})
    ]  # fmt: skip
    note = "A task holds when all its workloads would be accepted once more."
    return _table("again", "Measured again", heads, lines, note)


def _configurations(source: PageSource) -> dict[str, Any]:
    lines = [[name, f"{rows:,}"] for name, rows in source.manifest.rows.items()]
    return _table("configurations", "Configurations", ["configuration", "rows"], lines)


def _table(name: str, title: str, heads: list[str], lines: list[list[Any]], note: str = "") -> dict[str, Any]:
    return {"id": name, "title": title, "heads": heads, "lines": lines, "note": note}
