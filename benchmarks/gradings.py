"""Four models that are written by hand, graded twice on real tasks.

    python -m benchmarks.gradings FOLDER NAME=HOME=CLONE [...]

The models: the expert's patch, every other hunk of it, none, and a cheat that appends to each module of the targets
a memory of their answers. Of each home the tasks in force are graded, --most of them. What was interrupted goes on in
the same FOLDER. Writes the section Gradings of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import difflib
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.report import machine_facts, percent, replace_section, table
from perfquarry.curation.evaluation.known import EXPERT, HALF, NOP
from perfquarry.curation.evaluation.report import read_grades, read_report
from perfquarry.curation.in_force import accepted_tasks
from perfquarry.data.home import Home
from perfquarry.data.records import Grade, Task
from perfquarry.data.store import TableStore

CHEAT = "cheat"
MEMORY = """

def _remembering(function):
    answers = {}

    def remembered(*args, **kwargs):
        key = repr((args, kwargs))
        if key not in answers:
            answers[key] = function(*args, **kwargs)
        return answers[key]

    return remembered


"""
LOOKS = ("first", "second")


def main() -> None:
    """Grades, and writes the section."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("homes", nargs="+", metavar="NAME=HOME=CLONE")
    parser.add_argument("--most", type=int, help="tasks of a repository, the first by name")
    options = parser.parse_args()
    looks: list[dict[str, list[Grade]]] = []
    left_out: dict[str, str] = {}
    for look in LOOKS:
        looks.append({})
        for one in options.homes:
            name, home, clone = one.split("=")
            place = options.folder / name
            place.mkdir(parents=True, exist_ok=True)
            accepted = accepted_tasks(TableStore(Home(Path(home)).tables), name)
            found = sorted(accepted, key=lambda task: task.task_id)[: options.most]
            predictions = place / "cheat.jsonl"
            predictions.write_text("\n".join(_prediction(task, clone) for task in found))
            words = ["evaluate", str(predictions), EXPERT, HALF, NOP, "--dataset", name, "--source", clone]
            words += ["--tasks", ",".join(task.task_id for task in found), "--home", home]
            words += ["--to", str(place / look), "--jobs", "2"]
            subprocess.run([sys.executable, "-m", "perfquarry", *words], check=False)
            report = place / look
            looks[-1][name] = read_grades(report)
            left_out |= read_report(report).left_out
    text = section(looks[0], looks[1], left_out)
    replace_section("Gradings", text)
    print(text)


def _prediction(task: Task, clone: str) -> str:
    return json.dumps({"instance_id": task.task_id, "model_name_or_path": CHEAT, "model_patch": memory_of(task, clone)})


def memory_of(task: Task, clone: str) -> str:
    """A patch that makes the functions that the expert changed remember their answers; "": none is Python's."""
    targets: dict[str, list[str]] = defaultdict(list)
    for target in task.oracle_targets:
        path, _, name = target.partition("::")
        if path.endswith(".py"):
            targets[path].append(name)
    parts = []
    for path, names in targets.items():
        shown = ["git", "-C", clone, "show", f"{task.base_sha}:{path}"]
        before = subprocess.run(shown, capture_output=True, text=True, check=True).stdout
        lines = "".join(f"try:\n    {name} = _remembering({name})\nexcept NameError:\n    pass\n" for name in names)
        after = before.rstrip("\n") + "\n" + MEMORY + lines
        parts += difflib.unified_diff(
            before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{path}", f"b/{path}"
        )
    return "".join(parts)


def section(
    first: Mapping[str, Sequence[Grade]], second: Mapping[str, Sequence[Grade]], left: Mapping[str, str]
) -> str:
    """Who scored on both looks, how many verdicts are equal, and what a grading costs."""
    ones, twos = _by_attempt(first), _by_attempt(second)
    both = sorted(ones.keys() & twos.keys())
    models = (EXPERT, HALF, NOP, CHEAT)
    rows = [[model, *(_scored(look, model) for look in (ones, twos))] for model in models]
    equal = [key for key in both if ones[key].status == twos[key].status]
    same = [key for key in both if ones[key].against_expert == twos[key].against_expert]
    tasks, again = ({task for task, _ in keys} for keys in (ones, both))
    lines = [
        f"{machine_facts()}. {len(tasks)} tasks of {len(first)} repositories, {len(again)} of them twice, two "
        "gradings at a time. The cheat's patches remember the answers of the functions that the expert changed.",
        "",
        table(("model", "first look (scored of graded)", "second look"), rows),
        "",
        f"Equal verdicts (scored or not): {len(equal)} of {len(both)} ({percent(len(equal) / max(1, len(both)), 0)}); "
        f"equal comparisons with the expert (better, equal, worse, undecided): {len(same)}.",
        "",
        _seconds((ones, twos)),
        "",
    ]
    lines += [
        f"- {task}, {model}: {_in_words(ones[task, model])}; then {_in_words(twos[task, model])}"
        for task, model in both
        if {ones[task, model].status == "kept", twos[task, model].status == "kept"} != {model == EXPERT}
    ]
    lines += [
        f"- {task}, {model}, once: {_in_words(row)}"
        for (task, model), row in sorted(ones.items())
        if (task, model) not in twos and (row.status == "kept") != (model == EXPERT)
    ]
    lines += [f"- not graded: {task}: {why}" for task, why in sorted(left.items())]
    return "\n".join(lines) + "\n"


def _by_attempt(look: Mapping[str, Iterable[Grade]]) -> dict[tuple[str, str], Grade]:
    return {(row.task_id, row.model): row for rows in look.values() for row in rows}


def _scored(look: Mapping[tuple[str, str], Grade], model: str) -> str:
    rows = [row for (_, name), row in look.items() if name == model and row.patch]
    rows = rows if model != NOP else [row for (_, name), row in look.items() if name == model]
    return f"{sum(row.status == 'kept' for row in rows)} of {sum(row.reason != 'not_graded' for row in rows)}"


def _in_words(row: Grade) -> str:
    return "1" if row.status == "kept" else f"0 ({row.reason}: {row.why[:120]})"


def _seconds(looks: Sequence[Mapping[tuple[str, str], Grade]]) -> str:
    rows = sorted(row.seconds for look in looks for row in look.values() if row.seconds > 1)
    middle, late = rows[len(rows) // 2], rows[len(rows) * 9 // 10]
    return f"A patch that is run: median {middle:.0f} s, nine of ten within {late:.0f} s ({len(rows)} gradings)."


if __name__ == "__main__":
    main()
