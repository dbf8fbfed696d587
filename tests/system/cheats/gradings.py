"""Grades patches against a task of the demo as `tests/test.sh` does: as root each side is a user of its own, as in a
container; else bubblewrap takes its place.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from perfquarry.curation.release.harbor_folders import write_task
from perfquarry.data import demo
from perfquarry.data.demo import build_demo, expected
from perfquarry.data.demo.commits import read_commits
from perfquarry.data.records import Task, workload_id_of
from perfquarry.data.records.task import TaskWorkload
from perfquarry.harness.contracts import BuiltSide
from tests.bare_python import everybodys_python, make_bare_python

CORPUS = Path(__file__).parent
LABEL = "reachable-copies"
TEST = "tests/test_graph.py::test_reachable_in_a_tree"
AS_USERS = os.geteuid() == 0 and everybodys_python() is not None
"""Whether sides can run as users of their own here."""
WRITABLE = ["/tmp", "/var/tmp", "/dev/shm"]
"""Folders that everybody may write: looking for them in a whole machine takes half a minute."""


SCHEDULE = {"pairs": 6, "turn_seconds": 0.15, "most_turns": 48}
"""Shorter than a task's own."""


@dataclass(frozen=True)
class Grading:
    """What the grader said."""

    code: int
    reward: float | None
    """Of `reward.json`; None where there is none."""
    facts: dict[str, object]

    @property
    def why(self) -> str:
        return str(self.facts["why"])


@dataclass(frozen=True)
class Exported:
    """An exported task and its base."""

    folder: Path
    base: Path
    python: Path
    expert: str

    def grade(self, patch: str, place: Path, *, as_users: bool = AS_USERS, most_pairs: int = 12) -> Grading:
        """Grades the base with a patch, the expert's or a cheat's, in a folder of its own that all may enter."""
        testbed, tests, logs = (place / name for name in ("testbed", "tests", "logs"))
        shutil.copytree(self.base, testbed)
        if patch:
            applied = ["git", "-C", str(testbed), "apply", "--whitespace=nowarn"]
            subprocess.run(applied, input=patch.encode(), check=True)
        shutil.copytree(self.folder / "tests", tests)
        tests.chmod(0o700)
        task = json.loads((tests / "task.json").read_text())
        task |= {
            "testbed": str(testbed),
            "work": str(place / "work"),
            "logs": str(logs),
            "schedule": {**task["schedule"], **SCHEDULE, "most_pairs": most_pairs},
            "writable": WRITABLE,
            "prefix": [] if as_users else self._isolated(place),
        }
        (tests / "task.json").write_text(json.dumps(task))
        logs.mkdir()
        logs.chmod(0o700)
        grader = [str(self.python), "-E", "-s", "-S", str(tests / "grader" / "grade.py"), str(tests / "task.json")]
        # where Harbor starts it: nothing of the folder may be run
        done = subprocess.run(grader, cwd=testbed, capture_output=True, text=True, timeout=280, check=False)
        assert (logs / "grading.json").exists(), done.stderr[-3000:]
        reward = logs / "reward.json"
        return Grading(
            done.returncode,
            json.loads(reward.read_text())["reward"] if reward.exists() else None,
            json.loads((logs / "grading.json").read_text()),
        )

    def _isolated(self, place: Path) -> list[str]:
        """Bubblewrap, as a command before another: of the folder, a process sees what is its own."""
        work = place / "work"
        shown = [str(self.python.parents[1]), str(work / "probe"), str(work / "pytest.ini"), "{tree}", "{folder}"]
        binds = [word for path in shown for word in ("--ro-bind", path, path)]
        covers = ["--tmpfs", "/tmp", "--tmpfs", "/var/tmp", "--tmpfs", "/dev/shm", "--tmpfs", str(place)]
        root = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        return ["bwrap", *root, *covers, *binds, "--bind", "{out}", "{out}", "--unshare-all", "--die-with-parent", "--"]


def export_task(
    place: Path, image: Callable[[BuiltSide], str] = lambda side: "none", *, writes: bool = False
) -> Exported:
    """The task of the demo that the corpus is written for: one visible test, one hidden script.

    Args:
        place: where all of it is made.
        image: the name of the image of a built side.
        writes: the test writes into the tree, of which each process has a copy then.
    """
    head = next(one for one in expected() if one.label == LABEL).head_sha
    build_demo(place / "demo.git")
    base = place / "base"
    archive = subprocess.run(
        ["git", "-C", str(place / "demo.git"), "archive", f"{head}^"], capture_output=True, check=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(base, filter="data")
    if writes:
        path, _, name = TEST.partition("::")
        text = (base / path).read_text()
        head_of_test = re.search(rf"def {name}\(.*:\n", text)
        assert head_of_test
        at = head_of_test.end()
        (base / path).write_text(f'{text[:at]}    open(__file__ + ".out", "w").close()\n{text[at:]}')
    python = make_bare_python(place / "bare", interpreter=everybodys_python() if AS_USERS else None)
    patch = next(one for one in read_commits() if one.label == LABEL).patch
    side = BuiltSide("base", head, base, python, "", (base,), writable_tree=writes)
    write_task(task_of_corpus(head, patch), side, image(side), place / "task")
    return Exported(place / "task", base, python, patch)


@contextlib.contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that users without rights may enter, which pytest's own are not."""
    folder = Path(tempfile.mkdtemp(prefix="pq-grading-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def corpus() -> list[Path]:
    """The cheats, one patch a file."""
    return sorted(CORPUS.glob("*.patch"))


def honest() -> list[Path]:
    """Patches that are as fast as the expert's, and say what guards have refused; one a file."""
    return sorted((CORPUS / "honest").glob("*.patch"))


def group_of(cheat: Path) -> str:
    """What kind of cheat it is: the file's line 'group:'."""
    line = next(line for line in cheat.read_text().splitlines() if line.startswith("group: "))
    return line.removeprefix("group: ")


def why_expected(cheat: Path) -> re.Pattern[str]:
    """What the grader should say of a cheat: the file's line 'why:'."""
    line = next(line for line in cheat.read_text().splitlines() if line.startswith("why: "))
    return re.compile(line.removeprefix("why: "))


def task_of_corpus(head: str, patch: str) -> Task:
    """The task that the corpus is written for."""
    cassette = Path(demo.__file__).parent / "cassettes" / f"{head[:10]}-1.json"
    script = json.loads(cassette.read_text())["answer"]["scripts"][1]["code"]
    figures = {"base_seconds": 1.0, "head_seconds": 0.5, "speedup": 2.0, "low": 1.9, "high": 2.1, "delta": 0.5}
    figures |= {"p_value": 0.001, "q_value": 0.001}
    test = TaskWorkload(workload_id=workload_id_of("c", "unit-test", TEST), source="unit-test", code=TEST, **figures)
    hidden = TaskWorkload(
        workload_id=workload_id_of("c", "generated", script), source="generated", code=script, role="hidden", **figures
    )
    return Task(
        repo="demo",
        stage_version="0",
        config_hash="0",
        task_id=f"perfquarry__demo-{head[:10]}",
        change_id="c",
        codebase="perfquarry/demo",
        base_sha=head,
        head_sha=head,
        created_at_commit=datetime(2024, 2, 15, tzinfo=UTC),
        title="Stop copying the set of seen nodes in reachable",
        message="",
        patch=patch,
        python="3.11",
        oracle_targets=["quarrykit/graph.py::reachable"],
        workloads=[test, hidden],
    )
