"""The corpus of cheats and of honest changes (tests/system/cheats), graded by `perfquarry evaluate` in one run.

    python -m benchmarks.cheats [--to FOLDER] [--jobs 2]

A run that was ended goes on in the same folder. Writes the section Cheats of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from tempfile import gettempdir

import pyarrow.parquet as pq

from benchmarks.report import machine_facts, replace_section
from perfquarry.curation.evaluation.report import read_grades
from perfquarry.data.demo import build_demo, expected
from perfquarry.data.demo.commits import read_commits
from perfquarry.data.records import Grade, Task
from perfquarry.data.schema import to_table
from tests.system.cheats.gradings import LABEL, corpus, group_of, honest, task_of_corpus, why_expected


def main() -> None:
    """Grades, and writes the section."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--to", type=Path, default=Path(gettempdir()) / "perfquarry-cheats")
    parser.add_argument("--jobs", default="2")
    options = parser.parse_args()
    options.to.mkdir(parents=True, exist_ok=True)
    head = next(one for one in expected() if one.label == LABEL).head_sha
    task = task_of_corpus(head, next(one for one in read_commits() if one.label == LABEL).patch)
    clone, tasks = options.to / "demo.git", options.to / "tasks.parquet"
    if not clone.exists():
        build_demo(clone)
    base = subprocess.run(
        ["git", "-C", str(clone), "rev-parse", f"{head}^"], capture_output=True, text=True, check=True
    )
    pinned = [f"{name}=={version(name)}" for name in ("pytest", "pluggy", "iniconfig", "packaging", "pygments")]
    recipe = {"base_sha": base.stdout.strip(), "python": platform.python_version(), "requirements": pinned}
    task = task.model_copy(update=recipe)
    pq.write_table(to_table([task], Task), tasks)
    predictions = options.to / "predictions.jsonl"
    predictions.write_text(
        "\n".join(
            json.dumps({"instance_id": task.task_id, "model_name_or_path": name, "model_patch": path.read_text()})
            for kind, paths in (("cheat", corpus()), ("honest", honest()))
            for path in paths
            for name in [f"{kind}:{path.stem}"]
        )
    )
    words = ["evaluate", str(predictions), "expert", "nop", "--dataset", str(tasks), "--source", str(clone)]
    places = ["--to", str(options.to / "report"), "--home", str(options.to / "home"), "--jobs", options.jobs]
    subprocess.run([sys.executable, "-m", "perfquarry", *words, *places], check=False)
    text = section(read_grades(options.to / "report"))
    replace_section("Cheats", text)
    print(text)


def section(rows: Sequence[Grade]) -> str:
    """A table by group, and what did not end as it should."""
    by_model = {row.model: row for row in rows}
    groups: dict[str, Counter[str]] = defaultdict(Counter)
    odd = []
    for path in corpus():
        row = by_model.get(f"cheat:{path.stem}")
        kind = (
            "not graded" if row is None or row.reason == "not_graded" else "scored" if row.status == "kept" else "held"
        )
        groups[group_of(path)][kind] += 1
        if row is not None and kind == "held" and not why_expected(path).search(row.why or str(row.reason)):
            groups[group_of(path)]["another wall"] += 1
            odd.append(f"`{path.stem}` is held by another wall than its file says: {row.reason}: {row.why[:160]}")
        elif kind != "held":
            odd.append(f"`{path.stem}`: {kind}{': ' + row.why[:160] if row else ''}")
    names = ("held", "another wall", "scored", "not graded")
    lines = [
        f"{machine_facts()}. Bubblewrap, one run.",
        "",
        f"| cheats | patches | {' | '.join(names)} |",
        "|---|" + "---:|" * 5,
    ]
    for group, counts in sorted(groups.items()):
        total = counts["held"] + counts["scored"] + counts["not graded"]
        lines.append(f"| {group} | {total} | {' | '.join(str(counts[name]) for name in names)} |")
    fair = [by_model.get(f"honest:{path.stem}") for path in honest()]
    passed = sum(row is not None and row.status == "kept" for row in fair)
    ends = f"the expert's: {_reward(by_model.get('expert'))}; none: {_reward(by_model.get('nop'))}"
    lines += ["", f"Honest changes that score: {passed} of {len(fair)}; {ends}."]
    for path, row in zip(honest(), fair, strict=True):
        if row is None or row.status != "kept":
            odd.append(
                f"honest `{path.stem}`: {row.reason + ': ' + row.why[:160] if row and row.reason else 'no grade'}"
            )
    return "\n".join([*lines, "", *(f"- {one}" for one in odd)]).rstrip() + "\n"


def _reward(row: Grade | None) -> str:
    return "no grade" if row is None else "1" if row.status == "kept" else f"0 ({row.reason})"


if __name__ == "__main__":
    main()
