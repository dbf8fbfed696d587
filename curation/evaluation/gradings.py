"""Predictions graded on this machine, a row each."""

from __future__ import annotations

import re
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from perfquarry.curation.evaluation.outcomes import THRESHOLD, graded, ungraded
from perfquarry.curation.evaluation.predictions import Prediction
from perfquarry.curation.harbor import time_limit
from perfquarry.curation.jobs import DoAll, Job
from perfquarry.curation.published import PublishedTasks
from perfquarry.curation.release.harbor_folders import not_gradable, write_grader
from perfquarry.curation.settings import MakingSettings
from perfquarry.data.errors import EnvironmentFailed, GitFailed
from perfquarry.data.figures import with_interval
from perfquarry.data.home import Home
from perfquarry.data.records import Grade, Reason, Stamp, Task, content_id
from perfquarry.data.store import TableStore
from perfquarry.harness.contracts import BuiltSide
from perfquarry.harness.grading.host import Graded, PatchBuilds, grade, patched_copy
from perfquarry.harness.grading.task_folder import ALTERNATION, GRADER, built_otherwise, compiled_files
from perfquarry.harness.leases.leases import scratch_folder
from perfquarry.harness.measuring.machine import POLL_SECONDS, machine_facts, measurement_lock
from perfquarry.harness.probing.prober import PROBE
from perfquarry.harness.rejections import Rejection
from perfquarry.harness.sandbox import BubblewrapSandbox

STAGE_VERSION = "1"
_COMPILED_FROM = re.compile(
    r"^(?:\+\+\+|---) [ab]/.+\.(?:pyx|pxd|pxi|c|cc|cpp|cxx|h|hh|hpp|hxx|inc|src|rs|f|f90|tp|in)$", re.M
)
"""In a patch: files that native builds read."""


def protocol_of(settings: MakingSettings) -> str:
    """Content address of all that decides a grade: grader, measuring core, probe, schedule."""
    programs = [
        (str(path.relative_to(folder.parent)), path.read_text(encoding="utf-8"))
        for folder in (GRADER, ALTERNATION, PROBE.parent)
        for path in sorted(folder.glob("*.py"))
    ]
    return content_id("protocol", programs, settings.measure.model_dump(mode="json"), THRESHOLD, STAGE_VERSION)


def address_of_tasks(tasks: Iterable[Task]) -> str:
    """Content address of the tasks: what is applied, and what is timed."""
    return content_id(
        "tasks", sorted([one.task_id, one.patch, *sorted(work.workload_id for work in one.workloads)] for one in tasks)
    )


@dataclass(frozen=True)
class ReadyTask:
    """What grades a task."""

    base: BuiltSide
    tests: Path
    """Folder of what grades it."""
    builds: PatchBuilds
    native: bool
    """Whether base and expert have other compiled files: all patches are built then."""

    def needs_build(self, patch: str) -> bool:
        """Whether a patch has to be built: it can change what is compiled."""
        return self.native or bool(_COMPILED_FROM.search(patch) and compiled_files(self.base.tree))


