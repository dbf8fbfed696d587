"""One grading of a patch on this machine: the grader of `harness/grader`, its sides in bubblewrap.

Harbor runs the same programs in a container (docs/harbor.md); rules and report are the same.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perfquarry.data.errors import GitFailed
from perfquarry.data.git import git_in_tree
from perfquarry.data.home import Home
from perfquarry.data.records import Build, Reason
from perfquarry.harness.building.builder import Builder
from perfquarry.harness.contracts import Command, Completed, Limits
from perfquarry.harness.grading.task_folder import CANDIDATE, compiled_files, replace_compiled
from perfquarry.harness.rejections import Rejection
from perfquarry.harness.sandbox.bubblewrap import BubblewrapSandbox, prefix
from perfquarry.harness.sandbox.supervise import supervise
from perfquarry.harness.sandbox.task_limit import TaskGroup

PROCESSES = 512
"""Processes and threads of all sides of a grading together; one that has more is ended."""
SIDES = 4
"""Base, expert's side, candidate, the base again: each may need a task's memory."""
DISK_BYTES = 8 * 1024**3
_GREEDY = frozenset({"memory", "processes", "disk"})
WAYS = (("apply", "--whitespace=nowarn"), ("apply", "--whitespace=nowarn", "--ignore-whitespace", "-C1"))
"""How a patch is applied; the next is tried where one fails (GSO and SWE-bench try `patch --fuzz=5` last)."""
_IN_THE_WAY = frozenset({errno.ELOOP, errno.EISDIR, errno.ENOTDIR, errno.EPERM})
"""What a link, folder or file in the place of another gives; all else is the machine's fault."""
_SKIPPED = shutil.ignore_patterns(".git", "__pycache__")
_NAME = "pq-grading-"


@dataclass(frozen=True)
class Graded:
    """What came out of one grading."""

    facts: dict[str, Any]
    """`grading.json`; empty where the grader did not come to its end."""
    fault: str = ""
    """Why nothing is known: the machine's fault or ours, never the patch's."""

    @property
    def reward(self) -> int | None:
        """1, 0; None where nothing is known."""
        return self.facts.get("reward") if not self.fault else None


def patched_copy(base: Path, patch: str, to: Path) -> bool:
    """Copies a tree, and applies a patch to the copy; whether it applies. Where it does not, the copy is the base.

    git refuses paths that lead out of the tree, also by links.

    Raises:
        GitFailed: git is missing.
    """
    shutil.copytree(base, to, symlinks=True, ignore=_SKIPPED)
    git = git_in_tree(to)
    with tempfile.NamedTemporaryFile(suffix=".patch") as file:
        file.write(patch.encode(errors="surrogateescape"))
        if not patch.endswith("\n"):  # models leave out the last one
            file.write(b"\n")
        file.flush()
        applied = False
        for way in WAYS:
            with contextlib.suppress(GitFailed):
                git.output(*way, file.name, doing="applying a solver's patch")
                applied = True
                break
    shutil.rmtree(to / ".git")
    return applied


@dataclass(frozen=True)
class PatchBuilds:
    """Builds what solvers write for a task in the way its base is built."""

    builder: Builder
    base: Build
    """The base's row, kept."""
    tree: Path
    """The base, built."""
    tests: Path
    """What grades the task."""
    caches: Home
    """Of the base's build alone: the compiler cache of another home knows the expert's."""
    private: Sequence[Path]
    """Folders and files whose contents no build may see."""

    def fill_caches(self) -> Rejection | None:
        """Builds the base, for its compiler cache; why that failed.

        Raises:
            EnvironmentFailed: the base cannot be made again here.
        """
        made = self.builder.build_elsewhere(self.base, lambda tree: True, self.caches, self._sandbox())
        return made if isinstance(made, Rejection) else None

    def build(self, testbed: Path, work: Path) -> tuple[str, ...] | Rejection:
        """Builds a solver's sources, and puts what is compiled into the solver's tree.

        Sources are taken by the grader's own rules, but from the whole tree; scripts and settings of the build stay
        the base's. It is built from a plain checkout: compiled files that a patch brings along go nowhere.

        Args:
            testbed: the solver's tree.
            work: folder in which it is built.

        Returns:
            Paths of compiled files that are our own now, or are gone (`grade` takes them); or why the build failed.

        Raises:
            EnvironmentFailed: the base cannot be made again here.
        """
        task = json.loads((self.tests / "task.json").read_text(encoding="utf-8"))
        task |= {"testbed": str(testbed), "source_roots": ["."]}
        checked_in: set[Path] = set()

        def lay(copy: Path) -> bool:
            checked_in.update(compiled_files(copy))
            try:
                changed, _ = CANDIDATE.apply_changes(task, str(self.tree), str(copy))
            except ValueError:  # too many: the grader says so
                return False
            return bool(changed)

        with _folder(work) as place:
            made = self.builder.build_elsewhere(self.base, lay, Home(place), self._sandbox(), self.caches)
            if isinstance(made, Rejection) or made is None:
                return made or ()
            try:
                return tuple(sorted(map(str, replace_compiled(testbed, made.path, checked_in))))
            except OSError as error:
                if error.errno not in _IN_THE_WAY:
                    raise
                return Rejection(Reason.BUILD_FAILED, f"the patch is in the way of what the build makes: {error}")

    def _sandbox(self) -> BubblewrapSandbox:
        return BubblewrapSandbox(private=tuple(self.private))


