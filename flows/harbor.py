"""`perfquarry export --format harbor`: one folder per task."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import pyarrow.compute as pc

from perfquarry.curation import harbor
from perfquarry.curation.in_force import made_of, newest_findings_of
from perfquarry.curation.problems import texts_for_solvers
from perfquarry.curation.release.selection import kept_from_solvers
from perfquarry.curation.revalidation import fallen
from perfquarry.data.errors import InputError
from perfquarry.data.home import Home
from perfquarry.data.records import Build, Problem, Revalidation, Setting, Task
from perfquarry.data.settings import MeasureSettings
from perfquarry.data.store import TableStore
from perfquarry.flows.images import reopen
from perfquarry.harness.contracts import BuiltSide
from perfquarry.harness.grading.task_folder import ExpertFiles, pack_base, pack_expert, pack_grader, pack_repository
from perfquarry.harness.images.sides import Images
from perfquarry.miners.roles import TESTS, role_of

_MOST_TESTS = 20


def export(
    home: Home,
    store: TableStore,
    tasks: Sequence[Task],
    to: Path,
    base_image: str,
    network: harbor.Network,
    reviews: Mapping[str, bool],
    setting: Setting = "realistic",
) -> tuple[list[Path], dict[str, str]]:
    """Writes the folders of the tasks; returns those written, in their order, and by task_id why others are not.

    Left out is what curators or screening keep from solvers (`kept_from_solvers`), what fell when it was measured
    again (`fallen`), and tasks whose two sides need different native builds: the grader does not build. So are
    tasks timed by docstrings of the files to be changed, and those whose tests need a recipe's variables or options.

    Args:
        reviews: by task_id whether curators accepted it; tasks without an entry are not reviewed.
        setting: of the problem text that solvers read; a task without one of it is left out.

    Raises:
        InputError: `to` holds something else than such folders.
        SandboxUnavailable: no engine or no base image.
        EnvironmentFailed: a base cannot be made again here.
    """
    written, left_out = [], {}
    for task in tasks:
        problems = list(store.records(Problem, task.repo, where=pc.field("task_id") == task.task_id))
        findings = newest_findings_of(store, task.repo, [task])
        again = store.records(Revalidation, task.repo, where=pc.field("task_id") == task.task_id)
        why = kept_from_solvers(task, findings, problems, reviews.get(task.task_id))
        why = why or fallen(again, [task]).get(task.task_id, "")
        if len({row.build_id for row in made_of(store, Build, task.repo, [task])}) > 1:
            why = why or "its change needs a native build of its own, which the grader cannot do"
        why = why or not_gradable(task)
        problem = texts_for_solvers(task, problems).get(setting, "")
        if not problem and setting != "realistic":
            why = (
                why or f"it has no problem text of the setting {setting}: `perfquarry problems {task.repo}` writes them"
            )
        if why:
            left_out[task.task_id] = why
            continue
        base, _ = reopen(home, store, task)
        if base.variables or base.test_arguments:
            left_out[task.task_id] = "its tests need `environment` or `test_arguments` of a recipe"
            continue
        image = Images(home, base_image).environment(base)
        folder = to / task.task_id
        partial = to / f".{task.task_id}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        write_task(task, base, image, partial, network, problem, setting=setting)
        if folder.exists() and not (folder / "task.toml").is_file():
            raise InputError(f"{folder} is in the way: it is no exported task")
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
        written.append(folder)
    return written, left_out


def not_gradable(task: Task) -> str:
    """Why the grader, which restores files of tests by their paths, cannot grade a task; empty when it can."""
    changed = re.findall(r"^\+\+\+ b/(.+)$", task.patch, re.M)
    if any(one.code.partition("::")[0] in changed for one in task.workloads):
        return "its workloads are examples in docstrings of the files to be changed"
    if named := [path for path in changed if TESTS.search(path)]:
        return f"the grader would take {named[0]} for a test"
    return ""


def write_task(
    task: Task,
    base: BuiltSide,
    image: str,
    folder: Path,
    network: harbor.Network = "no-network",
    problem: str = "",
    settings: MeasureSettings | None = None,
    setting: Setting = "realistic",
) -> None:
    """Writes the folder of one task from its built base and the image with its environment."""
    (folder / "environment").mkdir(parents=True)
    tests, settings = folder / "tests", settings or MeasureSettings()
    runnable, expert = write_grader(task, base, tests, folder / "solution" / "files", settings, image)
    pack_repository(base.tree, task.created_at_commit, folder / "environment" / "repository.tar.gz")
    (folder / "task.toml").write_text(
        harbor.task_toml(task, network, version("perfquarry"), settings), encoding="utf-8"
    )
    (folder / "instruction.md").write_text(harbor.instruction(task, problem, setting), encoding="utf-8")
    (folder / "environment" / "Dockerfile").write_text(harbor.dockerfile(runnable), encoding="utf-8")
    (folder / "solution" / "expert.patch").write_bytes(task.patch.encode())
    for path, text in ((tests / "test.sh", harbor.test_script(runnable)), (_solve(folder), harbor.solution(expert))):
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)


def write_grader(
    task: Task, base: BuiltSide, tests: Path, files: Path, settings: MeasureSettings, image: str = ""
) -> tuple[harbor.RunnableTask, ExpertFiles]:
    """Writes all that grades a task into `tests`, and the expert's files, as they are, into `files`."""
    for folder in (tests, files):
        folder.mkdir(parents=True)
    expert = pack_expert(base.tree, task.patch, tests / "gold.tar.gz", files)
    runnable = harbor.RunnableTask(
        python=str(base.python),
        image=image,
        source_roots=[str(root.relative_to(base.tree)) for root in base.source_roots],
        tests=tests_of(task, base.tree),
        protected=TESTS.pattern,
    )
    pack_base(base.tree, tests / "base.tar.gz")
    pack_grader(tests)
    told = harbor.grading(task, runnable, expert.deleted, settings)
    (tests / "task.json").write_text(json.dumps(told, indent=1), encoding="utf-8")
    return runnable, expert


def tests_of(task: Task, tree: Path) -> list[str]:
    """Test files that have to pass: those of the timed tests, then those named after a changed module."""
    timed = {one.code.partition("::")[0] for one in task.workloads if one.source == "unit-test"}
    changed = {Path(target.partition("::")[0]).stem for target in task.oracle_targets} - {"__init__"}
    named = {
        str(path.relative_to(tree))
        for stem in changed
        for pattern in (f"test_{stem}.py", f"{stem}_test.py")
        for path in tree.rglob(pattern)
        if role_of(str(path.relative_to(tree))) == "test"
    }
    return [*sorted(timed), *sorted(named - timed)][:_MOST_TESTS]


def _solve(folder: Path) -> Path:
    return folder / "solution" / "solve.sh"
