"""Statistics of tasks as GSO's and SWE-Perf's papers print them, test files left out.

SWE-Perf (arXiv 2507.12415), table 1; GSO (arXiv 2505.23671), table 2, figure 9 and appendix C.2: lines, files,
hunks, functions and languages of the expert's patch, depth of calls, speedup.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from pydantic import Field

from perfquarry.curation.patch import files_of
from perfquarry.data.records import Change, Record, Task


class TaskFigures(Record):
    """Figures of one task. Test files count nowhere."""

    task_id: str
    codebase_files: int
    codebase_lines: int
    lines: int = Field(description="Lines added and deleted by the expert.")
    files: int
    hunks: int = Field(description="Of the patch as it is published: moves are a deletion and an addition.")
    functions: int = Field(description="Functions edited: those of the oracle problem.")
    realistic: int = Field(description="Functions that the workloads call directly.")
    languages: list[str] = Field(description="Of the changed source files, the most frequent first.")
    workloads: int
    base_seconds: float = Field(description="One call at the base, mean over the workloads.")
    speedup: float
    gain: float = Field(description="δ, SWE-Perf's ratio of performance.")
    depth: int | None = Field(
        default=None, description="Calls from a workload down to the nearest changed function; null: not measured."
    )


class Line(Record):
    """One line of the overview; values are null where they have no meaning."""

    category: str
    metric: str
    mean: float | None = None
    median: float | None = None
    low: float | None = None
    high: float | None = None


def profile_of(task: Task, change: Change, size: tuple[int, int], depth: int | None = None) -> TaskFigures:
    """Figures of an accepted task; `size` are the source files of its base and their lines."""
    sources = [file for file in change.files if file.role == "source"]
    languages = [file.language for file in sources if file.language]
    return TaskFigures(
        task_id=task.task_id,
        codebase_files=size[0],
        codebase_lines=size[1],
        lines=task.lines_changed,
        files=task.files_changed,
        hunks=sum(file.hunks for file in files_of(task.patch)),
        functions=len(task.oracle_targets),
        realistic=len(task.realistic_targets),
        languages=sorted(set(languages), key=lambda one: (-languages.count(one), one)),
        workloads=len(task.workloads),
        base_seconds=fmean(one.base_seconds for one in task.workloads),
        speedup=task.speedup or 1.0,
        gain=task.delta or 0.0,
        depth=depth,
    )


def overview(profiles: Sequence[TaskFigures]) -> list[Line]:
    """The table: mean, median, least and most of each figure; of languages how many tasks have each."""
    import pandas as pd  # takes a second

    lines = [Line(category="Size", metric="tasks", mean=len(profiles))]
    if not profiles:
        return lines
    frame = pd.DataFrame([one.model_dump() for one in profiles])
    for category, metric, name in _FIGURES:
        values = frame[name].dropna().astype(float)
        if len(values):
            figures = {"mean": values.mean(), "median": values.median(), "low": values.min(), "high": values.max()}
            lines.append(Line(category=category, metric=metric, **figures))
    counts = frame["languages"].explode().dropna().value_counts().sort_index()
    counts = counts.sort_values(ascending=False, kind="stable")
    counts["several"] = (frame["languages"].str.len() > 1).sum()
    return lines + [Line(category="Languages", metric=f"tasks with {name}", mean=many) for name, many in counts.items()]


_FIGURES = (
    ("Codebase", "files (non-test)", "codebase_files"),
    ("Codebase", "lines (non-test)", "codebase_lines"),
    ("Expert patch", "lines edited", "lines"),
    ("Expert patch", "files edited", "files"),
    ("Expert patch", "hunks", "hunks"),
    ("Expert patch", "functions edited", "functions"),
    ("Tests", "workloads", "workloads"),
    ("Tests", "original runtime / s", "base_seconds"),
    ("Functions", "oracle", "functions"),
    ("Functions", "realistic", "realistic"),
    ("Functions", "call depth", "depth"),
    ("Performance", "speedup", "speedup"),
    ("Performance", "gain (δ)", "gain"),
)
