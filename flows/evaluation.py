"""`perfquarry evaluate` and `leaderboard`: patches of models graded on this machine, and their reports."""

from __future__ import annotations

import json
import re
import tempfile
import threading
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from filelock import FileLock, Timeout
from rich.console import Console

from perfquarry.curation.evaluation.metrics import Score
from perfquarry.curation.evaluation.outcomes import THRESHOLD, graded, ungraded
from perfquarry.curation.evaluation.predictions import Prediction, read_predictions
from perfquarry.curation.evaluation.report import (
    EvaluationReport,
    address_of,
    merged,
    read_readings,
    report_of,
    shown_duels,
    write_readings,
    write_report,
)
from perfquarry.curation.harbor import time_limit
from perfquarry.curation.review.colours import visible
from perfquarry.data.errors import EnvironmentFailed, GitFailed, InputError
from perfquarry.data.home import Home
from perfquarry.data.records import Grade, Reason, Stamp, Task, content_id
from perfquarry.data.store import TableStore
from perfquarry.flows.harbor import not_gradable, write_grader
from perfquarry.flows.jobs import Job, do_all
from perfquarry.flows.output import Listing
from perfquarry.flows.output import show as output
from perfquarry.flows.published import PublishedTasks
from perfquarry.flows.reports import with_interval
from perfquarry.flows.runner import RunFailed
from perfquarry.flows.settings import Settings
from perfquarry.harness.contracts import BuiltSide
from perfquarry.harness.grading.host import Graded, PatchBuilds, grade, patched_copy
from perfquarry.harness.grading.task_folder import ALTERNATION, GRADER, built_otherwise, compiled_files
from perfquarry.harness.leases.leases import scratch_folder
from perfquarry.harness.measuring.machine import POLL_SECONDS, machine_facts, measurement_lock
from perfquarry.harness.probing.prober import PROBE
from perfquarry.harness.rejections import Rejection
from perfquarry.harness.sandbox import BubblewrapSandbox

STAGE_VERSION = "1"
TABLES = "tables"
"""Folder of a report in which grades are kept as they come."""
_COMPILED_FROM = re.compile(
    r"^(?:\+\+\+|---) [ab]/.+\.(?:pyx|pxd|pxi|c|cc|cpp|cxx|h|hh|hpp|hxx|inc|src|rs|f|f90|tp|in)$", re.M
)
"""In a patch: files that native builds read."""


def evaluate(
    home: Home,
    files: Sequence[str],
    dataset: str,
    clone_from: str | None,
    to: Path,
    only: Sequence[str],
    settings: Settings,
    *,
    jobs: int,
    retries: int,
    as_json: bool,
) -> None:
    """Grades predictions, a row each, and writes the report; what `to` holds already is not graded again.

    The arguments are those of `PublishedTasks.open` and the command's.

    Args:
        home: where environments and trees are made.
        files: predictions; 'expert', 'half' and 'nop' are known.
        dataset: release, Parquet file of tasks, or a home's repository.
        clone_from: clone of the repository, where the dataset is no release.
        to: folder of the report; another evaluation of the same dataset there goes on.
        only: starts of task ids; none: all.
        settings: schedule and sandbox.
        jobs: gradings at once, at most one a core.
        retries: times that a grading is begun anew after a fault of the machine.

    Raises:
        InputError: bad predictions, no such tasks, or `to` belongs to another dataset or protocol.
        RunFailed: some predictions could not be graded here.
    """
    sandbox = BubblewrapSandbox()
    if settings.sandbox.name not in (None, sandbox.name):
        raise InputError(
            f"evaluate isolates by bubblewrap, not {settings.sandbox.name}: leave [sandbox] name out, or grade in "
            "containers: perfquarry export --format harbor"
        )
    sandbox.verify()
    published = PublishedTasks.open(home, dataset, clone_from, only, settings)
    predictions = read_predictions(files, published.tasks)
    protocol, console = protocol_of(settings), Console(stderr=as_json)
    name = f"{Path(dataset).name}@{_address(published.tasks)}"
    to.mkdir(parents=True, exist_ok=True)
    with _alone(to):
        store = TableStore(to / TABLES)
        _same_kind(to, {"dataset": name, "protocol": protocol})
        places = (home.root, to, *(Path(one).expanduser() for one in (dataset, clone_from or "", *files) if one))
        private = tuple(place.absolute() for place in places if place.exists())
        gradings = Gradings(published, store, settings, name, protocol, home, private, retries, console)
        gradings.run(predictions, jobs)
        rows = gradings.rows()
        report = report_of(rows, published.tasks, gradings.left_out, name, protocol)
        write_report(report, rows, to)
    show(report, console, to, as_json=as_json)
    if lost := [row for row in rows if row.reason == Reason.NOT_GRADED]:
        first = lost[0]
        raise RunFailed(
            f"{len(lost)} of {len(rows)} predictions could not be graded; {first.model}, {first.task_id}: {first.why}. "
            "Run the same command again: it tries these alone."
        )


def leaderboard(folders: Sequence[Path], to: Path | None, *, as_json: bool) -> None:
    """Merges reports of the same dataset and protocol.

    Raises:
        InputError: a folder holds no report, or they differ in dataset or protocol.
    """
    report, rows = merged(folders)
    if to:
        to.mkdir(parents=True, exist_ok=True)
        write_readings([row for folder in folders for row in read_readings(folder)], to)
        write_report(report, rows, to)
    show(report, Console(stderr=as_json), to, as_json=as_json)