def grade(
    tests: Path,
    testbed: Path,
    python: Path,
    *,
    work: Path,
    private: Sequence[Path],
    core: int | None,
    seconds: float,
    built: Sequence[str] = (),
) -> Graded:
    """Grades the tree of a solver.

    Args:
        tests: what grades the task (`task.json`, base, expert's files, grader, probe).
        testbed: the solver's tree.
        python: interpreter of the environment; it also runs the grader, without anything of the environment.
        work: folder in which a folder of this grading is made, and removed.
        private: folders and files whose contents no side may see: the home, the release, other models' patches.
        core: the core to time on; None: the least busy.
        seconds: wall time after which the grading is given up.
        built: compiled files that are our own (`PatchBuilds`); all others stay the base's.

    Raises:
        SandboxUnavailable: bubblewrap is missing.
    """
    with _folder(work) as place:
        task = json.loads((tests / "task.json").read_text(encoding="utf-8"))
        inner, logs = place / "work", place / "logs"
        shown = (str(inner / "probe"), str(inner / "pytest.ini"), "{tree}", "{folder}")
        filter_file = place / "calls"
        isolated = prefix(python, shown, ("{out}",), "{tree}", (*private, place), filter_file)
        task |= {"testbed": str(testbed), "work": str(inner), "logs": str(logs), "prefix": isolated}
        if core is not None:
            task["cores"] = [core]
        if built:
            task["built"] = list(built)
        copy = place / "tests"
        shutil.copytree(tests, copy)
        (copy / "task.json").write_text(json.dumps(task), encoding="utf-8")
        argv = (str(python), "-E", "-s", "-S", str(copy / "grader" / "grade.py"), str(copy / "task.json"))
        limits = Limits(
            wall_seconds=seconds,
            memory_bytes=SIDES * int(task["memory_bytes"]),
            processes=PROCESSES,
            disk_bytes=DISK_BYTES,
        )
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
        command = Command(argv, cwd=place, env=env, writable=(place,), limits=limits)
        return outcome(_run(command), logs / "grading.json", seconds)


def outcome(ended: Completed, report: Path, seconds: float) -> Graded:
    """What came out of a grader that has ended: its report, or why there is none."""
    if ended.exceeded in _GREEDY:  # base and expert's side alone never do
        why = f"the sides together need more {ended.exceeded} than a grading may"
        return Graded({"reward": 0, "code": "workload_fails", "why": why, "seconds": ended.wall_seconds})
    if ended.exceeded:
        return Graded({}, f"the grading did not end within {seconds:.0f} s")
    if not report.exists():
        said = (ended.stdout + ended.stderr).decode(errors="replace")
        return Graded({}, f"the grader ended without a report: {said[-1000:]}")
    facts = json.loads(report.read_text(encoding="utf-8"))
    return Graded(facts, str(facts["why"]) if facts["reward"] is None else "")


def _run(command: Command) -> Completed:
    """Runs the grader to its end, or to a limit; bubblewrap ends what it started with it."""
    group = TaskGroup(command.limits.processes)

    def kill(pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)

    try:
        grader = replace(command, started=lambda pid: group.add([pid]))
        return supervise(grader, kill=kill, starting=group.joined())
    finally:
        group.remove()


@contextlib.contextmanager
def _folder(work: Path) -> Iterator[Path]:
    work.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix=_NAME, dir=work))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
