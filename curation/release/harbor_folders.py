"""Task folders for Harbor: of a release, and of `perfquarry export --format harbor`, for this machine's engine."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import pyarrow.compute as pc

from perfquarry.curation import Network, harbor
from perfquarry.curation.in_force import newest_findings_of
from perfquarry.curation.problems import texts_for_solvers
from perfquarry.curation.release.manifest import LeftOut
from perfquarry.curation.release.selection import Selection, kept_from_solvers
from perfquarry.curation.release.writing import MadeFolders
from perfquarry.curation.reopened import reopen
from perfquarry.curation.revalidation import no_longer_held
from perfquarry.data.errors import InputError
from perfquarry.data.figures import size
from perfquarry.data.files import appearing
from perfquarry.data.home import Home
from perfquarry.data.output import Report
from perfquarry.data.records import Problem, Revalidation, Setting, Task
from perfquarry.data.store import TableStore
from perfquarry.harness.contracts import BuiltSide
from perfquarry.harness.grading.task_folder import (
    ExpertFiles,
    built_otherwise,
    pack_base,
    pack_expert,
    pack_grader,
    settings_of_tests,
)
from perfquarry.harness.images.oci import OciLayout, unique_bytes
from perfquarry.harness.images.registry import Pushed, Reference, Registry
from perfquarry.harness.images.sides import Images, save_images
from perfquarry.harness.leases.leases import scratch_folder
from perfquarry.harness.settings import MeasureSettings
from perfquarry.miners.roles import TESTS, role_of

_MOST_TESTS = 20


def export(
    home: Home,
    store: TableStore,
    tasks: Sequence[Task],
    to: Path,
    base_image: str,
    network: Network,
    reviews: Mapping[str, bool],
    setting: Setting = "realistic",
) -> Report:
    """Writes the folders of the tasks, for this machine's engine; the report says why others are not.

    Left out is what curators or screening keep from solvers (`kept_from_solvers`), what did not hold when measured
    again (`no_longer_held`), and what the grader cannot grade (`base_to_grade`).

    Args:
        reviews: by task_id whether curators accepted it; tasks without an entry are not reviewed.
        setting: of the problem text that solvers read; a task without one of it is left out.

    Raises:
        InputError: `to` holds something else than such folders.
        SandboxUnavailable: no engine or no base image.
        EnvironmentFailed: a base cannot be made again here.
    """
    written, left_out = list[str](), dict[str, str]()
    for task in tasks:
        problems = list(store.records(Problem, task.repo, where=pc.field("task_id") == task.task_id))
        findings = newest_findings_of(store, task.repo, [task])
        again = store.records(Revalidation, task.repo, where=pc.field("task_id") == task.task_id)
        why = kept_from_solvers(task, findings, problems, reviews.get(task.task_id))
        why = why or no_longer_held(again, [task]).get(task.task_id, "")
        problem = texts_for_solvers(task, problems).get(setting, "")
        if not why and not problem and setting != "realistic":
            why = f"it has no problem text of the setting {setting}: `perfquarry problems {task.repo}` writes them"
        base, why = (None, why) if why else base_to_grade(home, store, task)
        if base is None:
            left_out[task.task_id] = why
            continue
        image = Images(home, base_image).ensure(base, task.created_at_commit).name
        folder = to / task.task_id
        if folder.exists() and not (folder / "task.toml").is_file():
            raise InputError(f"{folder} is in the way: it is no exported task")
        with appearing(folder, over=True) as partial:
            write_task(task, base, image, partial, network, problem, setting=setting)
        written.append(folder.name)
    earlier = sorted({file.parent.name for file in to.glob("*/task.toml")} - set(written))
    lines = [f"{len(written)} task(s) written to {to}"]
    lines += [f"left out: {task_id}: {why}" for task_id, why in left_out.items()]
    lines += [f"{to / one} is of an earlier export: remove it, or `harbor run` runs it, too" for one in earlier]
    facts = {"folder": str(to), "format": "harbor", "tasks": written, "left_out": left_out, "earlier": earlier}
    return Report(facts, lines)


@dataclass(frozen=True)
class ImagesAsked:
    """Where the images of a release go, and how its task folders name things."""

    place: str
    """Of a registry: 'registry.example.org/namespace'."""
    base: str = ""
    """Local image to build on; empty: our own."""
    network: Network = "no-network"
    org: str = "perfquarry"
    """Tasks are named 'org/task_id'."""


@dataclass(frozen=True)
class PublishedFolders:
    """Makes the task folders of a release; implements `curation.release.making.FolderMaker`."""

    homes: Mapping[str, Home]
    """By repository, the home that holds it."""
    asked: ImagesAsked
    say: Callable[[str], None] = lambda text: None
    """Receives in words what was made and sent."""

    def make(self, to: Path, selection: Selection) -> MadeFolders:
        """Makes the images, pushes them, and writes the folders, which name them by their digests.

        Raises:
            InputError: the registry's name is none, or a task's build is no longer in its home.
            InfrastructureError: the engine or the registry failed, or a base cannot be made again.
        """
        bases: dict[str, BuiltSide] = {}
        images: dict[str, str] = {}
        left_out = []
        for task in selection.tasks:
            home = self.homes[task.repo]
            base, why = base_to_grade(home, TableStore(home.tables), task)
            if base is None:
                left_out.append(LeftOut(task_id=task.task_id, why=why))
                continue
            bases[task.task_id] = base
            images[task.task_id] = Images(home, self.asked.base).ensure(base, task.created_at_commit).name
        tasks = [task for task in selection.tasks if task.task_id in bases]
        references, whole = self._published(images, tasks)
        to.mkdir(parents=True)
        for task in tasks:
            image, folder, text = str(references[task.task_id]), to / task.task_id, task.problem_realistic
            write_task(task, bases[task.task_id], image, folder, self.asked.network, text, org=self.asked.org)
        names = {task_id: (f"{self.asked.org}/{task_id}", str(one)) for task_id, one in references.items()}
        return MadeFolders(names=names, left_out=left_out, image_bytes=whole)

    def _published(self, images: Mapping[str, str], tasks: Sequence[Task]) -> tuple[dict[str, Reference], int]:
        """References of the pushed images by task_id, and the bytes of all of them, each blob counted once."""
        if not images:
            return {}, 0
        pushed = Pushed()
        host, _, namespace = self.asked.place.partition("/")
        home = next(iter(self.homes.values()))
        with scratch_folder(home.scratch, "images") as place, Registry(host) as registry:
            layout = OciLayout(place / "layout")
            saved = {one.tag: one for one in save_images(sorted(set(images.values())), layout.folder)}
            found = {}
            for task in tasks:
                image = saved[images[task.task_id]]
                repository = re.sub(r"[^a-z0-9]+", "-", task.repo.lower()).strip("-")  # as registries allow it
                tag = f"{task.task_id[:100]}-{image.digest[7:19]}"
                name = f"{namespace}/{repository}".strip("/")
                found[task.task_id] = registry.push(layout, image, name, tag, pushed)
            whole = unique_bytes(saved.values())
        sent, there = sum(pushed.sent.values()), sum(pushed.there.values())
        self.say(
            f"images: {len(saved)} in {self.asked.place}, {size(whole)} together; sent {size(sent)}, "
            f"{size(there)} were there"
        )
        return found, whole


def base_to_grade(home: Home, store: TableStore, task: Task) -> tuple[BuiltSide | None, str]:
    """The base of a task, made again; or why the grader cannot grade it.

    It cannot where the sides' compiled files differ (containers have no compilers), where a workload is a docstring of
    a file to be changed, and where tests need a recipe's variables or options.

    Raises:
        EnvironmentFailed: the base cannot be made again here.
    """
    if why := not_gradable(task):
        return None, why
    base, head = reopen(home, store, task)
    if built_otherwise(base.tree, head.tree):
        return None, "its change needs a native build of its own, which no container makes: perfquarry evaluate does"
    if base.variables or base.test_arguments:
        return None, "its tests need `environment` or `test_arguments` of a recipe"
    return base, ""


def not_gradable(task: Task) -> str:
    """Why the grader, which restores files of tests by their paths, cannot grade a task; empty when it can."""
    changed = re.findall(r"^\+\+\+ b/(.+)$", task.patch, re.M)
    if re.search(r"^(?:(?:new|deleted) file mode|new mode|index [0-9a-f.]+) 120000$", task.patch, re.M):
        return "its patch makes or changes a symbolic link, which no task folder may hold"
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
    network: Network = "no-network",
    problem: str = "",
    setting: Setting = "realistic",
    org: str = "perfquarry",
) -> None:
    """Writes the folder of one task from its built base and the image that holds the base at `TESTBED`."""
    (folder / "environment").mkdir(parents=True)
    tests = folder / "tests"
    runnable, expert = write_grader(task, base, tests, MeasureSettings())
    (folder / "solution").mkdir()
    for name in expert.archive:
        shutil.copyfile(tests / name, folder / "solution" / name)
    texts = {
        "task.toml": harbor.task_toml(task, image, network, version("perfquarry"), MeasureSettings(), org),
        "instruction.md": harbor.instruction(task, problem, setting),
        "environment/Dockerfile": harbor.dockerfile(image),
        "solution/expert.patch": task.patch,
        "solution/solve.sh": harbor.solution(expert),
        "tests/test.sh": harbor.test_script(runnable),
    }
    for name, text in texts.items():
        (folder / name).write_bytes(text.encode())
    for name in ("solution/solve.sh", "tests/test.sh"):
        (folder / name).chmod(0o755)


def write_grader(
    task: Task, base: BuiltSide, tests: Path, settings: MeasureSettings, head: Path | None = None
) -> tuple[harbor.RunnableTask, ExpertFiles]:
    """Writes all that grades a task into `tests`.

    Args:
        head: the expert's tree, built, where its compiled files are others than the base's.
    """
    tests.mkdir(parents=True)
    expert = pack_expert(base.tree, task.patch, tests, head)
    runnable = harbor.RunnableTask(
        python=str(base.python),
        source_roots=[str(root.relative_to(base.tree)) for root in base.source_roots],
        tests=tests_of(task, base.tree),
        protected=f"(?:{TESTS.pattern})|{settings_of_tests(base.tree)}",
        writable_tree=base.writable_tree,
    )
    pack_grader(tests)
    grading = harbor.grading(task, runnable, pack_base(base.tree, tests), expert, settings)
    (tests / "task.json").write_text(json.dumps(grading, indent=1), encoding="utf-8")
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
