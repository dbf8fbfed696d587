"""All real changes that the project has measured and decided on, kept over the sessions; its tasks in one table.

    python -m benchmarks.decided add HOME …
    python -m benchmarks.decided table

`add` reads the decisions in force of homes, with the heuristic's class of each task and its last measurement again
(`perfquarry revalidate`), and keeps one line per change in `recordings/decided.jsonl`: a later decision replaces an
earlier one. `table` writes the section Real tasks of docs/benchmarks.md. `benchmarks.judge_labels` takes its labels by
measurement from the same file.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import replace_section, table
from perfquarry.curation.in_force import newest_tasks
from perfquarry.curation.intent_rows import intents_in_words
from perfquarry.data.home import Home
from perfquarry.data.records import Intent, Revalidation
from perfquarry.data.records.intent import HEURISTIC
from perfquarry.data.store import TableStore

KEPT = Path(__file__).parent / "recordings" / "decided.jsonl"


def decided_in(home: Path) -> Iterator[dict[str, Any]]:
    """What is kept of each decided change of a home."""
    store = TableStore(Home(home).tables)
    for folder in sorted(Home(home).tables.glob("tasks/repo=*")):
        repo = folder.name.partition("=")[2]
        classes = {row.task_id: row.intent for row in store.records(Intent, repo) if row.author == HEURISTIC}
        again = {row.task_id: row for row in store.records(Revalidation, repo)}
        for task in newest_tasks(store, repo):
            yield {
                "repo": repo,
                "head": task.head_sha,
                "title": task.title,
                "day": f"{task.created_at:%Y-%m-%d}",
                "reason": task.reason,
                "speedup": [round(one, 3) for one in (task.speedup, task.low, task.high) if one],
                "workloads": dict(Counter(one.source for one in task.workloads)),
                "class": classes.get(task.task_id, ""),
                "again": _again(again.get(task.task_id)),
            }


def _again(row: Revalidation | None) -> dict[str, Any] | None:
    if row is None:
        return None
    return {
        "day": f"{row.created_at:%Y-%m-%d}",
        "speedup": round(row.speedup, 3) if row.speedup else None,
        "holds": row.status == "kept",
        "workloads": [sum(one.held for one in row.workloads), len(row.workloads)],
        "load": round(row.foreign_load, 2),
    }


def kept() -> list[dict[str, Any]]:
    """The lines of the file, ordered by repository and head."""
    lines = KEPT.read_text(encoding="utf-8").splitlines() if KEPT.exists() else []
    return [json.loads(line) for line in lines]


def add(homes: Sequence[Path]) -> None:
    """Adds the decisions of homes; that a task was measured again stays known."""
    known = {(one["repo"], one["head"]): one for one in kept()}
    for home in homes:
        for one in decided_in(home):
            key = one["repo"], one["head"]
            known[key] = one | {"again": one["again"] or known.get(key, {}).get("again")}
    KEPT.write_text("".join(f"{json.dumps(known[key])}\n" for key in sorted(known)), encoding="utf-8")


def section() -> str:
    """The table of the tasks, and what it comes to."""
    changes = kept()
    tasks = [one for one in changes if not one["reason"]]
    again = [one["again"] for one in tasks if one["again"]]
    held, parts = sum(one["holds"] for one in again), [one["workloads"] for one in again]
    classes = intents_in_words(Counter(one["class"] for one in tasks))
    lines = [
        f"{len(tasks)} tasks of {len({one['repo'] for one in tasks})} repositories ({classes}; the classes are the "
        f"heuristic's), each measured on the day given, of {len(changes)} decided changes. {len(again)} were "
        f"measured again: **{held} hold whole**, "
        f"{sum(one for one, _ in parts)} of {sum(one for _, one in parts)} workloads, at the load given (median of CPU "
        "seconds per second of others on the core).",
        "",
    ]
    heads = ("repository", "commit", "what", "speedup", "workloads", "class", "day", "again", "holds", "load")
    return "\n".join([*lines, table(heads, map(_row, tasks))])


def _row(one: dict[str, Any]) -> list[str]:
    speedup, low, high = one["speedup"]
    workloads = ", ".join(f"{number} {source}" for source, number in sorted(one["workloads"].items()))
    again = one["again"] or {}
    shown = f"{again['speedup']:.2f}" if again.get("speedup") else ""
    holds = "yes" if again.get("holds") else "{} of {}".format(*again["workloads"]) if again else ""
    return [
        one["repo"],
        one["head"][:10],
        one["title"].replace("|", "\\|")[:70],
        f"{speedup:.2f} [{low:.2f}, {high:.2f}]",
        workloads,
        one["class"].replace("_", " "),
        one["day"],
        shown,
        holds,
        f"{again['load']:.1f}" if again else "",
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Adds decisions, or writes the section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("add", "table"))
    parser.add_argument("homes", type=Path, nargs="*")
    options = parser.parse_args(arguments)
    if options.what == "add":
        add(options.homes)
    else:
        replace_section("Real tasks", section())


if __name__ == "__main__":
    main()