def protocol_of(settings: Settings) -> str:
    """Content address of all that decides a grade: grader, measuring core, probe, schedule."""
    programs = [
        (str(path.relative_to(folder.parent)), path.read_text(encoding="utf-8"))
        for folder in (GRADER, ALTERNATION, PROBE.parent)
        for path in sorted(folder.glob("*.py"))
    ]
    return content_id("protocol", programs, settings.measure.model_dump(mode="json"), THRESHOLD, STAGE_VERSION)


def _address(tasks: Iterable[Task]) -> str:
    """Content address of the tasks: what is applied, and what is timed."""
    return content_id(
        "tasks", sorted([one.task_id, one.patch, *sorted(work.workload_id for work in one.workloads)] for one in tasks)
    )


def _alone(to: Path) -> AbstractContextManager[object]:
    """Holds the folder of a report."""
    try:
        return FileLock(to / ".lock").acquire(timeout=0)
    except Timeout as error:
        raise InputError(f"another evaluation writes to {to}: wait for it, or give another --to") from error


def _same_kind(to: Path, ours: dict[str, str]) -> None:
    """Notes in a new folder what its grades are of; an old one must have the same noted."""
    file = to / "evaluation.json"
    if not file.exists():
        file.write_text(json.dumps(ours), encoding="utf-8")
        return
    theirs = json.loads(file.read_text(encoding="utf-8"))
    for name, value in ours.items():
        if address_of(theirs.get(name, "")) != address_of(value):
            raise InputError(f"{to} holds grades of another {name} ({theirs.get(name)}): give another --to")


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
    settings: Settings
    dataset: str
    """Name and content address of the tasks."""
    protocol: str
    home: Home
    private: Sequence[Path]
    """What no patch may read: the home, the dataset, other patches."""
    retries: int
    """Times that a grading is begun anew after a fault of the machine."""
    console: Console

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

    def run(self, predictions: Sequence[Prediction], jobs: int) -> None:
        """Grades what has no grade yet; the same patch of the same task is graded once."""
        rows = [row for row in self.rows() if row.reason != Reason.NOT_GRADED]
        known = {_key(row): row for row in rows}
        done = {(*_key(row), row.model, row.attempt) for row in rows}
        todo = [one for one in predictions if (*_key(one), one.model, one.attempt) not in done]
        if len(todo) < len(predictions):
            self._say(f"{len(predictions) - len(todo)} of {len(predictions)} predictions were graded before")
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
                self._say(f"{len(todo)} to grade, {jobs} at a time; each may take some minutes")
            with self.console.status("grading") if self.console.is_terminal else nullcontext():
                do_all("evaluate", self.dataset, gradings, jobs)

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
                    self._say(f"{task.task_id}: cannot be graded here: {why}")
                return
            self.store.append([row.model_copy(update={"model": one.model, "attempt": one.attempt}) for one in group])
            for one in group:
                self._say(f"{task.task_id} {one.model}#{one.attempt}: {in_words(row)} ({self._left} left)")

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
                self._say(f"{task.task_id} {prediction.model}#{prediction.attempt}: try {number}: {why}")
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
            self._say("waiting: other timings hold all cores")

    def _say(self, text: str) -> None:
        output(visible(text), console=self.console)


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


def show(report: EvaluationReport, console: Console, to: Path | None, *, as_json: bool) -> None:
    """Prints the scores: a table, or the report as JSON."""
    if as_json:
        print(report.model_dump_json(indent=2))  # numbers that are none as null
        return
    lines = [f"{report.dataset}, {len(report.experts)} tasks, protocol {report.protocol}"]
    lines += [f"left out: {name}: {why.splitlines()[0]}" for name, why in report.left_out.items()]
    shown = shown_duels(report)
    for duel in shown:
        said = "differ" if duel.q_value < 0.05 else "do not differ for certain"
        lines.append(
            f"{visible(duel.first)} and {visible(duel.second)} {said}: Opt {duel.opt:+.2f} on {duel.tasks} tasks, "
            f"q = {duel.q_value:.3g}; {visible(duel.first)} is the faster on {duel.faster:.0%}"
        )
    if len(shown) < len(report.duels):
        lines.append(f"{len(report.duels) - len(shown)} more comparisons of two models are in report.json")
    for name, order in report.orders.items():
        if order.startswith("!"):
            lines.append(f"{name} does not tell solutions apart: {order[2:]}")
    if report.best:
        lines.append(f"better than the expert for certain: {', '.join(sorted(report.best))}")
    if to:
        lines.append(f"look at {to / 'report.html'}; rows are in {to / 'grades.parquet'}")
    output("", _scores(report.scores), *lines, console=console)


def _scores(scores: Sequence[Score]) -> Listing:
    figures = ("Opt@1", "95 %", "apply", "correct", "δ", "of expert", "geometric", "graded")
    table = Listing(("model", *(f">{name}" for name in figures)))
    for one in scores:
        opt = one.opt[1]
        table.add(
            visible(one.model),
            f"{opt.value:.0%}",
            f"{100 * opt.low:.0f}-{100 * opt.high:.0f}",
            f"{one.apply.value:.0%}",
            f"{one.correctness.value:.0%}",
            f"{one.performance.value:.3f}",
            f"{one.of_expert.value:.2f}",
            f"{one.geometric.value:.2f}",
            f"{one.graded}/{one.tasks}",
        )
    return table
