"""Problem texts made of templates: GSO's specification, SWE-Perf's oracle and realistic settings, a user's report."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from statistics import harmonic_mean

from perfquarry.curation.formats import gso_row, harness_texts
from perfquarry.curation.problems.leaks import Fix
from perfquarry.curation.targets import BOILERPLATE, RULES
from perfquarry.data.records import Problem, Reason, Setting, Stamp, Task

_GSO = """\
The script below shows how {codebase} is used. Change the repository so that `experiment` runs faster:

```python
{script}
```

Only the call of `experiment` is timed. Improve the code for such use in general, not for this input: other \
inputs are timed, too.

{rules}"""
_FUZZY = """\
My program spends much of its time in {codebase}{area}: a step that I repeat again and again takes about \
{milliseconds} ms here, longer than what it does seems to need. I have not found out where that time goes. \
Please find it, and make such use faster.

{rules}"""
_CONTRACT = "reference_result current_result load_result store_result check_equivalence run_test eqcheck"
EXEMPT = frozenset(re.findall(r"\w+", f"{_GSO} {_FUZZY} above all part {BOILERPLATE} {_CONTRACT} {harness_texts()}"))
"""Words of the templates themselves and of GSO's contract: they stand in any text, so they reveal no fix."""
WRITTEN: tuple[Setting, ...] = ("gso", "oracle", "realistic", "fuzzy")
"""Settings that a solver may be shown."""


def templates(task: Task, fix: Fix, stamp: Stamp) -> list[Problem]:
    """The texts of a task by template, each checked for the fix; no row of a setting that the task has nothing for."""
    texts: dict[Setting, str] = {
        "gso": gso_text(task),
        "oracle": task.problem_oracle,
        "realistic": task.problem_realistic,
        "fuzzy": fuzzy_text(task),
    }
    return [problem_of(task, setting, text, fix, stamp) for setting, text in texts.items() if text]


def gso_text(task: Task) -> str:
    """GSO's specification: the visible performance test as the precise target (GSO §3); empty without any."""
    script = gso_row(task)["prob_script"]
    return _GSO.format(codebase=task.codebase, script=script.strip(), rules=RULES) if script else ""


def fuzzy_text(task: Task) -> str:
    """What a user notices: the package, the parts of it that workloads call, and how long a call takes."""
    paths = dict.fromkeys(target.partition("::")[0] for target in task.realistic_targets)
    stems = [PurePosixPath(path).stem for path in paths]
    parts = [f"`{stem}`" for stem in dict.fromkeys(stems) if not stem.startswith("_") and not _named(stem, task)]
    area = f", above all in its part {' and '.join(parts[:2])}" if parts else ""
    return _FUZZY.format(codebase=task.codebase, area=area, milliseconds=f"{milliseconds(task):g}", rules=RULES)


def milliseconds(task: Task) -> float:
    """What a call at the base takes, one digit of it."""
    seconds = harmonic_mean([one.base_seconds for one in task.workloads]) if task.workloads else 0.0
    return float(f"{seconds * 1e3:.1g}")


def functions_named(text: str, task: Task) -> list[str]:
    """Targets of the task that a text names: as code, or as a word that no plain sentence has."""
    code = set(re.findall(r"\w+", " ".join(re.findall(r"`[^`\n]+`", text)))) | set(re.findall(r"\w+(?=\()", text))
    words = {word for word in re.findall(r"\w+", text) if "_" in word or re.search(r"[a-z][A-Z]", word)}
    return sorted({f"function {name}" for name in code | words if _named(name, task)})


def _named(name: str, task: Task) -> bool:
    targets = (target.partition("::")[2] for target in [*task.oracle_targets, *task.realistic_targets])
    return name in {part for target in targets for part in target.split(".")}


def problem_of(task: Task, setting: Setting, text: str, fix: Fix, stamp: Stamp, author: str = "template") -> Problem:
    """The row of a text: rejected when it contains something of the fix. A plan is the fix in words: never checked."""
    leaks = [] if setting == "plan" else fix.leaks_in(text, EXEMPT)
    leaks += functions_named(text, task) if setting == "fuzzy" else []
    return Problem(
        **stamp.fields(),
        task_id=task.task_id,
        change_id=task.change_id,
        setting=setting,
        author=author,
        text=text,
        leaks=leaks,
        status="rejected" if leaks else "kept",
        reason=Reason.TELLS_THE_FIX if leaks else None,
    )


def texts_for_solvers(task: Task, problems: Iterable[Problem]) -> dict[Setting, str]:
    """By setting what a solver of the task may read: a model's words before the template's.

    Of each author the newest text counts; empty for a setting whose texts all reveal the fix or are out of date.
    """
    newest: dict[tuple[Setting, str], Problem] = {}
    for one in sorted(problems, key=lambda row: (row.author != "template", row.created_at)):
        if one.setting in WRITTEN:
            newest.pop((one.setting, one.author), None)
            newest[one.setting, one.author] = one
    texts: dict[Setting, str] = {setting: "" for setting, _ in newest}
    for one in newest.values():
        if one.status == "kept" and is_current(task, one):
            texts[one.setting] = one.text
    return texts


def is_current(task: Task, problem: Problem) -> bool:
    """Whether a text shows the visible script of the task as it is now: an older one may be hidden today."""
    script = gso_row(task)["prob_script"].strip()
    return problem.setting != "gso" or bool(script and script in problem.text)


def shown(problems: Iterable[Problem]) -> list[Problem]:
    """Those a solver may see: kept ones, and never a plan."""
    return [one for one in problems if one.status == "kept" and one.setting in WRITTEN]