@dataclass
class Gradings:
    """The gradings of one evaluation; each prediction gets a row when it is graded."""

    published: PublishedTasks
    store: TableStore
    settings: MakingSettings
    dataset: str
    """Name and content address of the tasks."""
    protocol: str
    home: Home
    private: Sequence[Path]
    """What no patch may read: the home, the dataset, other patches."""
    retries: int
    """Times that a grading is begun anew after a fault of the machine."""
    say: Callable[[str], None]
    """Receives in words what is graded, and what waits."""

    def __post_init__(self) -> None:
        self._tasks = {task.task_id: task for task in self.published.tasks}
        self._ready: dict[str, ReadyTask] = {}
        self._locks = {name: threading.Lock() for name in self._tasks}
        self._writing = threading.Lock()
        self.left_out = {name: why for name, task in self._tasks.items() if (why := not_gradable(task))}
        """By task why it cannot be graded at all: no model's failure."""
        self._named = set[str]()

    def rows(self) -> list[Grade]:
        """All grades of tasks that can be graded, in order."""
        repos = sorted({task.repo for task in self.published.tasks})
        rows = (row for repo in repos for row in self.store.records(Grade, repo))
        found = [row for row in rows if row.task_id not in self.left_out]
        return sorted(found, key=lambda row: (row.task_id, row.model, row.attempt))

    def run(self, predictions: Sequence[Prediction], do_all: DoAll) -> None:
        """Grades what has no grade yet; the same patch of the same task is graded once."""
        rows = [row for row in self.rows() if row.reason != Reason.NOT_GRADED]
        known = {_key(row): row for row in rows}
        done = {(*_key(row), row.model, row.attempt) for row in rows}
        todo = [one for one in predictions if (*_key(one), one.model, one.attempt) not in done]
        if len(todo) < len(predictions):
            self.say(f"{len(predictions) - len(todo)} of {len(predictions)} predictions were graded before")
        groups: dict[tuple[str, str], list[Prediction]] = {}
        for one in sorted(todo, key=lambda one: (one.task_id, one.attempt, one.model)):
            groups.setdefault(_key(one), []).append(one)
        self._left = len(todo)
        with scratch_folder(self.home.scratch, "evaluate") as self._work:
            gradings = [
                Job(f"{group[0].task_id}-{group[0].model}", partial(self._group, group, known.get(key)))
                for key, group in groups.items()
            ]
            if gradings:
                self.say(f"{len(todo)} to grade; each may take some minutes")
            do_all(gradings)

    def _group(self, group: Sequence[Prediction], known: Grade | None) -> None:
        """Predictions with the same patch for the same task."""
        first, task = group[0], self._tasks[group[0].task_id]
        row = known or self._graded(task, first)
        with self._writing:
            self._left -= len(group)
            if row is None:
                if task.task_id not in self._named:
                    self._named.add(task.task_id)
                    why = self.left_out[task.task_id].splitlines()[0]
                    self.say(f"{task.task_id}: cannot be graded here: {why}")
                return
            self.store.append([row.model_copy(update={"model": one.model, "attempt": one.attempt}) for one in group])
            for one in group:
                self.say(f"{task.task_id} {one.model}#{one.attempt}: {in_words(row)} ({self._left} left)")

    def _graded(self, task: Task, prediction: Prediction) -> Grade | None:
        """The row; None where the task cannot be graded here."""
        stamp = Stamp(repo=task.repo, stage_version=STAGE_VERSION, config_hash=self.protocol)
        if task.task_id in self.left_out:
            return None
        if not prediction.patch.strip():
            return ungraded(task, prediction, self.dataset, stamp, Reason.EMPTY_PATCH)
        ready = self._made_ready(task)
        if ready is None:
            return None
        base = ready.base
        done = Graded({}, "nothing was tried")
        with tempfile.TemporaryDirectory(dir=self._work) as place:
            testbed = Path(place) / "testbed"
            if not patched_copy(base.tree, prediction.patch, testbed):
                return ungraded(task, prediction, self.dataset, stamp, Reason.NOT_APPLIED)
            built: tuple[str, ...] | Rejection = ()
            if ready.needs_build(prediction.patch):
                built = ready.builds.build(testbed, Path(place))
            if isinstance(built, Rejection):
                return ungraded(task, prediction, self.dataset, stamp, built.reason, built.log)
            for number in range(1, self.retries + 2):
                with measurement_lock(on_wait=self._waits) as core:
                    done = grade(
                        ready.tests,
                        testbed,
                        base.python,
                        work=Path(place),
                        private=self.private,
                        core=core,
                        seconds=time_limit(task, self.settings.measure),
                        built=built,
                    )
                if not done.fault:
                    machine = machine_facts(BubblewrapSandbox.name)
                    return graded(task, prediction, self.dataset, stamp, done.facts, machine, number)
                why = done.fault.splitlines()[0][:300]
                self.say(f"{task.task_id} {prediction.model}#{prediction.attempt}: try {number}: {why}")
        return ungraded(task, prediction, self.dataset, stamp, Reason.NOT_GRADED, done.fault, tries=self.retries + 1)

    def _made_ready(self, task: Task) -> ReadyTask | None:
        """What grades a task, made once; None where it cannot be graded here."""
        with self._locks[task.task_id]:
            if task.task_id in self._ready or task.task_id in self.left_out:
                return self._ready.get(task.task_id)
            try:
                made = self.published.make(task)
            except (EnvironmentFailed, GitFailed) as error:
                self.left_out[task.task_id] = str(error)
                return None
            place = self._work / task.task_id
            head = made.head.tree if built_otherwise(made.base.tree, made.head.tree) else None
            write_grader(task, made.base, place / "tests", self.settings.measure, head)
            caches = Home(place / "caches")
            builds = PatchBuilds(made.builder, made.build, made.base.tree, place / "tests", caches, self.private)
            if head and (failed := builds.fill_caches()):
                self.left_out[task.task_id] = f"its base cannot be built again: {failed.log}"
                return None
            self._ready[task.task_id] = ReadyTask(made.base, place / "tests", builds, native=head is not None)
            return self._ready[task.task_id]

    def _waits(self, waited: float) -> None:
        if waited < POLL_SECONDS:
            self.say("waiting: other timings hold all cores")


def _key(one: Prediction | Grade) -> tuple[str, str]:
    return one.task_id, one.patch_id


def in_words(row: Grade) -> str:
    """A grade in one line."""
    reward = 1 if row.status == "kept" else 0
    if row.speedup is None:
        return f"reward {reward}, {row.reason}" + (f": {row.why.splitlines()[0][:160]}" if row.why else "")
    part = f", {row.of_expert:.2f} of the expert's" if row.of_expert is not None else ""
    said = f"{with_interval(row.speedup, row.low, row.high)}{part}"
    return f"reward {reward}, {said}" + (f", {row.reason}" if row.reason else "")
