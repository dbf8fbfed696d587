"""The corpus of cheats and of honest changes (tests/system/cheats), graded by `perfquarry evaluate` in one run.

    python -m benchmarks.cheats [--to FOLDER] [--jobs 2]
    python -m benchmarks.cheats --to FOLDER --real CLONE HOME REPO TASK [--real ...]

A run that was ended goes on in the same folder. Writes the section Cheats of docs/benchmarks.md; with --real the
section Cheats on real tasks: those cheats of the corpus that only append to the package's `__init__.py` or add files
fit every repository, and are put into the base of a task of a home.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from tempfile import gettempdir

import pyarrow.parquet as pq
from unidiff.patch import PatchSet

from benchmarks.report import machine_facts, replace_section
from perfquarry.curation.evaluation.report import read_grades
from perfquarry.data.demo import build_demo, expected
from perfquarry.data.demo.commits import read_commits
from perfquarry.data.home import Home
from perfquarry.data.records import Grade, Task
from perfquarry.data.schema import to_table
from perfquarry.data.store import TableStore
from tests.system.cheats.gradings import LABEL, corpus, group_of, honest, task_of_corpus, why_expected

DEMO_INIT = "quarrykit/__init__.py"


def main() -> None:
    """Grades, and writes the section."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--to", type=Path, default=Path(gettempdir()) / "perfquarry-cheats")
    parser.add_argument("--jobs", default="2")
    parser.add_argument("--real", nargs=4, action="append", default=[], metavar=("CLONE", "HOME", "REPO", "TASK"))
    options = parser.parse_args()
    options.to.mkdir(parents=True, exist_ok=True)
    if options.real:
        grade_real(options.to, options.real, options.jobs)
        return
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


def portable(cheat: Path) -> bool:
    """Whether a cheat changes no file of the demo but the package's `__init__.py`."""
    changed = {one.path for one in PatchSet(cheat.read_text()) if not one.is_added_file}
    return changed <= {DEMO_INIT}


def transplanted(cheat: Path, tree: Path, package: str) -> str:
    """The same cheat for another package: a patch of the working tree of a clone, which is left as it was.

    Args:
        cheat: a portable cheat of the corpus.
        tree: a clone at the task's base.
        package: folder of the package, relative to the tree.
    """
    for one in PatchSet(cheat.read_text()):
        added = "".join(line.value for hunk in one for line in hunk if line.is_added)
        path = tree / one.path.replace("quarrykit", package)
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_text() if path.exists() and not one.is_added_file else ""
        path.write_text(before + "\n" + added.replace("quarrykit", package.rpartition("/")[2]) if before else added)
    git = ["git", "-C", str(tree)]
    subprocess.run([*git, "add", "--all", "--force"], check=True)
    patch = subprocess.run([*git, "diff", "--cached", "--binary"], capture_output=True, text=True, check=True).stdout
    subprocess.run([*git, "reset", "--quiet", "--hard"], check=True)
    return patch


def grade_real(to: Path, real: Sequence[Sequence[str]], jobs: str) -> None:
    """Grades the portable cheats on real tasks, and writes the section."""
    grades: dict[str, list[Grade]] = {}
    for clone, home, repo, start in real:
        found = TableStore(Home(Path(home)).tables).records(Task, repo)
        task = next(one for one in found if one.status == "kept" and one.task_id.startswith(start))
        place = to / task.task_id
        place.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder) / "tree"
            subprocess.run(["git", "clone", "--quiet", "--no-checkout", clone, str(tree)], check=True)
            subprocess.run(["git", "-C", str(tree), "checkout", "--quiet", task.base_sha], check=True)
            package = str(_package(tree, task.oracle_targets[0]).relative_to(tree))
            lines = [
                json.dumps(
                    {
                        "instance_id": task.task_id,
                        "model_name_or_path": f"cheat:{path.stem}",
                        "model_patch": transplanted(path, tree, package),
                    }
                )
                for path in corpus()
                if portable(path)
            ]
        predictions = place / "predictions.jsonl"
        predictions.write_text("\n".join(lines))
        words = ["evaluate", str(predictions), "expert", "nop", "--dataset", repo, "--source", clone, "--home", home]
        words += ["--tasks", task.task_id, "--to", str(place / "report"), "--jobs", jobs]
        subprocess.run([sys.executable, "-m", "perfquarry", *words], check=False, cwd=place)
        grades[task.task_id] = read_grades(place / "report")
    text = real_section(grades)
    replace_section("Cheats on real tasks", text)
    print(text)


def _package(tree: Path, target: str) -> Path:
    """The outermost package that holds a target."""
    folder = (tree / target.partition(":")[0]).parent
    while (folder.parent / "__init__.py").exists():
        folder = folder.parent
    return folder


def real_section(grades: Mapping[str, Sequence[Grade]]) -> str:
    """A row a task, and what scored."""
    lines = [
        f"{machine_facts()}. Bubblewrap, one run. The cheats of the corpus that fit every package.",
        "",
        "| task | cheats | held | scored | not graded | expert | none |",
        "|---|---:|---:|---:|---:|---|---|",
    ]
    odd = []
    for task, rows in grades.items():
        by_model = {row.model: row for row in rows}
        cheats = {name: row for name, row in by_model.items() if name.startswith("cheat:")}
        lost = [name for name, row in cheats.items() if row.reason == "not_graded"]
        scored = [name for name, row in cheats.items() if row.status == "kept"]
        counts = (len(cheats), len(cheats) - len(lost) - len(scored), len(scored), len(lost))
        ends = (_reward(by_model.get("expert")), _reward(by_model.get("nop")))
        lines.append(f"| {task} | {' | '.join(map(str, counts))} | {' | '.join(ends)} |")
        odd += [f"- {task}: `{name}` {kind}" for kind, found in (("scored", scored), ("lost", lost)) for name in found]
    return "\n".join([*lines, "", *odd]).rstrip() + "\n"


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
