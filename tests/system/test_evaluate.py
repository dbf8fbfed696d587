"""`perfquarry evaluate` and `leaderboard` on a task of the demo: real gradings, timed for real."""

from __future__ import annotations

import difflib
import json
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest

from perfquarry.curation.in_force import accepted_tasks
from perfquarry.data.home import Home
from perfquarry.data.records import Grade, Task
from perfquarry.data.schema import from_table
from perfquarry.data.store import TableStore
from tests.system.commands import command, heed_interrupts
from tests.system.conftest import Curated

pytestmark = pytest.mark.skipif(
    shutil.which("bwrap") is None,
    reason="bubblewrap is not installed: nothing can be graded (apt-get install bubblewrap)",
)
WHOLE = """
[measure]
pairs = 6
max_pairs = 12
turn_seconds = 0.05
most_turns = 24
max_process_seconds = 20
"""


@pytest.fixture(scope="module")
def task(curated: Curated) -> Task:
    (found,) = accepted_tasks(TableStore(Home(curated.home).tables), "demo")
    return found


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("settings") / "grading.toml"
    path.write_text(WHOLE)
    return path


def _predictions(curated: Curated, folder: Path, task: Task) -> Path:
    """Models whose patch breaks tests, forks without end, does not apply, and changes a test alone."""
    clone = Home(curated.home).repositories / "demo.git"

    def appended(path: str, text: str) -> str:
        shown = ["git", "-C", str(clone), "show", f"{task.base_sha}:{path}"]
        old = subprocess.run(shown, capture_output=True, text=True, check=True).stdout.splitlines(keepends=True)
        return "".join(
            difflib.unified_diff(old, [*old, *(f"{line}\n" for line in text.splitlines())], f"a/{path}", f"b/{path}")
        )

    path = next(line[6:] for line in task.patch.splitlines() if line.startswith("+++ b/"))
    patches = {
        "breaks": appended(path, "raise RuntimeError('broken')"),
        "forks": appended(path, "import os\nwhile True: os.fork()"),
        "misfit": task.patch.replace("\n-", "\n-no such line "),
        "tests": appended(task.workloads[0].code.partition("::")[0], "# a comment"),
    }
    file = folder / "predictions.jsonl"
    rows = [
        {"instance_id": task.task_id, "model_name_or_path": model, "model_patch": patch}
        for model, patch in patches.items()
    ]
    file.write_text("\n".join(map(json.dumps, rows)))
    return file


def test_predictions_are_graded_kept_and_compared(
    curated: Curated,
    task: Task,
    settings: Path,
    perfquarry: Callable[..., Any],
    facts: Callable[..., Any],
    tmp_path: Path,
) -> None:
    file, one, other = _predictions(curated, tmp_path, task), tmp_path / "one", tmp_path / "other"
    common = ("--dataset", "demo", "--settings", str(settings))
    report = facts(curated.home, "evaluate", str(file), "expert", *common, "--to", str(one))
    rows = {row.model: row for row in from_table(Grade, pq.read_table(one / "grades.parquet"))}
    reasons = {model: row.reason for model, row in rows.items()}
    assert reasons == {
        "breaks": "tests_fail",
        "expert": None,
        "forks": "workload_fails",
        "misfit": "patch_does_not_apply",
        "tests": "nothing_changed",
    }, rows["expert"].why
    expert = rows["expert"]
    assert (expert.status, expert.correct) == ("kept", True) and expert.speedup and expert.speedup > 1.3
    assert expert.of_expert == pytest.approx(1.0, abs=0.1) and len(json.loads(expert.pairs)) >= 6
    assert not rows["breaks"].correct and rows["breaks"].applied and not rows["misfit"].applied
    assert (report["scores"][0]["model"], report["scores"][0]["opt"]["1"]["value"]) == ("expert", 1.0)
    assert "expert" in (one / "report.html").read_text() and not list(Home(curated.home).scratch.glob("evaluate-*"))

    again = perfquarry(curated.home, "evaluate", str(file), "expert", *common, "--to", str(one))
    assert "5 of 5 predictions were graded before" in again.stdout and "Opt@1" in again.stdout
    after = {row.model: row for row in from_table(Grade, pq.read_table(one / "grades.parquet"))}
    assert after == rows, "nothing is graded twice"

    late = tmp_path / "late.jsonl"
    row = {"instance_id": task.task_id, "model_name_or_path": "late", "model_patch": "no patch"}
    late.write_text(json.dumps(row))
    perfquarry(curated.home, "evaluate", str(late), *common, "--to", str(other))
    merged = facts(None, "leaderboard", str(one), str(other), "--to", str(tmp_path / "both"))
    assert {score["model"] for score in merged["scores"]} == {"breaks", "expert", "forks", "late", "misfit", "tests"}
    quicker = tmp_path / "other.toml"
    quicker.write_text(WHOLE.replace("24", "25"))
    said = perfquarry(
        curated.home, "evaluate", "nop", "--dataset", "demo", "--settings", str(quicker), "--to", str(one), code=2
    )
    assert "holds grades of another protocol" in said.stderr


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda end: end.name)
def test_an_end_from_outside_leaves_no_process_and_the_same_command_goes_on(
    curated: Curated, settings: Path, tmp_path: Path, end: signal.Signals
) -> None:
    """Ctrl-C, the end that a scheduler sends, and that of a terminal which is closed."""
    words = ("evaluate", "expert", "--dataset", "demo", "--settings", str(settings), "--to", str(tmp_path / "report"))
    begun = subprocess.Popen(
        command(curated.home, *words),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=heed_interrupts,
    )
    graders: list[psutil.Process] = []
    until = time.monotonic() + 120
    while not graders and begun.poll() is None and time.monotonic() < until:
        time.sleep(0.2)
        children = psutil.Process(begun.pid).children(recursive=True)
        graders = [one for one in children if any("grade.py" in word for word in _words(one))]
    assert graders, begun.communicate(timeout=60)[0]
    below = [*graders, *graders[0].children(recursive=True)]
    begun.send_signal(end)
    said = begun.communicate(timeout=60)[0]
    assert begun.returncode == 130 and "Traceback" not in said, said
    gone, left = psutil.wait_procs(below, timeout=20)
    assert gone and not left and not list(Home(curated.home).scratch.glob("evaluate-*"))


def _words(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nop", "--dataset", "no-such"), "is no release's folder"),
        (("missing.jsonl", "--dataset", "demo"), "cannot read predictions"),
        (("nop", "--dataset", "Demo", "--tasks", "zzz"), "no task of Demo begins with zzz"),
    ],
)
def test_bad_usage(
    curated: Curated, perfquarry: Callable[..., Any], tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = perfquarry(curated.home, "evaluate", *arguments, "--to", str(tmp_path / "report"), code=2)
    assert said in done.stderr and "Traceback" not in done.stderr


def test_another_sandbox_is_refused_with_what_to_do(
    curated: Curated, perfquarry: Callable[..., Any], tmp_path: Path
) -> None:
    settings = tmp_path / "process.toml"
    settings.write_text('[sandbox]\nname = "process"\n')
    done = perfquarry(
        curated.home, "evaluate", "nop", "--dataset", "demo", "--settings", str(settings), "--to", str(tmp_path), code=2
    )
    assert "evaluate isolates by bubblewrap" in done.stderr and "--format harbor" in done.stderr
